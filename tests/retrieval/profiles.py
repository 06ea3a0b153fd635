"""Calls as tools see them, to make profiles from."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.tool.profile import ToolProfile

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment, in seconds after a start."""
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Seen:
    """One call with its outcome; `faults` of a failure alone."""

    parameters: dict[str, Any]
    session: str
    agent: str
    seconds: int
    failed: bool
    blamed: bool
    faults: tuple[Fault, ...]

    def learn(self, profile: ToolProfile) -> None:
        """Add it to a profile."""
        if self.failed:
            profile.observe_failure(
                self.parameters, self.faults, at(self.seconds), blame_parameters=self.blamed
            )
        else:
            session = f"{self.agent}/{self.session}"
            profile.observe_success(self.parameters, session, self.agent, at(self.seconds))


def profile_of(*seen: Seen) -> ToolProfile:
    """The profile of calls, learned in this order."""
    profile = ToolProfile()
    for each in seen:
        each.learn(profile)
    return profile


_plain = st.one_of(
    st.integers(-3, 4),
    st.booleans(),
    st.none(),
    st.floats(-2, 2, width=16),
    st.sampled_from(
        ["", "JFK", "one_way", "2026-03-01", "14:30", "x" * 300, "New York",
         "[redacted:string:1-8]", "[hashed:integer:0123456789abcdef]"]
    ),
)  # fmt: skip
_rows = st.lists(st.dictionaries(st.sampled_from(["x", "y"]), _plain), max_size=3)
_parameters = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), _plain, max_size=3
) | st.fixed_dictionaries({"a": _plain}, optional={"rows": _rows, "tags": st.lists(_plain)})
_faults = st.lists(
    st.builds(
        Fault,
        st.sampled_from(["missing", "out_of_range", "not_allowed", "unexpected"]),
        st.sampled_from([(), ("a",), ("b",), ("rows", 0, "x"), ("elsewhere",)]),
    ),
    max_size=2,
).map(tuple)

calls = st.builds(
    Seen,
    parameters=_parameters,
    session=st.sampled_from("123456"),
    agent=st.sampled_from([f"agent {number}" for number in range(12)]),
    seconds=st.integers(0, 20),
    failed=st.booleans(),
    blamed=st.booleans(),
    faults=_faults,
)
"""More agents and sessions than are counted one by one, but few names and values."""
