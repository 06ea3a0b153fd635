"""Durations as counts in buckets of fixed logarithmic bounds, mergeable, for quantiles.

A bucket's upper bound is `GROWTH` times its lower one, and a quantile is told as the geometric
middle of its bucket, so that it is off by at most `RELATIVE_ERROR` of itself (Masson et al.,
"DDSketch", VLDB 2019, with gamma = `GROWTH`).
"""

import math
from collections.abc import Mapping

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
