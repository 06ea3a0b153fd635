"""Durations as counts in buckets of fixed logarithmic bounds, mergeable, for quantiles.

A bucket's upper bound is `GROWTH` times its lower one, and a quantile is told as the geometric
middle of its bucket, so that it is off by at most `RELATIVE_ERROR` of itself (Masson et al.,
"DDSketch", VLDB 2019, with gamma = `GROWTH`).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

GROWTH = 1.1
RELATIVE_ERROR = math.sqrt(GROWTH) - 1
"""0.0488: a told p95 of 1,000 ms is one between 953 and 1,049 ms."""

_LEAST_MS, _MOST_MS = 0.01, 1e9
_LOG_GROWTH = math.log(GROWTH)


def bucket_of(duration_ms: float) -> int | None:
    """The bucket of a duration in milliseconds; None for 0, which nobody measured."""
    if duration_ms <= 0:
        return None
    return math.floor(math.log(min(max(duration_ms, _LEAST_MS), _MOST_MS)) / _LOG_GROWTH)


def quantile(buckets: Mapping[int, int], share: float) -> float | None:
    """The duration in milliseconds that a share (0 to 1) of all does not exceed; None of none."""
    total = sum(buckets.values())
    if not total:
        return None
    rank = share * (total - 1)
    seen = 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen > rank:
            return float(GROWTH ** (bucket + 0.5))
    raise AssertionError("the counts add up to their sum")  # pragma: no cover


FIRST_BUCKET = math.floor(math.log(_LEAST_MS) / _LOG_GROWTH)
BUCKETS = math.floor(math.log(_MOST_MS) / _LOG_GROWTH) - FIRST_BUCKET + 1


def quantiles(counts: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.float64]:
    """As `quantile`, of many at once, shape (rows, shares); NaN where a row counts none.

    Args:
        counts: shape (rows, BUCKETS), from FIRST_BUCKET on.
        shares: 0 to 1 each.
    """
    seen = counts.cumsum(axis=1)
    total = seen[:, -1:]
    told = np.full((len(counts), len(shares)), np.nan)
    for place, share in enumerate(shares):
        bucket = (seen > share * (total - 1)).argmax(axis=1) + FIRST_BUCKET
        told[:, place] = np.where(total[:, 0] > 0, GROWTH ** (bucket + 0.5), np.nan)
    return told
