"""Hours since 1970 (UTC), and which of them a window holds. Pure.

A window ends now. `24h` begins with an hour, 24 hours before the present one; `7d` and `30d` begin
with a day, so that whole days add up to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from aftercall.models import Step, UsageWindow

DAY: Final = 24

DAYS: Final[Mapping[UsageWindow, int]] = {"7d": 7, "30d": 30}
"""Days in a window of days, today among them."""

WINDOWS: Final[tuple[UsageWindow, ...]] = ("24h", "7d", "30d")

KEPT_DAYS: Final = 31
"""Days that have to be known up to now: those of the longest window, and one more in case a clock
is set back."""

_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Span:
    """Hours from `first` to `last`, both among them; a step is one hour or 24."""

    first: int
    last: int
    step: int

    @property
    def hours(self) -> range:
        """Each of its hours."""
        return range(self.first, self.last + 1)

    @property
    def steps(self) -> range:
        """The first hour of each step."""
        return range(self.first, self.last + 1, self.step)

    @property
    def step_name(self) -> Step:
        """As the wire says it."""
        return "hour" if self.step == 1 else "day"


def span_of(window: UsageWindow, now: datetime) -> Span:
    """The hours of a window that ends now."""
    last = hour_number(now)
    if window == "24h":
        return Span(last - DAY, last, 1)
    return Span(midnight(last) - (DAYS[window] - 1) * DAY, last, DAY)


def span_before(window: UsageWindow, now: datetime) -> Span | None:
    """As many hours or whole days before a window; None before 30d, which nobody keeps."""
    if window == "30d":
        return None
    span = span_of(window, now)
    days = 1 if window == "24h" else DAYS[window]
    return Span(span.first - days * DAY, span.first - 1, span.step)


def hour_number(moment: datetime) -> int:
    """Hours since 1970 until the hour of a moment."""
    utc = moment.astimezone(UTC)
    return first_hour(utc.date()) + utc.hour


def first_hour(day: date) -> int:
    """The first hour of a day."""
    return (day.toordinal() - _EPOCH) * DAY


def midnight(hour: int) -> int:
    """The first hour of the day of an hour."""
    return hour - hour % DAY


def moment_of(hour: int) -> datetime:
    """The beginning of an hour."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
