"""The profile of a tool: its calls under one schema, in successes and in failures.

What is kept is bounded, whatever the order in which things were seen. A *sample* keeps those keys
whose hashes are the smallest (bottom-k sampling: Cohen and Kaplan, "Summarizing data using bottom-k
sketches", 2007): a key that was let go can never come back, so the counts that are kept are exact.
The *latest* keeps those keys that were seen last, by the clock of the executions.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from json import loads
from typing import NamedTuple, TypeVar

from aftercall.json_values import JsonObject, JsonValue, canonical_json, content_hash
from aftercall.redaction import is_redacted
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rows.principals import (
    FairWeights,
    is_one_stranger,
    largest_principal,
    make_mark,
    principal_of,
    principals_of,
)
from retrieval.knowledge.values.parameters import (
    ParameterView,
    Path,
    ToolView,
    inner_values,
    value_at,
    written_place,
)
from retrieval.knowledge.values.texts import Shape, is_number

AGENT_DIGITS = 6
"""Of the token of an agent."""
V = TypeVar("V")


def make_token(text: str, digits: int = 8) -> str:
    """Hexadecimal digits that stand for a text and say nothing else of it; the key of samples."""
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


@lru_cache(4_096)
def agent_token(agent: str) -> str:
    """Return the token of an agent, which begins with its principal's (`rows.principals`)."""
    return make_mark(agent, lambda name: make_token(name, AGENT_DIGITS))


def _to_milliseconds(moment: datetime | None) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)


def _has_place(sample: dict[str, V], key: str, limit: int) -> bool:
    """Return whether a key is among the smallest.

    The principal with the most keys makes space.
    """
    if key in sample or len(sample) < limit:
        return True
    marks = [*sample, key]
    if principals_of(marks) > 1:
        whose = largest_principal(marks)
        marks = [each for each in marks if principal_of(each) == whose]
    largest = max(marks)
    sample.pop(largest, None)
    return key != largest


def _count_in_sample(sample: dict[str, int], key: str, limit: int) -> None:
    if key in sample:
        sample[key] += 1
    elif _has_place(sample, key, limit):
        sample[key] = 1


def _touch_key(latest: dict[str, int], key: str, at: int, limit: int) -> None:
    """Remember when a key was seen, when it is among the latest; ties go to the larger key."""
    if latest.get(key, -1) >= at:
        return
    latest[key] = at
    if len(latest) > limit:
        least = min(latest.values())
        del latest[min([each for each, when in latest.items() if when == least])]


MAX_VALUES = 50
"""Values kept per parameter: the most widely used; 50 of a city or status list say enough. Up to an
eighth more are kept for a while."""
MAX_VALUE_BYTES = 100
"""Of a value's canonical JSON in UTF-8; a longer text is an intent, not a value."""
MAX_AGENTS = 8
"""Agents counted one by one; all others have one voice together."""
MAX_SESSIONS = 3
"""Sessions remembered per value; two already make it common knowledge."""
COMMON_SESSIONS = 2
"""From so many sessions on, a value is common knowledge of the tool (4-rules.md, Suggesting)."""
MAX_RANGES = 4
MAX_REFUSED = 16
MAX_BEYOND = 6


