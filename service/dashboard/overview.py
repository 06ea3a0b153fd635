"""*Overview*: how calls go, what asking about failures did, and what changed."""

from typing import Final

from aftercall.models import CallCounts, WindowTotals
from service.alerts import DayChange, find_changes
from service.api.patterns import read_pattern_statistics
from service.api.reflection import read_reflection
from service.api.statistics import ToolWindow, read_called_tools, read_trend, sum_windows
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.charts import bar_chart, rates_chart
from service.dashboard.failures import list_costly
from service.dashboard.look import Look, Shown
from service.dashboard.suggestions import repair_words
from service.requests import Window, WindowList

_TOOLS: Final = 500
"""Tools that are compared with the days before."""
_PATTERNS: Final = 50


async def show_overview(look: Look) -> Shown:
    """Return the page."""
    space, window = look.space, look.window
    asked = w.WINDOWS if window in w.WINDOWS else (window, *w.WINDOWS)
    totals = await sum_windows(space, asked=asked, with_durations=False)
    day = totals[-3]
    if not w.count_calls(totals[-1].totals):
        server = look.context.settings.server
        address = server.public_url or f"http://{server.host}:{server.port}"
        return look.show_page("Overview", "begin", of=day, address=address)
    trend = await read_trend(space, ToolWindow(window=window))
    patterns = await read_pattern_statistics(space, WindowList(window=window, limit=_PATTERNS))
    tools = await read_called_tools(space, window, _TOOLS)
    # The changes are the same in each window; figures that were read for them are read once.
    patterns_day = (
        patterns
        if window == "24h"
        else await read_pattern_statistics(space, WindowList(window="24h", limit=_PATTERNS))
    )
    tools_day = tools if window == "24h" else await read_called_tools(space, "24h", _TOOLS)
    tools_week = tools if window == "7d" else await read_called_tools(space, "7d", _TOOLS)
    failed = [each for each in tools if each.failures]
    failed.sort(key=lambda each: (-each.failures, w.success_rate(each) or 0.0))
    bars = {
        "Successes": [each.successes for each in trend.points],
        "Failures": [each.failures for each in trend.points],
    }
    return look.show_page(
        "Overview",
        "overview",
        of=day,
        totals=[(each.window, _list_numbers(each)) for each in totals],
        changes=[
            _show_change(look, each)
            for each in find_changes(day, patterns_day, tools_day, tools_week)
        ],
        reflection=await read_reflection(space, Window(window=window)),
        repair_words=repair_words,
        success=rates_chart("Success rate over time", trend, {"Succeeded": trend.points}, 200),
        calls=bar_chart(
            "Calls over time", w.label_axis([each.at for each in trend.points]), bars, height=150
        ),
        costs=await list_costly(look, 4),
        is_gathered=bool(patterns.patterns or not patterns.other_failures),
        tools=failed[:5],
        tool_columns=[
            look.whole_tool_column(),
            h.Column("failures", "Failures", "number"),
            h.Column("rate", "Succeeded", "percent", of=w.success_rate),
            h.Column("calls", "Calls", "number", of=w.count_calls),
        ],
    )


def _list_numbers(each: WindowTotals) -> list[tuple[str, str, str]]:
    def compare_value(counts: CallCounts | None) -> tuple[str, str, str]:
        if counts is None:
            return "", "", ""
        return (
            w.format_count(w.count_calls(counts)),
            w.format_percent(w.success_rate(counts)),
            w.format_count(counts.failures),
        )

    labels = ("Calls", "Succeeded", "Failures")
    return [
        (label, now, f"before: {before}" if before.strip("-") else "")
        for label, now, before in zip(
            labels, compare_value(each.totals), compare_value(each.before), strict=True
        )
    ]


def _show_change(look: Look, change: DayChange) -> h.Value:
    words = h.SIGNS[change.tone] + w.format_line(change.words, 2 * w.MAX_SIGNATURE)
    if change.pattern is not None:
        return h.Anchor(words, look.link_pattern(change.pattern.pattern_id))
    return words if change.tool is None else h.Anchor(words, look.link_tool(change.tool))
