"""The posterior success rate: near and recent trials count most; monotone; draws follow it."""

from datetime import datetime, timedelta
from random import Random
from statistics import fmean

import pytest
from hypothesis import given

from retrieval.fitness.score import HALF_LIFE, PRIOR_MEAN, LikeScenario, draw_from, posterior_of
from retrieval.fitness.statistics import Trial, TrialKind, trial_of
from tests.retrieval.fitness.fitness_strategies import (
    NOW,
    bad_kinds,
    like_scenarios,
    moments,
    run_of,
    similarities,
    trials,
)


def chance(seed: int) -> Random:
    """Draws that repeat."""
    return Random(seed)  # noqa: S311 - data for a test


def test_a_tool_never_tried_is_worth_a_try_and_uncertain() -> None:
    """The prior: four of five tools work."""
    found = posterior_of([], [], now=NOW)
    assert (found.successes, found.failures, found.mean) == (0, 0, PRIOR_MEAN)
    assert 0.5 < found.lower_bound < PRIOR_MEAN


def test_a_scenario_never_seen_is_judged_by_the_others_and_weakly() -> None:
    """The mean is the tool's, the uncertainty that of two trials; one near trial moves it."""
    good = run_of(*["success"] * 40)
    found = posterior_of([], good, now=NOW)
    assert found.mean > 0.9
    failed = LikeScenario("s", 1.0, run_of("failure"))
    assert posterior_of([failed], good, now=NOW).mean < 0.7


def test_near_and_recent_trials_count_most() -> None:
    """A trial in the same scenario, just now, counts 1; a half-life ago a half; far away 0."""
    now_and_then = [trial_of(NOW, "a", "success"), trial_of(NOW - HALF_LIFE, "b", "success")]
    assert posterior_of([LikeScenario("s", 1.0, now_and_then)], [], now=NOW).successes == 1.5
    assert posterior_of([LikeScenario("s", 0.2, now_and_then)], [], now=NOW).successes == 0
    near = posterior_of([LikeScenario("s", 0.9, now_and_then)], [], now=NOW).successes
    assert 0 < near < 1.5


def test_draws_have_the_mean_of_the_posterior() -> None:
    """Of 4,000 draws, to 0.02; and the same source of chance gives the same draws."""
    known = LikeScenario("s", 1.0, run_of("success", "success", "success", "failure"))
    posterior = posterior_of([known], [], now=NOW)
    random, again = chance(1), chance(1)
    draws = [draw_from(posterior, random) for _ in range(4_000)]
    assert fmean(draws) == pytest.approx(posterior.mean, abs=0.02)
    assert draws[0] == draw_from(posterior, again)


@given(like_scenarios(), trials(), similarities, moments)
def test_a_further_success_never_lowers_it(
    like: list[LikeScenario], known: list[Trial], similarity: float, at: datetime
) -> None:
    """Neither the mean nor the lower bound."""
    trial = trial_of(at, "one more", "success")
    before = posterior_of(like, known, now=NOW)
    after = posterior_of([*like, LikeScenario("n", similarity, [trial])], [*known, trial], now=NOW)
    assert after.mean >= before.mean - 1e-9
    assert after.lower_bound >= before.lower_bound - 1e-9


@given(like_scenarios(), trials(), similarities, moments, bad_kinds)
def test_a_further_failure_never_raises_it(
    like: list[LikeScenario], known: list[Trial], similarity: float, at: datetime, kind: TrialKind
) -> None:
    """Neither the mean nor the lower bound."""
    trial = trial_of(at, "one more", kind)
    before = posterior_of(like, known, now=NOW)
    after = posterior_of([*like, LikeScenario("n", similarity, [trial])], [*known, trial], now=NOW)
    assert after.mean <= before.mean + 1e-9
    assert after.lower_bound <= before.lower_bound + 1e-9


@given(like_scenarios(), trials(), similarities, similarities, moments)
def test_a_more_similar_failure_never_raises_it(
    like: list[LikeScenario], known: list[Trial], one: float, other: float, at: datetime
) -> None:
    """Everything else being equal."""
    trial = trial_of(at, "one more", "failure")
    farther, nearer = (
        posterior_of([*like, LikeScenario("n", each, [trial])], known, now=NOW)
        for each in sorted((one, other))
    )
    assert nearer.mean <= farther.mean + 1e-9
    assert nearer.lower_bound <= farther.lower_bound + 1e-9


def test_old_failures_of_a_tool_count_less_than_its_late_successes() -> None:
    """A quarter of a year old against now."""
    like = [
        LikeScenario("s", 1.0, [
            *(trial_of(NOW - timedelta(days=90), f"f{n}", "failure") for n in range(10)),
            *(trial_of(NOW, f"s{n}", "success") for n in range(10)),
        ])
    ]  # fmt: skip
    assert posterior_of(like, [], now=NOW).mean > 0.85


@given(like_scenarios(), trials(), similarities, moments)
def test_a_referral_speaks_against_like_scenarios_only(
    like: list[LikeScenario], known: list[Trial], similarity: float, at: datetime
) -> None:
    """Never raised by one; in no way changed by one of a scenario that is not like."""
    trial = trial_of(at, "one more", "referral")
    before = posterior_of(like, known, now=NOW)
    after = posterior_of([*like, LikeScenario("n", similarity, [trial])], [*known, trial], now=NOW)
    assert after.mean <= before.mean + 1e-9
    assert posterior_of(like, [*known, trial], now=NOW) == before