@dataclass(slots=True)
class ValueCount:
    """How often a value was in a success, from whom and when last."""

    count: int = 0
    sessions: list[str] = field(default_factory=list)
    """A sample of `MAX_SESSIONS`, as tokens."""
    agents: dict[str, int] = field(default_factory=dict)
    """A sample of `MAX_AGENTS`, as tokens, with their uses."""
    last_seen: int = 0
    """Milliseconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class CommonValue:
    """A value that may be proposed to others.

    `weight` is that of its `count` uses (see `FairWeights`), and `share` (0 to 1) the part that it
    is of the weight of all the parameter's successes.
    """

    value: JsonValue
    count: int
    weight: float
    share: float


class Boundary(NamedTuple):
    """Where a number works, and from where on it was refused as out of range, if that was seen."""

    fails_below: float | None
    """The largest refused number that is smaller than all that worked."""
    smallest: float
    largest: float
    fails_above: float | None
    """The smallest refused number that is larger than all that worked."""


@dataclass(slots=True)
class ParameterProfile(Shape):
    """What a parameter was. The shape is that of its values in successes."""

    successes: int = 0
    failures: int = 0
    last_seen: int = 0
    """Of a success or failure; milliseconds since 1970, UTC."""
    agents: dict[str, int] = field(default_factory=dict)
    """A sample of `MAX_AGENTS` that had success with the parameter, as tokens, with their uses."""
    is_shared: bool = False
    """Whether several agents had success with the *tool*, be it without this parameter."""
    values: dict[str, ValueCount] = field(default_factory=dict)
    """By canonical JSON. A count is a lower bound where more than `MAX_VALUES` were seen."""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The smallest and largest number of each agent of a sample of `MAX_RANGES`."""
    failed: Shape = field(default_factory=Shape)
    """Of the values that failures are blamed on: named by the error, or all when it names none."""
    refused: dict[str, int] = field(default_factory=dict)
    """The values last named by an error, without those that ever worked: tokens with the time."""
    beyond: dict[str, int] = field(default_factory=dict)
    """The numbers last refused as out of range, with the time."""

    def observe_success(
        self, value: JsonValue, *, session: str, agent: str, at: int, room: int
    ) -> None:
        """Count a value that worked, and keep `room` values; `session` and `agent` are tokens."""
        self.successes += 1
        self.last_seen = max(self.last_seen, at)
        _count_in_sample(self.agents, agent, MAX_AGENTS)
        self.observe_shape(value)
        if is_number(value) and _has_place(self.ranges, agent, MAX_RANGES):
            number = float(value)
            low, high = self.ranges.get(agent, (number, number))
            self.ranges[agent] = min(low, number), max(high, number)
        key = _value_key(value)
        if key is None:
            return
        known = self.values.get(key)
        if known is None:
            known = self.values[key] = ValueCount()
        known.count += 1
        known.last_seen = max(known.last_seen, at)
        _count_in_sample(known.agents, agent, MAX_AGENTS)
        if session not in known.sessions:
            known.sessions = sorted([*known.sessions, session])[:MAX_SESSIONS]
        if self.refused:
            self.refused.pop(make_token(key, 16), None)
        if len(self.values) > room or len(self.refused) > room:
            self.trim_values(room)

    def is_refused(self, value: JsonValue) -> bool:
        """Return whether errors named this value and no success with it is known."""
        key = _value_key(value)
        return key is not None and make_token(key, 16) in self.refused

    def common_values(self) -> list[CommonValue]:
        """Return the values that are common knowledge, the heaviest first, then the latest.

        Two sessions must have had success with it and, where several agents had success with the
        tool, two agents: no agent alone makes a value common, however many its sessions.
        """
        fair, total = FairWeights.from_calls(self.successes, self.agents), self.success_weight()
        weighed = [
            (-fair.fair_weight(known.count, known.agents), -known.last_seen, key)
            for key, known in self.values.items()
            if self._is_common(known)
        ]
        return [
            CommonValue(loads(key), self.values[key].count, -weight, -weight / total)
            for weight, _, key in sorted(weighed)
        ]

    def count_common(self, value: JsonValue) -> int:
        """Return how often a value of `common_values` worked; 0 if it is none of them."""
        known = self.values.get(_value_key(value) or "")
        return known.count if known is not None and self._is_common(known) else 0

    def _is_common(self, known: ValueCount) -> bool:
        is_of_several = len(known.agents) > 1 or not self.is_shared
        return is_of_several and len(known.sessions) >= COMMON_SESSIONS

    def success_weight(self) -> float:
        """Return the weight of all successes: see `FairWeights`. Shares are parts of it."""
        return FairWeights.from_calls(self.successes, self.agents).fair_weight(
            self.successes, self.agents
        )

    def find_boundary(self) -> Boundary | None:
        """Return the smallest and largest numbers that worked, and the nearest refused beyond them.

        Where several agents had success with the tool, two must have come as far: what one alone
        states to have sent with success sets no bound for the others.
        """
        if self.minimum is None or self.maximum is None:
            return None
        smallest, largest = self.minimum, self.maximum
        if self.is_shared:
            if len(self.ranges) < 2:
                return None
            smallest = sorted(low for low, _ in self.ranges.values())[1]
            largest = sorted(high for _, high in self.ranges.values())[-2]
        refused = [float(number) for number in self.beyond]
        return Boundary(
            max((number for number in refused if number < smallest), default=None),
            smallest,
            largest,
            min((number for number in refused if number > largest), default=None),
        )

    def trim_values(self, room: int) -> None:
        """Let go of the least used values, but only once there are an eighth more than `room`."""
        if len(self.values) > room + room // 8:
            # First who uses it, so that a flood of one drives out nothing that several use.
            by_priority = sorted(
                (principals_of(known.agents), len(known.agents), len(known.sessions), known.count,
                 known.last_seen, key)
                for key, known in self.values.items()
            )  # fmt: skip
            for *_, key in by_priority[:-room]:
                del self.values[key]
        if len(self.refused) > room:
            latest = sorted(zip(self.refused.values(), self.refused, strict=True))[-room:]
            self.refused = {key: at for at, key in latest}


