"""What is said of confidence follows from the outcomes, and no more is claimed."""

import pytest

from aftercall.models import (
    CallCounts,
    ConfidenceBin,
    ConfidenceStatistics,
    ReflectionStatistics,
    RepairTimes,
)
from service.dashboard.suggestions import (
    bin_name,
    effect_words,
    find_gap,
    list_points,
    repair_words,
    trust_words,
)
from tests.dashboard.made import NOW


def tenth(place: int, judged: int = 0, promised: float = 0, succeeded: float = 0) -> ConfidenceBin:
    return ConfidenceBin(
        at_least=place / 10, below=(place + 1) / 10, judged=judged,
        mean_confidence=promised if judged else None, succeeded=succeeded if judged else None,
    )  # fmt: skip


def confidence(*bins: ConfidenceBin, error: float | None = 0.031) -> ConfidenceStatistics:
    judged = sum(each.judged for each in bins)
    return ConfidenceStatistics(
        judged=judged, bins=list(bins), expected_calibration_error=error if judged else None
    )


def test_bins_without_outcomes_are_rows_and_no_points() -> None:
    """The table tells all ten; the plot only those of which something is known."""
    bins = [tenth(0), tenth(9, 40, 0.95, 0.9)]
    assert [bin_name(each) for each in bins] == ["0 to 10 %", "90 to 100 %"]
    assert [find_gap(each) for each in bins] == [None, pytest.approx(-0.05)]
    many, few = list_points([*bins, tenth(8, 3, 0.85, 1.0)]).values()
    assert (many, few) == ([(0.95, 0.9)], [(0.85, 1.0)])


def test_the_sentence_names_the_bin_that_is_farthest_off() -> None:
    """Of those with enough outcomes to say so."""
    told = trust_words(confidence(tenth(5, 29, 0.55, 0.0), tenth(9, 40, 0.95, 0.85)))
    assert "Of 69 outcomes" in told
    assert "3.1 percentage points on average" in told
    assert "90 to 100 %: 10.0 percentage points less than promised" in told


def test_no_repair_is_no_time_of_nought() -> None:
    """Not as nought."""
    assert repair_words(RepairTimes()) == ("-", "no repair in the window")
    told = repair_words(RepairTimes(repairs=41, p50_ms=2_300, p95_ms=90_000))
    assert told == ("2.3 s", "median of 41 repairs, 95 % within 90.0 s")


def test_before_and_after_is_told_in_a_sentence() -> None:
    """With the difference."""
    told = effect_words(
        ReflectionStatistics(
            window="7d",
            since=NOW,
            until=NOW,
            first_attempts=CallCounts(successes=70, failures=30),
            tasks=CallCounts(successes=90, failures=10),
            repaired_before=CallCounts(successes=15),
            retries=CallCounts(successes=5, failures=2),
            suggested=CallCounts(),
        )
    )
    assert "70.0 % of the calls were right as they were sent" in told
    assert "15 repairs before the call and 5 repairs after it" in told
    assert "90.0 % of the tasks succeeded: 20.0 percentage points more" in told
