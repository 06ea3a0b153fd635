"""How far suggestions can be trusted, in rows and sentences. Pure."""

from collections.abc import Sequence
from typing import Final

from aftercall.models import (
    AnswerCounts,
    CalibrationStatus,
    CallCounts,
    ConfidenceBin,
    ConfidenceStatistics,
    ReflectionStatistics,
    RepairTimes,
)
from retrieval.confidence import ENOUGH_OUTCOMES, Scaling, log_odds, logistic
from service.dashboard.shown.agents import calls, success_rate
from service.dashboard.shown.numbers import count, duration, moment, percent

FEW: Final = 30
"""Outcomes of one bin below which its share says little: its standard error is near 0.1."""

_ENOUGH, _TOO_FEW = f"{FEW} outcomes or more", "fewer"

_SHOWN_CONFIDENCES: Final = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

NOT_RIGHT: Final = (
    "An outcome says whether the call succeeded, not whether it did what was meant. A call that "
    "succeeds at something else counts as a success here, so that a point above the diagonal is no "
    "proof of being right."
)


def bin_name(each: ConfidenceBin) -> str:
    """A tenth of the scale, such as `70 to 80 %`."""
    return f"{each.at_least * 100:.0f} to {each.below * 100:.0f} %"


def bin_rows(bins: Sequence[ConfidenceBin]) -> list[dict[str, object]]:
    """A row per bin; the gap is the share of successes minus the mean confidence."""
    return [
        {
            "key": f"{each.at_least:.1f}",
            "bin": bin_name(each),
            "judged": each.judged,
            "promised": each.mean_confidence,
            "succeeded": each.succeeded,
            "gap": _gap(each),
        }
        for each in bins
    ]


def _gap(each: ConfidenceBin) -> float | None:
    if each.mean_confidence is None or each.succeeded is None:
        return None
    return each.succeeded - each.mean_confidence


def points(bins: Sequence[ConfidenceBin]) -> dict[str, list[tuple[float, float]]]:
    """Mean confidence and share of successes of bins with outcomes; those with few apart."""
    told: dict[str, list[tuple[float, float]]] = {_ENOUGH: [], _TOO_FEW: []}
    for each in bins:
        if each.mean_confidence is not None and each.succeeded is not None:
            name = _ENOUGH if each.judged >= FEW else _TOO_FEW
            told[name].append((each.mean_confidence, each.succeeded))
    return {name: each for name, each in told.items() if each}


def trust_words(confidence: ConfidenceStatistics) -> str:
    """What the calibration says, in a sentence or two."""
    if not confidence.judged:
        return "No outcome of a suggestion is known yet."
    told = f"Of {_outcomes(confidence.judged)}, "
    error = confidence.expected_calibration_error
    if error is None:
        return f"{told}none says how sure the suggestion was."
    told += f"what was promised and what came of it differ by {_points_apart(error)} on average."
    gaps = [(each, _gap(each)) for each in confidence.bins if each.judged >= FEW]
    worst = max(gaps, key=lambda pair: abs(pair[1] or 0.0), default=None)
    if worst is None or worst[1] is None:
        return (
            f"{told} No tenth of the scale has {FEW} outcomes yet, so a single point says little."
        )
    way = "more" if worst[1] >= 0 else "less"
    return (
        f"{told} Farthest off with {FEW} or more outcomes is {bin_name(worst[0])}: "
        f"{_points_apart(worst[1])} {way} than promised succeeded."
    )


def _points_apart(difference: float) -> str:
    return f"{abs(difference) * 100:.1f} percentage points"


def _outcomes(judged: int) -> str:
    return "1 outcome" if judged == 1 else f"{count(judged)} outcomes"


def calibration_of(scaling: Scaling) -> CalibrationStatus:
    """As `GET /status` tells it."""
    return CalibrationStatus(
        source="own" if scaling.outcomes else "shipped",
        outcomes=scaling.outcomes,
        shift=scaling.shift,
        slope=scaling.slope,
        fitted_at=scaling.fitted_at,
    )


def calibration_words(status: CalibrationStatus) -> str:
    """Which calibration is in force."""
    if status.source == "shipped":
        return (
            "The shipped calibration is in force. The nightly run fits this workspace's own once "
            f"{ENOUGH_OUTCOMES:,} outcomes of its suggestions are known, and takes it where it "
            "fits them better."
        )
    at = f" at {moment(status.fitted_at)}" if status.fitted_at else ""
    return (
        f"This workspace's own calibration is in force, fitted on {_outcomes(status.outcomes)}{at}."
    )


def own_rows(status: CalibrationStatus) -> list[dict[str, object]]:
    """What the workspace's own calibration makes of a shipped confidence; none when shipped."""
    if status.source == "shipped":
        return []
    own = [logistic(status.shift + status.slope * log_odds(each)) for each in _SHOWN_CONFIDENCES]
    return [
        {"key": f"{shipped:.2f}", "shipped": shipped, "own": round(mine, 4)}
        for shipped, mine in zip(_SHOWN_CONFIDENCES, own, strict=True)
    ]


def rate_words(counts: CallCounts) -> tuple[str, str]:
    """A success rate, and what it is made from."""
    rate = success_rate(counts)
    return (
        "-" if rate is None else percent(rate),
        f"{count(counts.successes)} of {count(calls(counts))}",
    )


def repair_words(times: RepairTimes) -> tuple[str, str]:
    """The median time to repair, and what it is made from."""
    if not times.repairs or times.p50_ms is None:
        return "-", "no repair in the window"
    slow = "" if times.p95_ms is None else f", 95 % within {duration(times.p95_ms)}"
    many = "1 repair" if times.repairs == 1 else f"{count(times.repairs)} repairs"
    return duration(times.p50_ms), f"median of {many}{slow}"


def answer_pairs(answers: AnswerCounts) -> list[tuple[str, str]]:
    """Asked, answered with confidence, abstained: counts with shares."""
    asked = answers.asked
    rest = asked - answers.abstained - answers.confident
    return [
        ("Asked", count(asked)),
        ("Best suggestion above 0.80", _of(answers.confident, asked)),
        ("Suggestions, none so sure", _of(max(rest, 0), asked)),
        ("No suggestion, with a reason", _of(answers.abstained, asked)),
    ]


def _of(part: int, whole: int) -> str:
    return f"{count(part)} ({percent(part / whole)})" if whole else count(part)


def effect_words(reflection: ReflectionStatistics) -> str:
    """Before and after reflection, in a sentence."""
    before, after = success_rate(reflection.first_attempts), success_rate(reflection.tasks)
    if before is None or after is None:
        return "No call in this window."
    return (
        f"{percent(before)} of the first attempts succeeded; with the retries that followed, "
        f"{percent(after)} of the tasks did: {_points_apart(after - before)} more."
    )
