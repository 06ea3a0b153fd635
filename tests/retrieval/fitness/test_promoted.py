"""Whether a promoted version fails more: the closed form against numbers, and monotone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.fitness.promotions import (
    LEAST_TRIALS,
    SURE,
    Counts,
    compare_failures,
    fails_more,
)

counts = st.builds(Counts, st.integers(0, 200), st.integers(0, 200))


def test_nothing_known_is_even_odds_and_no_report() -> None:
    """Nor is a handful of failures reported."""
    assert compare_failures(Counts(0, 0), Counts(0, 0)) == pytest.approx(0.5)
    few = Counts(0, LEAST_TRIALS - 1)
    assert compare_failures(few, Counts(100, 0)) > SURE
    assert not fails_more(few, Counts(100, 0))


def test_a_version_that_fails_more_is_reported() -> None:
    """Half against a tenth; the other way round it is not."""
    evolved, original = Counts(10, 10), Counts(90, 10)
    assert fails_more(evolved, original)
    assert not fails_more(original, evolved)
    assert not fails_more(original, original)


@pytest.mark.parametrize(
    ("evolved", "original"),
    [
        ((5, 20), (20, 3)),
        ((1, 2), (100, 1)),
        ((10, 2), (0, 0)),
        ((3, 50), (2, 30)),
        ((9, 9), (9, 8)),
    ],
)
def test_it_is_the_share_of_draws(evolved: tuple[int, int], original: tuple[int, int]) -> None:
    """Of 200,000 pairs from both posteriors, to 0.005."""
    draw = np.random.default_rng(3)
    one, other = (
        draw.beta(failures + 1, successes + 1, 200_000)
        for successes, failures in (evolved, original)
    )
    share = float((one > other).mean())
    assert compare_failures(Counts(*evolved), Counts(*original)) == pytest.approx(share, abs=0.005)


@given(counts, counts)
def test_it_is_a_probability_and_the_two_ways_add_up(one: Counts, other: Counts) -> None:
    """One of the two is the higher one."""
    assert 0 <= compare_failures(one, other) <= 1
    assert compare_failures(one, other) + compare_failures(other, one) == pytest.approx(1, abs=2e-4)


@given(counts, counts)
def test_a_further_failure_never_lowers_it_and_a_success_never_raises_it(
    evolved: Counts, original: Counts
) -> None:
    """Of the evolved version."""
    before = compare_failures(evolved, original)
    assert (
        compare_failures(evolved._replace(failures=evolved.failures + 1), original) >= before - 1e-9
    )
    assert (
        compare_failures(evolved._replace(successes=evolved.successes + 1), original)
        <= before + 1e-9
    )
