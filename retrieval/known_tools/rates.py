"""Rates: how often something happens in a week of now, from counts that fade. Pure."""

from datetime import datetime, timedelta
from math import log

from retrieval.health.record import HALF_LIFE, Tally, decay

_WEEK = timedelta(days=7)
_PER_WEEK = log(2) * (_WEEK / HALF_LIFE)
"""At a steady rate r the weight of a tally is r x half-life / ln 2 (the sum of the decays)."""


def weekly(tally: Tally, now: datetime) -> float:
    """Events a week, by a tally."""
    return tally.weight_at(now) * _PER_WEEK


def weekly_of_count(
    count: int, first_seen: datetime | None, last_seen: datetime | None, now: datetime
) -> float:
    """Events a week, by a plain count: over the time that it took, as far as that is not past."""
    if last_seen is None:
        return 0.0
    weeks = max(1.0, (last_seen - (first_seen or last_seen)) / _WEEK)
    return count / weeks * decay(now, last_seen)
