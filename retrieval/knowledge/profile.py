"""The profile of a tool: its calls under one schema, in successes and in failures."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from pydantic import BaseModel, Field

from aftercall.json_values import JsonObject, JsonValue, canonical_json, content_hash
from aftercall.redaction import is_redacted
from retrieval.knowledge.parameter import (
    AGENT_DIGITS,
    MAX_AGENTS,
    MAX_VALUES,
    CommonValue,
    FairWeights,
    ParameterProfile,
    count_in_sample,
    milliseconds,
    token,
    touch,
)
from retrieval.parameters import ParameterView, Path, ToolView, inner_values, place_of, value_at
from retrieval.reading.faults import Fault

_NOT_THE_VALUE = frozenset({"missing", "unexpected"})


def blamed_values(
    parameters: JsonObject, faults: Sequence[Fault]
) -> dict[str, tuple[Fault, JsonValue]]:
    """The places whose values an error is about, with the fault and the value there.

    A parameter that is missing or has no business there says nothing of a value. The only parameter
    of a call is meant also where the error names none.
    """
    named: dict[str, tuple[Fault, JsonValue]] = {
        place_of(fault.path): (fault, value)
        for fault in faults
        if fault.path and fault.kind not in _NOT_THE_VALUE
        if (value := value_at(parameters, fault.path)) is not None
    }
    if not named and len(parameters) == 1 and not any(fault.path for fault in faults):
        [(name, value)] = parameters.items()
        fault = faults[0] if len(faults) == 1 else Fault("invalid", (name,))
        if fault.kind not in _NOT_THE_VALUE:
            named[name] = fault, value
    return named


MAX_PARAMETERS = 64
MAX_INNER = 32
"""Places inside parameters."""
MAX_ALL_VALUES = 300
"""Values kept per tool: one of very many parameters keeps fewer of each. With the other limits this
keeps a profile under 256 KiB of JSON, whatever is sent (tests/retrieval/test_profile_size.py)."""
_LEAST_VALUES = 2
MAX_NAME_BYTES = 100
"""Of a place as JSON in UTF-8. A longer one is no parameter that anybody named."""
MAX_FAILED_CALLS = 200
MAX_SUCCEEDED_CALLS = 50
_HASH = 16
_REQUIRED_SHARE = 0.98
"""Present in such a share of the successes, by their weight (see `FairWeights`), a
parameter is taken as required when no schema says so."""
_REQUIRED_SUCCESSES = 5
_CLOSED_SUCCESSES = 10


class ToolProfile(BaseModel):
    """What the calls of one tool under one schema looked like.

    Bounded in size, whatever is sent.
    """

    successes: int = 0
    failures: int = 0
    last_success: int = 0
    """Milliseconds since 1970, UTC, by the executions' clock; 0 when there was none."""
    last_failure: int = 0
    agents: dict[str, int] = Field(default_factory=dict)
    """A sample of agents that had success with the tool, as tokens, with their successes."""
    parameters: dict[str, ParameterProfile] = Field(default_factory=dict)
    inner: dict[str, ParameterProfile] = Field(default_factory=dict)
    """Places inside the parameters, such as `flights[]` and `flights[].date`."""
    failed_calls: dict[str, int] = Field(default_factory=dict)
    """Hashes of parameters that failed for what they are and did not succeed since, with the time
    in milliseconds."""
    succeeded_calls: dict[str, int] = Field(default_factory=dict)
    """The last ones, likewise, so that a failure that is learned late finds the later success."""

    def observe_success(
        self, parameters: JsonObject, session: str, agent: str = "", at: datetime | None = None
    ) -> None:
        """Count a call that succeeded.

        Args:
            parameters: what was sent.
            session: any text that tells sessions apart, also those of different agents.
            agent: any text that tells agents apart; the default is one unnamed agent.
            at: when it was called; the default is longer ago than any other call.
        """
        now, session, agent = milliseconds(at), token(session), token(agent, AGENT_DIGITS)
        self.successes += 1
        self.last_success = max(self.last_success, now)
        self._count_agent(agent)
        call = _call_hash(parameters)
        if self.failed_calls.get(call, now + 1) <= now:
            del self.failed_calls[call]
        touch(self.succeeded_calls, call, now, MAX_SUCCEEDED_CALLS)
        for _, value, profile in self._profiled(parameters, succeeded=True):
            profile.observe_success(value, session=session, agent=agent, at=now, room=self._room())

    def observe_failure(
        self,
        parameters: JsonObject,
        faults: Sequence[Fault] = (),
        at: datetime | None = None,
        *,
        blame_parameters: bool,
        lasting: bool = True,
    ) -> None:
        """Count a call that failed.

        Args:
            parameters: what was sent.
            faults: what the error says is wrong with it. Values that it names are remembered as
                refused; where it names no parameter, any of them may be at fault.
            at: when it was called; the default is longer ago than any other call.
            blame_parameters: whether it failed for what was sent; not so for a time-out.
            lasting: whether sending the very same again is known to fail; not so for a file that
                was not there at the time.
        """
        now = milliseconds(at)
        self.failures += 1
        self.last_failure = max(self.last_failure, now)
        named = blamed_values(parameters, faults) if blame_parameters else {}
        unknown = blame_parameters and not any(fault.path for fault in faults)
        for place, value, profile in self._profiled(parameters, succeeded=False):
            profile.failures += 1
            profile.last_seen = max(profile.last_seen, now)
            if unknown or place in named:
                profile.failed.observe_shape(value)
        for place, (fault, value) in named.items():
            if known := self.at(place):
                beyond = fault.kind == "out_of_range" and not fault.of_length
                known.observe_refusal(value, now, out_of_range=beyond, room=self._room())
        if (
            blame_parameters and lasting and not is_redacted(parameters)
        ):  # one mask stands for many values
            call = _call_hash(parameters)
            if self.succeeded_calls.get(call, -1) < now:
                touch(self.failed_calls, call, now, MAX_FAILED_CALLS)

    def seen_by(self, agent: str) -> "ToolProfile":
        """The profile for an agent that asks: its own calls make no other one's value private.

        Where it and one other use the tool, the other is alone as far as the asker is concerned.
        """
        if len(self.agents) != 2 or token(agent, AGENT_DIGITS) not in self.agents:
            return self
        alone = {"is_shared": False}
        return self.model_copy(
            update={
                "parameters": {n: p.model_copy(update=alone) for n, p in self.parameters.items()},
                "inner": {n: p.model_copy(update=alone) for n, p in self.inner.items()},
            }
        )

    def is_known_to_fail(self, parameters: JsonObject) -> bool:
        """Whether exactly these parameters failed, and did not succeed since."""
        return _call_hash(parameters) in self.failed_calls

    def at(self, place: str) -> ParameterProfile | None:
        """A parameter, or a place inside of one such as `flights[].date`."""
        return self.parameters.get(place) or self.inner.get(place)

    def common_values(self, place: str) -> list[CommonValue]:
        """Values at a place that are common knowledge, that of the greatest weight first."""
        profile = self.at(place)
        return profile.common_values() if profile else []

    def view(self) -> ToolView:
        """The parameters as the successes show them, for tools without a schema."""
        all_known = len(self.parameters) < MAX_PARAMETERS
        return self._view("", self.parameters, self, self.successes, all_known=all_known)

    def inner_view(self, path: Path) -> ToolView | None:
        """The same of the objects at a place inside the parameters; None when none was seen.

        `path` leads to an object, as a fault's does: `("flights", 0)` or `("address",)`.
        """
        place = place_of(path)
        parent = self.at(place)
        objects = parent.types.get("object", 0) if parent else 0
        if parent is None or not objects:
            return None
        start = f"{place}."
        members = {
            key[len(start) :]: profile
            for key, profile in self.inner.items()
            if key.startswith(start) and not set(key[len(start) :]) & set(".[")
        }
        return self._view(start, members, parent, objects, all_known=len(self.inner) < MAX_INNER)

    def _view(
        self,
        start: str,
        members: Mapping[str, ParameterProfile],
        parent: "ToolProfile | ParameterProfile",
        calls: int,
        *,
        all_known: bool,
    ) -> ToolView:
        fair = FairWeights.among(parent.successes, parent.agents)
        nearly_all = _REQUIRED_SHARE * fair.weight(parent.successes, parent.agents)
        views = {}
        for name, profile in members.items():
            if not profile.successes:
                continue
            items = self.inner.get(f"{start}{name}[]")
            views[name] = ParameterView(
                name=name,
                types=tuple(profile.usual_types()),
                required=calls >= _REQUIRED_SUCCESSES
                and fair.weight(profile.successes, profile.agents) >= nearly_all,
                item_types=tuple(items.usual_types()) if items else (),
            )
        return ToolView("profile", views, closed=calls >= _CLOSED_SUCCESSES and all_known)

    def _count_agent(self, agent: str) -> None:
        known = len(self.agents)
        count_in_sample(self.agents, agent, MAX_AGENTS)
        if known < 2 <= len(self.agents):
            self.settle()

    def _room(self) -> int:
        places = len(self.parameters) + len(self.inner)
        return min(MAX_VALUES, max(_LEAST_VALUES, MAX_ALL_VALUES // max(1, places)))

    def _profiled(
        self, parameters: JsonObject, *, succeeded: bool
    ) -> Iterator[tuple[str, JsonValue, ParameterProfile]]:
        """The places of a call, each with its value and its profile, made when it is new.

        Where there is no more room, one new place a call takes that of the weakest: with a success
        of any, with a failure only that of one without a success.
        """
        outer = list(islice(parameters.items(), MAX_PARAMETERS))
        for places, limit, seen in (
            (self.parameters, MAX_PARAMETERS, outer),
            (self.inner, MAX_INNER, inner_values(outer)),
        ):
            may_replace = True
            for place, value in seen:
                profile = places.get(place)
                if profile is None and _is_a_name(place):
                    if len(places) < limit:
                        profile = places[place] = ParameterProfile()
                        self.settle()
                    elif may_replace:
                        may_replace = False
                        profile = self._replace_weakest(places, place, succeeded=succeeded)
                if profile is not None:
                    yield place, value, profile

    def _replace_weakest(
        self, places: dict[str, ParameterProfile], place: str, *, succeeded: bool
    ) -> ParameterProfile | None:
        weakest = min(places, key=lambda each: standing(each, places[each]))
        if places[weakest].successes and not succeeded:
            return None
        del places[weakest]
        places[place] = ParameterProfile(is_shared=len(self.agents) > 1)
        return places[place]

    def settle(self) -> None:
        """Tell the parameters what they have of the tool, after one or an agent was added.

        That is their share of the values that may be kept, and whether several agents use it.
        """
        room, is_shared = self._room(), len(self.agents) > 1
        for profile in (*self.parameters.values(), *self.inner.values()):
            profile.trim(room)
            profile.is_shared = is_shared


def standing(place: str, profile: ParameterProfile) -> tuple[int, int, int, int, str]:
    """How well a place deserves to be kept: agents first, as for values."""
    agents = min(len(profile.agents), 2)
    return agents, profile.successes, profile.failures, profile.last_seen, place


def _is_a_name(place: str) -> bool:
    return len(place) <= MAX_NAME_BYTES and len(canonical_json(place).encode()) <= MAX_NAME_BYTES


def _call_hash(parameters: JsonObject) -> str:
    return content_hash(parameters)[:_HASH]