def _value_key(value: JsonValue) -> str | None:
    if isinstance(value, dict | list):
        return None
    if isinstance(value, str) and (len(value) > MAX_VALUE_BYTES or is_redacted(value)):
        return None
    key = canonical_json(value)
    return key if len(key.encode()) <= MAX_VALUE_BYTES else None


_NOT_THE_VALUE = frozenset({"missing", "unexpected"})


def _blamed_values(
    parameters: JsonObject, faults: Sequence[Fault]
) -> dict[str, tuple[Fault, JsonValue]]:
    """Return the places whose values an error is about, with the fault and the value there.

    A missing or superfluous parameter states nothing of a value. The only parameter
    of a call is meant also where the error names none.
    """
    named: dict[str, tuple[Fault, JsonValue]] = {
        written_place(fault.path): (fault, value)
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
"""Of a place as JSON in UTF-8. A longer one is no parameter that anyone named."""
MAX_FAILED_CALLS = 200
MAX_SUCCEEDED_CALLS = 50
_HASH = 16
_REQUIRED_SHARE = 0.98
"""Present in such a share of the successes, by their weight (see `FairWeights`), a
parameter is taken as required when no schema states so."""
_REQUIRED_SUCCESSES = 5
_CLOSED_SUCCESSES = 10


@dataclass(slots=True)
class ToolProfile:
    """What the calls of one tool under one schema looked like; bounded, whatever is sent."""

    successes: int = 0
    failures: int = 0
    agents: dict[str, int] = field(default_factory=dict)
    """A sample of agents that had success with the tool, as tokens, with their successes."""
    parameters: dict[str, ParameterProfile] = field(default_factory=dict)
    inner: dict[str, ParameterProfile] = field(default_factory=dict)
    """Places inside the parameters, such as `flights[]` and `flights[].date`."""
    failed_calls: dict[str, int] = field(default_factory=dict)
    """Hashes of parameters that failed for what they are and did not succeed since, with the time
    in milliseconds."""
    succeeded_calls: dict[str, int] = field(default_factory=dict)
    """The last ones, likewise, so that a failure that is learned late finds the later success."""

    def observe_success(
        self, parameters: JsonObject, session: str, agent: str = "", at: datetime | None = None
    ) -> str:
        """Count a call that succeeded; returns the hash of its parameters (`call_hash`).

        `session` and `agent` are any texts that show them apart, sessions also those of different
        agents. Without `at` it was longer ago than any other call.
        """
        now, session, agent = _to_milliseconds(at), make_token(session), agent_token(agent)
        self.successes += 1
        known = len(self.agents)
        _count_in_sample(self.agents, agent, MAX_AGENTS)
        if known < 2 <= len(self.agents):
            self.settle_shares()
        call = call_hash(parameters)
        if self.failed_calls.get(call, now + 1) <= now:
            del self.failed_calls[call]
        _touch_key(self.succeeded_calls, call, now, MAX_SUCCEEDED_CALLS)
        for _, value, profile in self._profile_places(parameters, succeeded=True):
            profile.observe_success(
                value, session=session, agent=agent, at=now, room=self._value_room()
            )
        return call

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

        Values that the `faults` name are remembered as refused; where they name no parameter, any
        of them may be at fault. `blame_parameters` states that it failed for what was sent, and for
        no time-out; `lasting` that sending the very same again is known to fail, as for a file that
        was not there at the time it is not.
        """
        now = _to_milliseconds(at)
        self.failures += 1
        named = _blamed_values(parameters, faults) if blame_parameters else {}
        unknown = blame_parameters and not any(fault.path for fault in faults)
        for place, value, profile in self._profile_places(parameters, succeeded=False):
            profile.failures += 1
            profile.last_seen = max(profile.last_seen, now)
            if unknown or place in named:
                profile.failed.observe_shape(value)
        for place, (fault, value) in named.items():
            known, key = self.profile_at(place), _value_key(value)
            if known is None or key is None:
                continue
            if key not in known.values:  # one that is known to work is not refused
                _touch_key(
                    known.refused, make_token(key, 16), now, min(self._value_room(), MAX_REFUSED)
                )
            if fault.kind == "out_of_range" and not fault.of_length and is_number(value):
                _touch_key(known.beyond, repr(float(value)), now, MAX_BEYOND)
        if blame_parameters and lasting and not is_redacted(parameters):  # a mask is of many values
            call = call_hash(parameters)
            if self.succeeded_calls.get(call, -1) < now:
                _touch_key(self.failed_calls, call, now, MAX_FAILED_CALLS)

    def seen_by(self, agent: str) -> "ToolProfile":
        """Return the profile for an agent that asks: where another one used the tool, it is shared.

        Where several others use it, what one other caller alone sent is no parameter of the tool.
        """
        own = self.without_strangers(principal_of(agent_token(agent)))
        if own is not self:
            return own
        if len(self.agents) != 1 or agent_token(agent) in self.agents:
            return self
        return replace(
            self,
            parameters={n: replace(p, is_shared=True) for n, p in self.parameters.items()},
            inner={n: replace(p, is_shared=True) for n, p in self.inner.items()},
        )

    def without_strangers(self, own: str = "") -> "ToolProfile":
        """Return the profile without parameters that one other principal than `own` alone sent."""
        if not (strange := self._foreign_parameters(own)):
            return self
        known = {name: p for name, p in self.parameters.items() if name not in strange}
        return replace(self, parameters=known)

    def _foreign_parameters(self, own: str) -> set[str]:
        """Return parameters with which a single user of several had success."""
        whose = set(map(principal_of, self.agents)) - {own}
        if len(whose) < 2:
            return set()
        by_name = {n: set(map(principal_of, p.agents)) for n, p in self.parameters.items()}
        return {n for n, by in by_name.items() if own not in by and is_one_stranger(by, whose)}

    def is_known_to_fail(self, parameters: JsonObject) -> bool:
        """Return whether exactly these parameters failed, and did not succeed since."""
        return call_hash(parameters) in self.failed_calls

    def profile_at(self, place: str) -> ParameterProfile | None:
        """Return a parameter, or a place inside of one such as `flights[].date`."""
        return self.parameters.get(place) or self.inner.get(place)

    def common_values(self, place: str) -> list[CommonValue]:
        """Return values at a place that are common knowledge, that of the greatest weight first."""
        profile = self.profile_at(place)
        return profile.common_values() if profile else []

    def make_view(self) -> ToolView:
        """Return the parameters as the successes show them, for tools without a schema."""
        all_known = len(self.parameters) < MAX_PARAMETERS
        return self._make_view("", self.parameters, self, self.successes, all_known=all_known)

    def inner_view(self, path: Path) -> ToolView | None:
        """Return the same of the objects at a path, as `("flights", 0)`.

        None when none was seen.
        """
        place = written_place(path)
        parent = self.profile_at(place)
        objects = parent.types.get("object", 0) if parent else 0
        if parent is None or not objects:
            return None
        members, all_known = self._members_of(place), len(self.inner) < MAX_INNER
        return self._make_view(f"{place}.", members, parent, objects, all_known=all_known)

    def profile_around(self, path: Path) -> "ToolProfile":
        """Return what is known inside of a call around a fault's place, as a profile."""
        if isinstance(path[-1], int):
            known = self.profile_at(written_place(path))
            return ToolProfile(self.successes, parameters={str(path[-1]): known} if known else {})
        return ToolProfile(self.successes, parameters=self._members_of(written_place(path[:-1])))

    def _members_of(self, place: str) -> dict[str, ParameterProfile]:
        start = f"{place}."
        return {
            key[len(start) :]: profile
            for key, profile in self.inner.items()
            if key.startswith(start) and not set(key[len(start) :]) & set(".[")
        }

    def _make_view(
        self,
        start: str,
        members: Mapping[str, ParameterProfile],
        parent: "ToolProfile | ParameterProfile",
        calls: int,
        *,
        all_known: bool,
    ) -> ToolView:
        fair = FairWeights.from_calls(parent.successes, parent.agents)
        nearly_all = _REQUIRED_SHARE * fair.fair_weight(parent.successes, parent.agents)
        views = {}
        for name, profile in members.items():
            if not profile.successes:
                continue
            items = self.inner.get(f"{start}{name}[]")
            views[name] = ParameterView(
                name=name,
                types=tuple(profile.usual_types()),
                required=calls >= _REQUIRED_SUCCESSES
                and fair.fair_weight(profile.successes, profile.agents) >= nearly_all,
                item_types=tuple(items.usual_types()) if items else (),
            )
        return ToolView("profile", views, closed=calls >= _CLOSED_SUCCESSES and all_known)

    def _value_room(self) -> int:
        places = len(self.parameters) + len(self.inner)
        return min(MAX_VALUES, max(_LEAST_VALUES, MAX_ALL_VALUES // max(1, places)))

    def _profile_places(
        self, parameters: JsonObject, *, succeeded: bool
    ) -> Iterator[tuple[str, JsonValue, ParameterProfile]]:
        """Places of a call with value and profile; a new one may take the space of the weakest."""
        outer = list(islice(parameters.items(), MAX_PARAMETERS))
        for places, limit, seen in (
            (self.parameters, MAX_PARAMETERS, outer),
            (self.inner, MAX_INNER, inner_values(outer)),
        ):
            may_replace = True
            for place, value in seen:
                profile = places.get(place)
                if profile is None and len(canonical_json(place).encode()) <= MAX_NAME_BYTES:
                    if len(places) < limit:
                        profile = places[place] = ParameterProfile()
                        self.settle_shares()
                    elif may_replace:
                        may_replace = False
                        profile = self._replace_weakest(places, place, succeeded=succeeded)
                if profile is not None:
                    yield place, value, profile

    def _replace_weakest(
        self, places: dict[str, ParameterProfile], place: str, *, succeeded: bool
    ) -> ParameterProfile | None:
        def place_priority(name: str) -> tuple[int, int, int, int, int, str]:
            known = places[name]
            # Principals and agents first, as for values.
            principals = min(principals_of(known.agents), 2)
            agents = min(len(known.agents), 2)
            return principals, agents, known.successes, known.failures, known.last_seen, name

        weakest = min(places, key=place_priority)
        if places[weakest].successes and not succeeded:
            return None
        del places[weakest]
        places[place] = ParameterProfile(is_shared=len(self.agents) > 1)
        return places[place]

    def settle_shares(self) -> None:
        """Give the parameters their share of the values, and note whether several use the tool."""
        room, is_shared = self._value_room(), len(self.agents) > 1
        for profile in (*self.parameters.values(), *self.inner.values()):
            profile.trim_values(room)
            profile.is_shared = is_shared


def call_hash(parameters: JsonObject) -> str:
    """Return the first 16 hexadecimal digits of the hash of a call's parameters."""
    return content_hash(parameters)[:_HASH]
