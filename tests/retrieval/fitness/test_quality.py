"""Quality: seed 002's numbers, bounds, monotone in every trial, whatever the order; recovery."""

from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fitness.expected import HALF_LIFE
from retrieval.fitness.score import quality_of
from retrieval.fitness.statistics import MAX_REFERRALS, Trial, TrialKind, merged, trial_of
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


def test_the_marks_of_seed_002_give_its_numbers() -> None:
    """High, medium, high: 0.90, 0.85, 0.75; a tool without trials has 1.0."""
    assert quality_of([], now=NOW) == 1
    marks: list[TrialKind] = ["high", "medium", "high"]
    found = [quality_of(run_of(*marks[:count]), now=NOW) for count in (1, 2, 3)]
    assert found == pytest.approx([0.90, 0.85, 0.75], abs=EXACT)


def test_the_sixth_mark_takes_five_hundredths_more_and_the_eleventh_ten_instead() -> None:
    """Of low marks, 0.01 each: the first five, the next five at 0.06, then 0.11 each."""
    found = [quality_of(run_of(*["low"] * count), now=NOW) for count in (5, 6, 10, 11, 12)]
    assert found == pytest.approx([0.95, 0.89, 0.65, 0.54, 0.43], abs=EXACT)


def test_executions_count_without_anyone_marking_them() -> None:
    """Failures alone take a tenth of the quality each: an average of outcomes that forgets."""
    assert quality_of(run_of("failure"), now=NOW) == pytest.approx(0.9)
    assert quality_of(run_of("failure", "failure"), now=NOW) == pytest.approx(0.81)
    steady: list[TrialKind] = ["success", "success", "success", "failure"]
    assert quality_of(run_of(*steady * 16), now=NOW) == pytest.approx(0.75, abs=0.06)


def test_a_tool_that_works_again_comes_back() -> None:
    """From 0, 22 successes bring it to 0.9 within the hour; so do 48 days in which nobody calls."""
    broken: list[TrialKind] = ["high"] * 20
    assert quality_of(run_of(*broken, *["success"] * 22), now=NOW) > 0.9
    later = NOW + timedelta(days=48)
    assert quality_of(run_of(*broken), now=NOW) == 0
    assert quality_of(run_of(*broken), now=later) > 0.9


def test_half_of_the_debt_wears_off_in_an_idle_half_life() -> None:
    """Debt 0.4 is 0.2 after a half-life."""
    four: list[TrialKind] = ["high"] * 4
    assert quality_of(run_of(*four), now=NOW) == pytest.approx(0.6)
    assert quality_of(run_of(*four), now=NOW + HALF_LIFE) == pytest.approx(0.8)


def test_a_promoted_version_starts_with_what_it_inherited() -> None:
    """Its first success heals from there, and its marks count from none."""
    assert quality_of([], now=NOW, start=0.6) == pytest.approx(0.6)
    assert quality_of(run_of("success"), now=NOW, start=0.6) == pytest.approx(0.64)
    assert quality_of(run_of("high"), now=NOW, start=0.6) == pytest.approx(0.5)


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


@given(trials(), moments, st.sampled_from([(a, b) for a in range(4) for b in range(a, 4)]))
def test_a_graver_severity_never_scores_higher(
    known: list[Trial], at: datetime, pair: tuple[int, int]
) -> None:
    """Success, low, medium, high, everything else being equal."""
    milder, graver = (trial_of(at, "one more", GRAVITY[place]) for place in pair)
    assert quality_of([*known, graver], now=NOW) <= quality_of([*known, milder], now=NOW) + EXACT


@given(trials(), moments)
def test_an_unmarked_failure_takes_no_more_than_a_grave_mark(
    known: list[Trial], at: datetime
) -> None:
    """So to mark a failure `high` never makes a tool look better."""
    unmarked, high = (trial_of(at, "one more", kind) for kind in ("failure", "high"))
    assert quality_of([*known, high], now=NOW) <= quality_of([*known, unmarked], now=NOW) + EXACT


def test_what_a_version_did_before_it_was_promoted_counts_and_wears_off_from_then() -> None:
    """A failure two half-lives ago, and half of the quality inherited one half-life ago."""
    before = [trial_of(NOW - 2 * HALF_LIFE, "early", "failure")]
    found = quality_of(before, now=NOW, start=0.5, since=NOW - HALF_LIFE)
    assert found == pytest.approx(1 - (1 - 0.95 * 0.5) / 2)


@given(trials(), moments)
def test_a_referral_takes_nothing_and_heals_nothing(known: list[Trial], at: datetime) -> None:
    """Wherever in time it falls: that something is not its job is no flaw of a tool."""
    more = merged(known, [trial_of(at, "one more", "referral")])
    assert quality_of(more, now=NOW) == pytest.approx(quality_of(known, now=NOW), abs=EXACT)


def test_a_flood_of_referrals_does_not_hide_failures() -> None:
    """They are remembered beside the other trials, and fewer of them."""
    failed = run_of(*["high"] * 3)
    flood = [trial_of(NOW, f"referral {number}", "referral") for number in range(500)]
    known = merged(failed, flood)
    assert len(known) == 3 + MAX_REFERRALS
    assert quality_of(known, now=NOW) == pytest.approx(quality_of(failed, now=NOW), abs=EXACT)
