"""Overview's words for totals, times and tools."""

from datetime import UTC, datetime, timedelta

from aftercall.models import (
    CallCounts,
    CallUsage,
    ReflectionStatistics,
    RepairTimes,
    ToolName,
    ToolStatistics,
    WindowTotals,
)
from service.dashboard.shown.overview import (
    repair_words,
    retry_words,
    times_of,
    total_words,
    troubled,
)

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)


def totals(successes: int, failures: int, before: CallCounts | None) -> WindowTotals:
    return WindowTotals(
        window="24h",
        since=NOW - timedelta(days=1),
        until=NOW,
        totals=CallUsage(successes=successes, failures=failures),
        before=before,
    )


def test_totals_are_told_with_those_before() -> None:
    assert total_words(totals(940, 60, CallCounts(successes=9, failures=1))) == [
        ("1,000", "before: 10"),
        ("94.0 %", "before: 90.0 %"),
        ("60", "before: 1"),
    ]


def test_what_is_not_known_is_not_told_as_nothing() -> None:
    """No share of no calls, and no word of a span that nobody counted."""
    assert total_words(totals(0, 0, None)) == [("0", ""), ("-", ""), ("0", "")]
    assert total_words(totals(0, 0, CallCounts()))[1] == ("-", "")


def test_times_are_utc() -> None:
    cet = datetime.fromisoformat("2026-11-23T00:30:00+01:00")
    assert times_of("hour", [cet]) == ["22 23:30"]
    assert times_of("day", [cet]) == ["11-22"]


def test_tools_in_trouble_are_those_that_failed_most() -> None:
    counts = {"fine": (9, 0), "some": (5, 2), "most": (90, 7), "worse": (0, 2)}
    tools = [
        ToolStatistics(tool=ToolName(tool_name=name), successes=good, failures=bad)
        for name, (good, bad) in counts.items()
    ]
    assert [each.tool.tool_name for each in troubled(tools)] == ["most", "worse", "some"]


def test_repairs_and_retries_are_told_with_their_number() -> None:
    reflection = ReflectionStatistics(
        window="24h",
        since=NOW,
        until=NOW,
        first_attempts=CallCounts(),
        tasks=CallCounts(),
        retries=CallCounts(successes=3, failures=1),
        suggested=CallCounts(),
    )
    assert retry_words(reflection) == "4, 75.0 % succeeded"
    assert repair_words(RepairTimes()) == "none"
    times = RepairTimes(repairs=4, p50_ms=1_500, p95_ms=90_000)
    assert repair_words(times) == "4, half of them within 1.5 s, 95 % within 90.0 s"
