"""Scores of a method over trials, as `5-quality.md` defines them. All are shares in [0, 1]."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bench.quality.trial import Json, Result

SURE = 0.80
"""An automatic retry follows a suggestion above this (seed 004)."""
BINS = 10


@dataclass(frozen=True, slots=True)
class Scores:
    """What a method did. `ece` (expected calibration error): lower is better."""

    trials: int
    right_at_1: float
    right_at_3: float
    fix_at_1: float
    right_key_at_1: float
    wrong_success: float
    abstained: float
    coverage: float
    harm: float
    sure_wrong_success: float
    auto_retry_right: float
    ece: float

    def row(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)


def scores(results: Sequence[Result]) -> Scores:
    """Score the first attempts (and the first three)."""
    count = max(1, len(results))
    sure = [result for result in results if result.confidence > SURE]
    harmed = sum(not result.is_right for result in sure)
    wrong = [result for result in results if result.verdicts[:1] == ("wrong success",)]
    coverage = len(sure) / count
    harm = harmed / max(1, len(sure))
    return Scores(
        trials=len(results),
        right_at_1=sum(result.is_right for result in results) / count,
        right_at_3=sum("right" in result.verdicts for result in results) / count,
        fix_at_1=sum(result.verdicts[:1] not in ((), ("fails",)) for result in results) / count,
        right_key_at_1=sum(map(_changes_what_was_damaged, results)) / count,
        wrong_success=len(wrong) / count,
        abstained=sum(not result.attempts for result in results) / count,
        coverage=coverage,
        harm=harm,
        sure_wrong_success=sum(result.confidence > SURE for result in wrong) / max(1, len(sure)),
        auto_retry_right=coverage * (1 - harm),
        ece=calibration_error(results),
    )


def calibration_error(results: Sequence[Result]) -> float:
    """Expected calibration error of the first attempts' confidence against right (10 bins)."""
    answered = [result for result in results if result.attempts]
    return sum(
        each.count / max(1, len(answered)) * abs(each.confidence - each.right)
        for each in reliability(answered)
    )


@dataclass(frozen=True, slots=True)
class Bin:
    """Attempts of like confidence: how many, how sure they were, and how often they were right."""

    count: int
    confidence: float
    right: float


def reliability(results: Sequence[Result]) -> list[Bin]:
    """Bins of equal width over [0, 1]; empty ones are left out."""
    answered = [result for result in results if result.attempts]
    sure = np.array([result.confidence for result in answered])
    right = np.array([result.is_right for result in answered], dtype=float)
    places = np.minimum((sure * BINS).astype(int), BINS - 1)
    return [
        Bin(int(inside.sum()), float(sure[inside].mean()), float(right[inside].mean()))
        for place in range(BINS)
        if (inside := places == place).any()
    ]


def _changes_what_was_damaged(result: Result) -> bool:
    """Whether the first attempt touches the damaged parameter, and nothing that was right."""
    if not result.attempts:
        return False
    trial, sent = result.trial, result.attempts[0].parameters
    return _differing(sent, trial.damaged) == _differing(trial.gold, trial.damaged)


def _differing(left: Json, right: Json) -> set[str]:
    """Names that only one of two calls has, or with another value."""
    names = left.keys() | right.keys()
    return {n for n in names if (n in left) != (n in right) or left.get(n) != right.get(n)}
