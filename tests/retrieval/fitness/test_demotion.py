"""Demotion: seed 002's factor for fresh failures, which wears off, and monotone all the way."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.fitness.expected import HALF_LIFE, LikeScenario
from retrieval.answers.fitness.score import DEMOTION, MAX_FAILURES, demotion_of, similar_failures
from retrieval.knowledge.rows.statistics import TrialKind, trial_of
from tests.retrieval.fitness.fitness_strategies import (
    NOW,
    bad_kinds,
    like_scenarios,
    moments,
    run_of,
    similarities,
)


def demotion(like: list[LikeScenario], now: datetime = NOW) -> float:
    """What the failures leave of a score."""
    return demotion_of(similar_failures(like, now=now))


def alike(*kinds: TrialKind, similarity: float = 0.9) -> LikeScenario:
    """A scenario in which this just happened, one after the other."""
    return LikeScenario("a", similarity, run_of(*kinds, step=timedelta(seconds=1)))


def test_each_fresh_failure_leaves_seven_tenths_and_no_more_than_five_count() -> None:
    """As in seed 002."""
    for failures in range(8):
        found = demotion([alike(*["failure"] * failures)])
        assert found == pytest.approx(DEMOTION ** min(failures, MAX_FAILURES), rel=1e-4)


def test_five_of_equal_weight_are_the_most_similar_then_the_latest() -> None:
    """Most similar first, each with what is known of it."""
    at = NOW - timedelta(hours=1)
    like = [
        LikeScenario(f"s{n}", 0.71 + n / 100, [trial_of(at, f"c{n}", "high")], f"message {n}")
        for n in range(8)
    ]
    found = similar_failures(like, now=NOW)
    assert [each.scenario for each in found] == ["s7", "s6", "s5", "s4", "s3"]
    assert (found[0].severity, found[0].error_message, found[0].at) == ("high", "message 7", at)


def test_later_successes_and_time_wear_a_failure_off() -> None:
    """A fifth for each success in a like scenario, half after each half-life."""
    one = alike("failure", "success", "success")
    weight = similar_failures([one], now=NOW)[0].weight
    assert weight == pytest.approx(0.64, abs=1e-4)
    assert similar_failures([one], now=NOW + HALF_LIFE)[0].weight == pytest.approx(
        weight / 2, abs=1e-4
    )


@given(like_scenarios(), st.data())
def test_the_order_of_scenarios_and_trials_does_not_matter(
    like: list[LikeScenario], data: st.DataObject
) -> None:
    """The same knowledge, the same failures."""
    turned = [each._replace(trials=data.draw(st.permutations(each.trials))) for each in like]
    other = data.draw(st.permutations(turned))
    assert similar_failures(other, now=NOW) == similar_failures(like, now=NOW)


@given(like_scenarios(), similarities, moments)
def test_a_further_success_never_lowers_it(
    like: list[LikeScenario], similarity: float, at: datetime
) -> None:
    """In whatever scenario, at whatever time."""
    more = [*like, LikeScenario("new", similarity, [trial_of(at, "one more", "success")])]
    assert demotion(more) >= demotion(like) - 1e-12


@given(like_scenarios(), similarities, moments, bad_kinds)
def test_a_further_failure_never_raises_it(
    like: list[LikeScenario], similarity: float, at: datetime, kind: TrialKind
) -> None:
    """Also an old one that comes late and is more similar than all others."""
    more = [*like, LikeScenario("new", similarity, [trial_of(at, "one more", kind)])]
    assert demotion(more) <= demotion(like) + 1e-12


@given(like_scenarios(), similarities, similarities, moments, bad_kinds)
def test_a_more_similar_failure_never_raises_it(
    like: list[LikeScenario], one: float, other: float, at: datetime, kind: TrialKind
) -> None:
    """Everything else being equal."""
    farther, nearer = (
        LikeScenario("new", each, [trial_of(at, "one more", kind)]) for each in sorted((one, other))
    )
    assert demotion([*like, nearer]) <= demotion([*like, farther]) + 1e-12


def test_a_referral_demotes_like_a_failure() -> None:
    """In scenarios like that one; nobody marked it."""
    referred = [alike("referral", "success")]
    assert demotion(referred) == demotion([alike("failure", "success")]) < 1
    [failure] = similar_failures(referred, now=NOW)
    assert failure.severity is None
