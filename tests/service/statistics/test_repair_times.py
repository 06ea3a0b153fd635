"""Repair times: of failures that were mended in a window, with a suggestion and without."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import RepairTimes
from mongo.records import MendedFailure
from service.statistics.reflection import joined, repair_times

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=1)


def mended(at_s: float, after_ms: float, *, followed: bool = True) -> MendedFailure:
    """A failure that was mended at a second of the window."""
    at = SINCE + timedelta(seconds=at_s)
    return MendedFailure(at - timedelta(milliseconds=after_ms), at, followed)


def test_without_repairs_nothing_is_told() -> None:
    """No time rather than 0."""
    assert repair_times([], SINCE, UNTIL) == (RepairTimes(), RepairTimes())


def test_times_are_split_by_who_mended() -> None:
    """In milliseconds, from the failure to the success."""
    found = [mended(10, 500), mended(20, 1500), mended(30, 60_000, followed=False)]
    with_suggestion, without = repair_times(found, SINCE, UNTIL)
    assert (with_suggestion.repairs, with_suggestion.p50_ms) == (2, 1000)
    assert with_suggestion.p95_ms == pytest.approx(1450)
    assert without == RepairTimes(repairs=1, p50_ms=60_000, p95_ms=60_000)


def test_those_mended_outside_of_the_window_are_left_out() -> None:
    """The window is that of the success: a failure of before may be mended in it."""
    found = [mended(-1, 5), mended(0, 5), mended(86_400, 5), mended(86_401, 5)]
    assert repair_times(found, SINCE, UNTIL)[0].repairs == 2


def test_a_clock_that_goes_wrong_makes_no_negative_time() -> None:
    """A success of before its failure waited for nothing."""
    assert repair_times([mended(10, -5000)], SINCE, UNTIL)[0].p50_ms == 0


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=50))
def test_quantiles_are_those_of_all_times(waited: list[float]) -> None:
    """Whatever their order."""
    [found, _] = repair_times([mended(10, each) for each in waited], SINCE, UNTIL)
    assert found.p50_ms == pytest.approx(np.percentile(waited, 50), abs=0.01)
    assert found.p95_ms == pytest.approx(np.percentile(waited, 95), abs=0.01)


def test_repairs_of_the_same_moments_are_told_apart() -> None:
    """Two agents whose times are whole seconds; one that is mined and followed is one."""
    mined = [mended(10, 500, followed=False)] * 3
    assert joined(mined, []) == mined
    found = joined(mined, [mended(10, 500), mended(20, 500)])
    assert Counter(each.followed_suggestion for each in found) == {True: 2, False: 2}
