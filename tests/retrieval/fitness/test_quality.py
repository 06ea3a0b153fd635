"""Quality: seed 002's numbers, bounds, monotone in every trial, whatever the order; recovery."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.fitness.expected import HALF_LIFE
from retrieval.answers.fitness.score import quality_of
from retrieval.knowledge.rows.statistics import (
    MAX_REFERRALS,
    Trial,
    TrialKind,
    merge_trials,
    trial_of,
)
from tests.retrieval.fitness.fitness_strategies import (
    EARLIEST,
    NOW,
    bad_kinds,
    moments,
    run_of,
    trials,
)

EXACT = 1e-9
"""Rounding."""
starts = st.floats(0, 1)
GRAVITY: tuple[TrialKind, ...] = ("success", "low", "medium", "high")
NOT_GRAVER = [(GRAVITY[a], GRAVITY[b]) for a in range(4) for b in range(a, 4)]


@pytest.mark.parametrize(
    ("kinds", "known", "expected"),
    [
        ([], {}, 1.0), (["high"], {}, 0.9), (["high", "medium"], {}, 0.85),
        (["high", "medium", "high"], {}, 0.75),
        # The sixth mark takes 0.05 more, the eleventh 0.10 instead.
        (["low"] * 5, {}, 0.95), (["low"] * 6, {}, 0.89), (["low"] * 10, {}, 0.65),
        (["low"] * 11, {}, 0.54), (["low"] * 12, {}, 0.43),
        # Executions count without anyone marking them: an average of outcomes that forgets.
        (["failure"], {}, 0.9), (["failure"] * 2, {}, 0.81),
        # Half of the debt wears off in an idle half-life.
        (["high"] * 4, {}, 0.6), (["high"] * 4, {"now": NOW + HALF_LIFE}, 0.8),
        # A promoted version starts with what it inherited; its marks count from none.
        ([], {"start": 0.6}, 0.6), (["success"], {"start": 0.6}, 0.64),
        (["high"], {"start": 0.6}, 0.5),
    ],
)  # fmt: skip
def test_quality_has_the_numbers_of_seed_002_and_wears_off(
    kinds: list[TrialKind], known: dict[str, Any], expected: float
) -> None:
    """Marks one after the other, by their severity."""
    assert quality_of(run_of(*kinds), **{"now": NOW} | known) == pytest.approx(expected)


def test_a_tool_that_works_again_comes_back() -> None:
    """From 0, 22 successes bring it to 0.9 within the hour; so do 48 days in which nobody calls."""
    broken: list[TrialKind] = ["high"] * 20
    assert quality_of(run_of(*broken, *["success"] * 22), now=NOW) > 0.9
    later = NOW + timedelta(days=48)
    assert quality_of(run_of(*broken), now=NOW) == 0
    assert quality_of(run_of(*broken), now=later) > 0.9


@given(trials(), starts)
def test_quality_is_between_zero_and_one(known: list[Trial], start: float) -> None:
    """Whatever happened, and whatever it began with."""
    assert 0 <= quality_of(known, now=NOW, start=start, since=EARLIEST) <= 1


@given(trials(), st.randoms(use_true_random=False))
def test_the_order_in_which_trials_are_learned_does_not_matter(
    known: list[Trial], random: Random
) -> None:
    """A set of trials has one quality."""
    shuffled = random.sample(known, len(known))
    assert quality_of(shuffled, now=NOW) == quality_of(known, now=NOW)


@given(trials(), moments, starts, moments)
def test_a_further_success_never_lowers_it(
    known: list[Trial], at: datetime, start: float, since: datetime
) -> None:
    """Wherever in time it falls."""
    more = [*known, trial_of(at, "one more", "success")]
    before = quality_of(known, now=NOW, start=start, since=since)
    assert quality_of(more, now=NOW, start=start, since=since) >= before - EXACT


@given(trials(), moments, bad_kinds, starts, moments)
def test_a_further_failure_never_raises_it(
    known: list[Trial], at: datetime, kind: TrialKind, start: float, since: datetime
) -> None:
    """Wherever in time it falls, marked or not."""
    more = [*known, trial_of(at, "one more", kind)]
    before = quality_of(known, now=NOW, start=start, since=since)
    assert quality_of(more, now=NOW, start=start, since=since) <= before + EXACT


@given(trials(), moments, st.sampled_from([*NOT_GRAVER, ("failure", "high")]))
def test_a_graver_severity_never_scores_higher(
    known: list[Trial], at: datetime, pair: tuple[TrialKind, TrialKind]
) -> None:
    """Success, low, medium, high; so to mark a failure `high` never makes a tool look better."""
    milder, graver = (trial_of(at, "one more", kind) for kind in pair)
    assert quality_of([*known, graver], now=NOW) <= quality_of([*known, milder], now=NOW) + EXACT


def test_what_a_version_did_before_it_was_promoted_counts_and_wears_off_from_then() -> None:
    """A failure two half-lives ago, and half of the quality inherited one half-life ago."""
    before = [trial_of(NOW - 2 * HALF_LIFE, "early", "failure")]
    found = quality_of(before, now=NOW, start=0.5, since=NOW - HALF_LIFE)
    assert found == pytest.approx(1 - (1 - 0.95 * 0.5) / 2)


@given(trials(), moments)
def test_a_referral_takes_nothing_and_heals_nothing(known: list[Trial], at: datetime) -> None:
    """Wherever in time it falls: that something is not its job is no flaw of a tool."""
    more = merge_trials(known, [trial_of(at, "one more", "referral")])
    assert quality_of(more, now=NOW) == pytest.approx(quality_of(known, now=NOW), abs=EXACT)


def test_a_flood_of_referrals_does_not_hide_failures() -> None:
    """They are remembered beside the other trials, and fewer of them."""
    failed = run_of(*["high"] * 3)
    flood = [trial_of(NOW, f"referral {number}", "referral") for number in range(500)]
    known = merge_trials(failed, flood)
    assert len(known) == 3 + MAX_REFERRALS
    assert quality_of(known, now=NOW) == pytest.approx(quality_of(failed, now=NOW), abs=EXACT)
