"""What is said of confidence follows from the outcomes, and no more is claimed."""

from datetime import UTC, datetime

import pytest

from aftercall.models import (
    AnswerCounts,
    CalibrationStatus,
    CallCounts,
    ConfidenceBin,
    ConfidenceStatistics,
    ReflectionStatistics,
    RepairTimes,
)
from retrieval.confidence import Scaling
from service.dashboard.shown.trust import (
    answer_pairs,
    bin_rows,
    calibration_of,
    calibration_words,
    effect_words,
    own_rows,
    points,
    rate_words,
    repair_words,
    trust_words,
)

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


def tenth(place: int, judged: int = 0, promised: float = 0, succeeded: float = 0) -> ConfidenceBin:
    return ConfidenceBin(
        at_least=place / 10,
        below=(place + 1) / 10,
        judged=judged,
        mean_confidence=promised if judged else None,
        succeeded=succeeded if judged else None,
    )


def confidence(*bins: ConfidenceBin, error: float | None = 0.031) -> ConfidenceStatistics:
    judged = sum(each.judged for each in bins)
    return ConfidenceStatistics(
        judged=judged, bins=list(bins), expected_calibration_error=error if judged else None
    )


def test_bins_without_outcomes_are_rows_and_no_points() -> None:
    """The table tells all ten; the plot only those of which something is known."""
    bins = [tenth(0), tenth(9, 40, 0.95, 0.9)]
    rows = bin_rows(bins)
    assert [row["bin"] for row in rows] == ["0 to 10 %", "90 to 100 %"]
    assert rows[0]["gap"] is None
    assert rows[1]["gap"] == pytest.approx(-0.05)
    many, few = points([*bins, tenth(8, 3, 0.85, 1.0)]).values()
    assert (many, few) == ([(0.95, 0.9)], [(0.85, 1.0)])


def test_the_sentence_names_the_bin_that_is_farthest_off() -> None:
    """Of those with enough outcomes to say so."""
    told = trust_words(confidence(tenth(5, 29, 0.55, 0.0), tenth(9, 40, 0.95, 0.85)))
    assert "Of 69 outcomes" in told
    assert "3.1 percentage points on average" in told
    assert "90 to 100 %: 10.0 percentage points less than promised" in told


def test_few_outcomes_are_called_few() -> None:
    """A bin of three says nothing."""
    assert "a single point says little" in trust_words(confidence(tenth(9, 3, 0.95, 0.3)))
    assert trust_words(confidence(tenth(9))) == "No outcome of a suggestion is known yet."


def test_a_shipped_calibration_says_what_makes_it_own() -> None:
    """And shows no comparison with itself."""
    status = calibration_of(Scaling())
    assert status.source == "shipped"
    assert "50 outcomes" in calibration_words(status)
    assert own_rows(status) == []


def test_an_own_calibration_is_shown_beside_the_shipped_one() -> None:
    """Identity leaves a confidence as it is; a shift above 0 raises it."""
    same = CalibrationStatus(source="own", outcomes=80, shift=0, slope=1, fitted_at=NOW)
    assert "80 outcomes at 2026-11-22 14:05" in calibration_words(same)
    assert all(row["own"] == pytest.approx(row["shipped"], abs=1e-4) for row in own_rows(same))
    raised = own_rows(same.model_copy(update={"shift": 1.0}))
    assert all(float(str(row["own"])) > float(str(row["shipped"])) for row in raised)


def test_rates_and_repairs_without_calls_are_told_as_unknown() -> None:
    """Not as nought."""
    assert rate_words(CallCounts()) == ("-", "0 of 0")
    assert rate_words(CallCounts(successes=3, failures=1)) == ("75.0 %", "3 of 4")
    assert repair_words(RepairTimes()) == ("-", "no repair in the window")
    told = repair_words(RepairTimes(repairs=41, p50_ms=2_300, p95_ms=90_000))
    assert told == ("2.3 s", "median of 41 repairs, 95 % within 90.0 s")


def test_answers_add_up_to_what_was_asked() -> None:
    """Confident, not so confident, none."""
    pairs = dict(answer_pairs(AnswerCounts(asked=1_000, abstained=100, confident=600)))
    assert pairs["Asked"] == "1,000"
    assert pairs["Suggestions, none so sure"] == "300 (30.0 %)"
    assert dict(answer_pairs(AnswerCounts()))["No suggestion, with a reason"] == "0"


def test_before_and_after_is_told_in_a_sentence() -> None:
    """With the difference."""
    told = effect_words(
        ReflectionStatistics(
            window="7d",
            since=NOW,
            until=NOW,
            first_attempts=CallCounts(successes=70, failures=30),
            tasks=CallCounts(successes=90, failures=10),
            retries=CallCounts(),
            suggested=CallCounts(),
        )
    )
    assert "70.0 % of the first attempts" in told
    assert "90.0 % of the tasks did: 20.0 percentage points more" in told
