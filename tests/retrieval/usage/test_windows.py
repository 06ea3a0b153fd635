"""Windows end at the run, begin with an hour, and tell the rest of very many as others."""

from datetime import timedelta

from mongo.records import ToolKey
from retrieval.usage.day import DayUsage
from retrieval.usage.windows import MAX_TOOLS, UsageWindows, told, windows_of
from tests.retrieval.usage.usage_samples import NOON, TOOL, failed, stored


def usage(*executions: object) -> DayUsage:
    """A day of these; failures are time-outs."""
    day = DayUsage()
    for each in executions:
        category = "timeout" if each.execution.error is not None else None  # type: ignore[attr-defined]
        day.count(each, category)  # type: ignore[arg-type]
    return day


def test_each_window_holds_what_lies_in_it() -> None:
    """Of one call now, one two days ago and one ten days ago."""
    sums = windows_of(NOON)
    for position, days in ((1, 0), (2, 2), (3, 10)):
        at = NOON - timedelta(days=days)
        for each in sums:
            each.add(TOOL, at.date(), usage(stored(position, timestamp=at)))
    windows = told(sums).windows
    assert [windows[name].totals.successes for name in ("24h", "7d", "30d")] == [1, 2, 3]  # type: ignore[index]
    day = windows["24h"]
    assert (day.until, day.computed_at) == (NOON, NOON)
    assert day.since == NOON.replace(minute=0) - timedelta(days=1)


def test_what_is_later_than_the_run_is_left_out() -> None:
    """A caller's clock that goes ahead does not fill tomorrow's window today."""
    sums = windows_of(NOON)
    later = NOON + timedelta(hours=2)
    for each in sums:
        each.add(TOOL, later.date(), usage(stored(1, timestamp=later)))
    assert told(sums).windows["30d"].totals.successes == 0


def test_tools_agents_and_categories_are_told_most_calls_first() -> None:
    """With durations; the totals are those of all."""
    other = ToolKey("default", None, "rare")
    sums = windows_of(NOON)
    for each in sums:
        each.add(other, NOON.date(), usage(stored(1, agent="eve")))
        each.add(TOOL, NOON.date(), usage(stored(2), stored(3), failed(4)))
    found = told(sums).windows["24h"]
    assert [each.tool.tool_name for each in found.by_tool] == ["rag_query", "rare"]
    assert [(each.agent, each.successes) for each in found.by_agent] == [("ada", 2), ("eve", 1)]
    assert [(each.category, each.failures) for each in found.by_category] == [("timeout", 1)]
    assert found.totals.successes == 3
    assert found.totals.duration_ms is not None
    assert abs(found.totals.duration_ms.p50 - 100) < 5


def test_of_very_many_tools_the_rare_ones_are_others() -> None:
    """The list is bounded, and nothing is missing from the sums."""
    sums = windows_of(NOON)
    busy = usage(*(stored(number) for number in range(1, 4)))
    for number in range(10 * MAX_TOOLS):
        sums[0].add(ToolKey("default", None, f"t{number}"), NOON.date(), usage(stored(1)))
        if number % 100 == 0:
            sums[0].add(TOOL, NOON.date(), busy)
    found = sums[0].told()
    assert len(found.by_tool) == MAX_TOOLS
    assert found.by_tool[0].tool.tool_name == "rag_query"
    listed = sum(each.successes for each in found.by_tool)
    assert listed + found.other_tools.successes == found.totals.successes


def test_windows_read_back_as_they_were_kept() -> None:
    """Also those without any call."""
    windows = told(windows_of(NOON))
    assert UsageWindows.model_validate_json(windows.model_dump_json()) == windows
