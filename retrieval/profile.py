"""Tool profiles: what parameters calls had, in successes and in failures; bounded in size."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

from aftercall.json_values import JsonObject, JsonValue, canonical_json, content_hash
from aftercall.redaction import is_redacted
from retrieval.parameters import ParameterView, ToolView
from retrieval.reading.faults import JsonType
from retrieval.values import type_of

MAX_PARAMETERS = 100
MAX_VALUES = 50
"""Values kept per parameter: the most often seen ones; 50 of a city or status list say enough."""
MAX_ALL_VALUES = 1_000
"""Values kept per tool: one of very many parameters keeps fewer of each."""
MAX_VALUE_LENGTH = 128
MAX_NAME_LENGTH = 128
MAX_SESSIONS = 3
"""Sessions remembered per value; two already make it common knowledge."""
COMMON_SESSIONS = 2
"""From so many sessions on, a value is common knowledge of the tool (4-rules.md, Suggesting)."""
MAX_FAILED_CALLS = 200
_REQUIRED_SHARE = 0.98
"""Present in so many of the successes, a parameter is taken as required when no schema says so."""


class ValueCount(BaseModel):
    """How often a value was in a success, and from which sessions."""

    value: JsonValue
    count: int = 0
    sessions: list[str] = Field(default_factory=list)

    @property
    def is_common(self) -> bool:
        """Whether it may be proposed to others."""
        return len(self.sessions) >= COMMON_SESSIONS


class ParameterProfile(BaseModel):
    """One parameter over all calls of a tool."""

    successes: int = 0
    failures: int = 0
    types: dict[JsonType, int] = Field(default_factory=dict)
    minimum: float | None = None
    maximum: float | None = None
    values: dict[str, ValueCount] = Field(default_factory=dict)

    def common_values(self) -> list[ValueCount]:
        """Values that are common knowledge, most frequent first."""
        common = [value for value in self.values.values() if value.is_common]
        return sorted(common, key=lambda item: (-item.count, canonical_json(item.value)))


class ToolProfile(BaseModel):
    """What the calls of one tool under one schema looked like."""

    successes: int = 0
    failures: int = 0
    parameters: dict[str, ParameterProfile] = Field(default_factory=dict)
    failed_calls: dict[str, int] = Field(default_factory=dict)
    """Hashes of parameters that failed for what they are, newest last; a success clears one."""

    def observe_success(self, parameters: JsonObject, session: str) -> None:
        """Count a call that succeeded. `session` is any text that tells sessions apart."""
        self.successes += 1
        self.failed_calls.pop(content_hash(parameters), None)
        for name, value in parameters.items():
            if profile := self._parameter(name):
                profile.successes += 1
                kind = type_of(value)
                profile.types[kind] = profile.types.get(kind, 0) + 1
                room = min(MAX_VALUES, max(5, MAX_ALL_VALUES // len(self.parameters)))
                _observe_value(profile, value, session, room)

    def observe_failure(self, parameters: JsonObject, *, blame_parameters: bool) -> None:
        """Count a call that failed.

        Args:
            parameters: what was sent.
            blame_parameters: whether it failed for what was sent, so that sending the very same
                again is known to fail; not so for a time-out.
        """
        self.failures += 1
        for name in parameters:
            if profile := self._parameter(name):
                profile.failures += 1
        if blame_parameters and not is_redacted(parameters):  # one mask stands for many values
            key = content_hash(parameters)
            self.failed_calls[key] = self.failed_calls.pop(key, 0) + 1
            while len(self.failed_calls) > MAX_FAILED_CALLS:
                del self.failed_calls[next(iter(self.failed_calls))]

    def is_known_to_fail(self, parameters: JsonObject) -> bool:
        """Whether exactly these parameters failed, and did not succeed since."""
        return content_hash(parameters) in self.failed_calls

    def view(self) -> ToolView:
        """The parameters as the successes show them, for tools without a schema."""
        seen = {name: p for name, p in self.parameters.items() if p.successes}
        return ToolView(
            "profile",
            {
                name: ParameterView(
                    name=name,
                    types=tuple(_frequent(profile.types)),
                    required=self.successes >= 5
                    and profile.successes >= _REQUIRED_SHARE * self.successes,
                )
                for name, profile in seen.items()
            },
            closed=self.successes >= 10,
        )

    def _parameter(self, name: str) -> ParameterProfile | None:
        if name not in self.parameters and (
            len(self.parameters) >= MAX_PARAMETERS or len(name) > MAX_NAME_LENGTH
        ):
            return None
        return self.parameters.setdefault(name, ParameterProfile())


def _observe_value(profile: ParameterProfile, value: JsonValue, session: str, room: int) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        profile.minimum = value if profile.minimum is None else min(profile.minimum, value)
        profile.maximum = value if profile.maximum is None else max(profile.maximum, value)
    if isinstance(value, dict | list) or is_redacted(value):
        return
    if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH:
        return
    key = canonical_json(value)
    known = profile.values.get(key)
    if known is None:
        while len(profile.values) >= room:
            _forget_rarest(profile.values)
        known = profile.values.setdefault(key, ValueCount(value=value))
    known.count += 1
    if session not in known.sessions and len(known.sessions) < MAX_SESSIONS:
        known.sessions.append(session)


def _forget_rarest(values: dict[str, ValueCount]) -> None:
    """Make room: the least seen value goes, the oldest of these first."""
    rarest = min(values, key=lambda key: values[key].count)
    del values[rarest]


def _frequent(types: dict[JsonType, int]) -> Iterable[JsonType]:
    total = sum(types.values())
    return (kind for kind, count in types.items() if count >= 0.05 * total)
