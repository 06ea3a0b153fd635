"""Tallies: counts that also say how recent they are. Mergeable, whatever the order of events."""

from datetime import datetime, timedelta

from pydantic import BaseModel

from aftercall.models import Count

HALF_LIFE = timedelta(days=7)
"""In which an event's weight halves (4-rules.md)."""

_HALF_LIFE_SECONDS = HALF_LIFE.total_seconds()


class Tally(BaseModel):
    """How often something happened, and the weight of that at the latest time."""

    count: int = 0
    weight: float = 0.0
    """As of `at`: an event of then counts 1 and one of a half-life earlier 1/2."""
    at: datetime | None = None

    def add(self, at: datetime, times: int = 1) -> None:
        """Count an event, in place; a late arrival counts as its own time says."""
        if self.at is None or at >= self.at:
            self.weight = self.weight_at(at) + times
            self.at = at
        else:
            self.weight += times * decay(self.at, at)
        self.count += times

    def weight_at(self, now: datetime) -> float:
        """The weight now; events of a later time count whole."""
        return 0.0 if self.at is None else self.weight * decay(now, self.at)

    def shown(self, now: datetime) -> Count:
        """As it is told."""
        return Count(count=self.count, weight=round(self.weight_at(now), 4), last_seen=self.at)


def decay(now: datetime, then: datetime) -> float:
    """What an event of then still weighs now, in (0, 1]."""
    return float(0.5 ** (max(0.0, (now - then).total_seconds()) / _HALF_LIFE_SECONDS))
