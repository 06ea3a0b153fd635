"""What Overview says of totals, times and tools. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from aftercall.models import (
    ReflectionStatistics,
    RepairTimes,
    Step,
    ToolStatistics,
    UsageWindow,
    WindowTotals,
)
from service.dashboard.changed import calls_of, success_rate
from service.dashboard.shown import numbers

WINDOW_WORDS: Final[dict[UsageWindow, str]] = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}


def total_words(window: WindowTotals) -> list[tuple[str, str]]:
    """Calls, share of successes and failures, each with what it was in the span before."""
    now, before = window.totals, window.before
    rate = success_rate(now)
    former = None if before is None else success_rate(before)
    return [
        (
            numbers.count(calls_of(now)),
            _before(None if before is None else numbers.count(calls_of(before))),
        ),
        (
            "-" if rate is None else numbers.percent(rate),
            _before(None if former is None else numbers.percent(former)),
        ),
        (
            numbers.count(now.failures),
            _before(None if before is None else numbers.count(before.failures)),
        ),
    ]


def _before(words: str | None) -> str:
    return "" if words is None else f"before: {words}"


def times_of(step: Step, times: Iterable[datetime]) -> list[str]:
    """Labels of a series: hours as `22 14:00`, days as `11-22`, in UTC."""
    form = "%d %H:%M" if step == "hour" else "%m-%d"
    return [each.astimezone(UTC).strftime(form) for each in times]


def troubled(tools: Sequence[ToolStatistics]) -> list[ToolStatistics]:
    """Those that failed, most failures first."""
    failed = [each for each in tools if each.failures]
    return sorted(failed, key=lambda each: (-each.failures, success_rate(each) or 0.0))


def retry_words(reflection: ReflectionStatistics) -> str:
    """How many retries there were, and how they went."""
    rate = success_rate(reflection.retries)
    if rate is None:
        return "none"
    return f"{numbers.count(calls_of(reflection.retries))}, {numbers.percent(rate)} succeeded"


def repair_words(times: RepairTimes) -> str:
    """How many repairs there were, and how long they took."""
    if times.repairs == 0 or times.p50_ms is None:
        return "none"
    slow = f", 95 % within {numbers.duration(times.p95_ms)}" if times.p95_ms is not None else ""
    half = f"half of them within {numbers.duration(times.p50_ms)}"
    return f"{numbers.count(times.repairs)}, {half}{slow}"
