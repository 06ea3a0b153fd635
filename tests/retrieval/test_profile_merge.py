"""Merging profiles: two halves make the whole."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.json_values import canonical_json
from retrieval.profile import MAX_PARAMETERS, ToolProfile, merge
from retrieval.profile.parameter import COMMON_SESSIONS
from retrieval.profile.tool import MAX_ALL_VALUES, MAX_INNER
from retrieval.reading import Fault
from tests.retrieval.profiles import Seen, at, calls, profile_of


@settings(deadline=None)
@given(st.lists(calls, max_size=40), st.data())
def test_two_halves_make_the_whole(seen: list[Seen], data: st.DataObject) -> None:
    """However the calls are divided, and in which order each half and the whole learns them."""
    whole = profile_of(*seen)
    shuffled = data.draw(st.permutations(seen))
    cut = data.draw(st.integers(0, len(seen)))
    left, right = profile_of(*shuffled[:cut]), profile_of(*shuffled[cut:])
    assert merge(left, right) == whole
    assert merge(right, left) == whole
    assert profile_of(*shuffled[:cut]) == left, "a merged profile is not changed"


@settings(deadline=None)
@given(st.lists(calls, max_size=20))
def test_nothing_merges_to_the_same(seen: list[Seen]) -> None:
    """The empty profile is neutral, and what is stored merges as what was learned."""
    profile = profile_of(*seen)
    stored = ToolProfile.model_validate_json(profile.model_dump_json())
    assert stored == profile
    assert merge(ToolProfile(), stored) == profile


def test_beyond_the_bounds_nothing_is_invented() -> None:
    """Sizes stay bounded, counts too low at most, and what is common is so in truth."""
    dice = random.Random(5)  # noqa: S311  # a repeatable history, no secret
    profile, halves = ToolProfile(), [ToolProfile(), ToolProfile()]
    sessions: dict[tuple[str, str], set[str]] = {}
    agents: dict[tuple[str, str], set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for number in range(1_500):
        agent, session = f"agent {number % 20}", f"session {number % 60}"
        call = {f"p{dice.randint(0, 90)}": int(dice.expovariate(0.02)) for _ in range(6)}
        for learner in (profile, halves[number % 2]):
            learner.observe_success(call, session, agent, at(number))
        for name, value in call.items():
            key = (name, canonical_json(value))
            sessions.setdefault(key, set()).add(session)
            agents.setdefault(key, set()).add(agent)
            counts[key] = counts.get(key, 0) + 1
    merged = merge(*halves)
    for each in (profile, merged):
        assert len(each.parameters) <= MAX_PARAMETERS
        assert len(each.inner) <= MAX_INNER
        assert sum(len(p.values) for p in each.parameters.values()) <= MAX_ALL_VALUES
        found = 0
        for name, parameter in each.parameters.items():
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
    assert merged.successes == profile.successes == 1_500
    assert merged.agents == profile.agents


def test_a_success_in_one_half_lifts_an_earlier_refusal_in_the_other() -> None:
    """Of a whole call only when it was later; of a value whenever it was."""
    call = {"zone": "UTC"}
    failing, late, early = ToolProfile(), ToolProfile(), ToolProfile()
    failing.observe_failure(call, [Fault("invalid", ("zone",))], at(10), blame_parameters=True)
    late.observe_success(call, "s", "ada", at(11))
    early.observe_success(call, "s", "ada", at(9))
    for worked, expected in ((late, False), (early, True)):
        for merged in (merge(failing, worked), merge(worked, failing)):
            assert merged.is_known_to_fail(call) is expected
            assert not merged.parameters["zone"].is_refused("UTC")
