"""Moments as labels of an axis, in UTC. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime

from aftercall.models import UsageWindow


def axis(moments: Iterable[datetime], window: UsageWindow) -> list[str]:
    """`14:00` of the hours of a day, else `11-22`, the month and the day."""
    form = "%H:%M" if window == "24h" else "%m-%d"
    return [each.astimezone(UTC).strftime(form) for each in moments]
