"""Calibration: whether a confidence means what it states. Pure.

Throughout, `confidences` are probabilities in [0, 1] and `hits` say whether what was promised came
true, in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

BINS = 10
_Z = 1.645
"""Of a two-sided 90 % interval."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions of like confidence."""

    count: int
    confidence: float
    """Their mean confidence, 0 to 1."""
    share: float
    """How many of them came true, 0 to 1."""
    low: float
    high: float
    """The 90 % interval of the share (Wilson 1927)."""


def reliability(
    confidences: Sequence[float], hits: Sequence[bool], *, bins: int = BINS
) -> list[Bin]:
    """Bins of equal width over [0, 1], lowest confidence first; empty ones are left out."""
    sure, came_true = _arrays(confidences, hits)
    places = np.minimum((sure * bins).astype(int), bins - 1)
    found = []
    for place in range(bins):
        inside = places == place
        count = int(inside.sum())
        if count:
            share = float(came_true[inside].mean())
            low, high = wilson(share, count)
            found.append(Bin(count, float(sure[inside].mean()), share, low, high))
    return found


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 90 % interval of a share seen in `count` trials (Wilson 1927); (0, 1) for none."""
    if not count:
        return 0.0, 1.0
    spread = _Z * sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    middle, scale = share + _Z**2 / (2 * count), 1 + _Z**2 / count
    # The share lies between them; at 0 and 1 rounding would put it outside.
    return (
        min(share, max(0.0, (middle - spread) / scale)),
        max(share, min(1.0, (middle + spread) / scale)),
    )


def calibration_error(
    confidences: Sequence[float], hits: Sequence[bool], *, bins: int = BINS
) -> float:
    """Expected calibration error, 0 (best) to 1: mean |confidence - share| of the bins by count.

    Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017. 0.0 for no predictions.
    """
    total = max(1, len(confidences))
    return sum(
        each.count / total * abs(each.confidence - each.share)
        for each in reliability(confidences, hits, bins=bins)
    )


def brier(confidences: Sequence[float], hits: Sequence[bool]) -> float:
    """Mean squared error of the confidences, 0 (best) to 1 (Brier 1950); 0.0 for none."""
    sure, came_true = _arrays(confidences, hits)
    return float(np.mean((sure - came_true) ** 2)) if len(sure) else 0.0


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """What each threshold of confidence costs; the surest are answered first."""

    threshold: NDArray[np.float64]
    """Confidence of the least sure one that is still acted on, falling."""
    coverage: NDArray[np.float64]
    """Share of all questions that are acted on then, rising."""
    risk: NDArray[np.float64]
    """Share of these that are wrong."""


def risk_coverage(
    confidences: Sequence[float], hits: Sequence[bool], *, asked: int
) -> RiskCoverage:
    """Return the risk-coverage curve (El-Yaniv and Wiener 2010), one point per distinct confidence.

    Args:
        confidences: of the questions that were answered.
        hits: whether each answer was right.
        asked: all questions; those that were not answered are never acted on.
    """
    sure, came_true = _arrays(confidences, hits)
    order = np.argsort(-sure, kind="stable")
    sure, wrong = sure[order], 1 - came_true[order]
    ends = np.flatnonzero(np.append(np.diff(sure) != 0, True)) if len(sure) else np.arange(0)
    acted = ends + 1.0
    return RiskCoverage(sure[ends], acted / max(1, asked), np.cumsum(wrong)[ends] / acted)


def _arrays(
    confidences: Sequence[float], hits: Sequence[bool]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(confidences) != len(hits):
        raise ValueError(f"{len(confidences)} confidences for {len(hits)} hits; give one for each")
    return np.array(confidences, dtype=np.float64), np.array(hits, dtype=np.float64)
