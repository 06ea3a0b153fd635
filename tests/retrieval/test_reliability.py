"""Reliability: what was promised against what came of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.judge.reliability import BINS, Promise, bin_of, reliability

PROMISES = st.lists(st.builds(Promise, st.floats(0, 1), st.booleans()), max_size=60)


def test_of_no_outcome_nothing_is_told() -> None:
    """Ten empty bins, and no error that could be taken for a good one."""
    found = reliability([])
    assert (found.judged, found.expected_calibration_error, found.brier) == (0, None, None)
    assert [each.judged for each in found.bins] == [0] * BINS
    assert {(each.mean_confidence, each.succeeded) for each in found.bins} == {(None, None)}


def test_bins_are_tenths_and_the_last_includes_1() -> None:
    """A bound belongs to the bin above it."""
    assert [bin_of(each) for each in (0.0, 0.0999, 0.1, 0.7, 0.95, 1.0)] == [0, 0, 1, 7, 9, 9]
    bounds = [(each.at_least, each.below) for each in reliability([]).bins]
    assert bounds == [(place / 10, (place + 1) / 10) for place in range(10)]


@given(PROMISES)
def test_every_outcome_is_in_one_bin(promises: list[Promise]) -> None:
    """Bins add up, their means lie within them, and the order of outcomes changes nothing."""
    found = reliability(promises)
    assert sum(each.judged for each in found.bins) == found.judged == len(promises)
    succeeded = sum(each.judged * (each.succeeded or 0) for each in found.bins)
    assert succeeded == pytest.approx(sum(each.succeeded for each in promises), abs=1e-3)
    for each in found.bins:
        if each.mean_confidence is not None:
            assert each.at_least - 1e-6 <= each.mean_confidence <= each.below + 1e-6
    again = reliability(promises[::-1])
    assert again.expected_calibration_error == pytest.approx(
        found.expected_calibration_error, abs=1e-5
    )


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_who_knows_the_outcome_makes_no_error(outcomes: list[bool]) -> None:
    """0 is best for both, and 1 is worst."""
    right = reliability([Promise(float(each), each) for each in outcomes])
    assert (right.expected_calibration_error, right.brier) == (0, 0)
    wrong = reliability([Promise(float(not each), each) for each in outcomes])
    assert (wrong.expected_calibration_error, wrong.brier) == (1, 1)
