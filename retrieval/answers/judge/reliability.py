"""Reliability: how often what was promised came true.

Bins of equal width (Niculescu-Mizil and Caruana 2005), the expected calibration error over them
(Naeini et al. 2015), and the mean squared error (Brier 1950).
"""

from collections.abc import Sequence
from typing import NamedTuple

from aftercall.models import ConfidenceBin, ConfidenceStatistics

BINS = 10
_DIGITS = 6


class Promise(NamedTuple):
    """A confidence that someone was shown, in [0, 1], and whether the call then succeeded."""

    confidence: float
    succeeded: bool


def reliability(promises: Sequence[Promise]) -> ConfidenceStatistics:
    """Return both measures and the bins; those without a promise are shown as such."""
    within: list[list[Promise]] = [[] for _ in range(BINS)]
    for promise in promises:
        within[bin_of(promise.confidence)].append(promise)
    bins = [
        ConfidenceBin(
            at_least=place / BINS,
            below=(place + 1) / BINS,
            judged=len(inside),
            mean_confidence=round(_mean_confidence(inside), _DIGITS) if inside else None,
            succeeded=round(_succeeded(inside), _DIGITS) if inside else None,
        )
        for place, inside in enumerate(within)
    ]
    total = len(promises)
    if not total:
        return ConfidenceStatistics(judged=0, bins=bins)
    gaps = (len(each) * abs(_mean_confidence(each) - _succeeded(each)) for each in within if each)
    errors = ((each.confidence - each.succeeded) ** 2 for each in promises)
    return ConfidenceStatistics(
        judged=total,
        bins=bins,
        expected_calibration_error=round(sum(gaps) / total, _DIGITS),
        brier=round(sum(errors) / total, _DIGITS),
    )


def bin_of(confidence: float) -> int:
    """Return the tenth that a confidence lies in, from 0; 1 lies in the last one."""
    return min(BINS - 1, int(confidence * BINS))


def _mean_confidence(promises: Sequence[Promise]) -> float:
    return min(1.0, sum(each.confidence for each in promises) / len(promises))


def _succeeded(promises: Sequence[Promise]) -> float:
    return sum(each.succeeded for each in promises) / len(promises)
