"""Learned in any order, a profile is the same; beyond its bounds nothing is invented."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.json_values import canonical_json
from mongo.records import decoded, encoded
from retrieval.knowledge.profile import (
    COMMON_SESSIONS,
    MAX_ALL_VALUES,
    MAX_INNER,
    MAX_PARAMETERS,
    ToolProfile,
)
from tests.retrieval.profiles import Seen, at, calls, profile_of


def test_beyond_the_bounds_nothing_is_invented() -> None:
    """Sizes stay bounded, counts too low at most, and what is common is so in truth."""
    dice = random.Random(5)  # noqa: S311  # a repeatable history, no secret
    profile = ToolProfile()
    sessions: dict[tuple[str, str], set[str]] = {}
    agents: dict[tuple[str, str], set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for number in range(1_500):
        agent, session = f"agent {number % 20}", f"session {number % 60}"
        call = {f"p{dice.randint(0, 90)}": int(dice.expovariate(0.02)) for _ in range(6)}
        profile.observe_success(call, session, agent, at(number))
        for name, value in call.items():
            key = (name, canonical_json(value))
            sessions.setdefault(key, set()).add(session)
            agents.setdefault(key, set()).add(agent)
            counts[key] = counts.get(key, 0) + 1
    assert len(profile.parameters) <= MAX_PARAMETERS
    assert len(profile.inner) <= MAX_INNER
    assert sum(len(p.values) for p in profile.parameters.values()) <= MAX_ALL_VALUES
    found = 0
    for name, parameter in profile.parameters.items():
        for value, known in parameter.values.items():
            assert known.count <= counts[name, value]
            assert len(known.agents) <= len(agents[name, value])
        for common in parameter.common_values():
            key = (name, canonical_json(common.value))
            assert len(sessions[key]) >= COMMON_SESSIONS
            assert len(agents[key]) > 1
            assert common.weight <= common.count <= counts[key]
            found += 1
    assert found > 10
    assert profile.successes == 1_500


@settings(deadline=None)
@given(st.lists(calls, max_size=40), st.data())
def test_the_order_of_calls_does_not_matter(seen: list[Seen], data: st.DataObject) -> None:
    """Only their own times count; and what is stored is what was learned."""
    whole = profile_of(*seen)
    assert profile_of(*data.draw(st.permutations(seen))) == whole
    assert decoded(ToolProfile, encoded(whole)) == whole
