"""*Overview*: how calls go, what asking about failures did, and what changed."""

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Final, NamedTuple

from aftercall.models import (
    CallCounts,
    PatternStatistics,
    ToolName,
    ToolUsage,
    WindowTotals,
)
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.charts import bar_chart, success_chart
from service.dashboard.failures import costly
from service.dashboard.look import Look, Shown
from service.dashboard.suggestions import repair_words
from service.dashboard.tools import place_of

_TOOLS: Final = 500
"""Tools that are compared with the days before."""
_PATTERNS: Final = 50
_TOP: Final = 4
_TROUBLED: Final = 5
_FEW: Final = 20
"""Calls on either side below which shares are not compared."""
_SURE: Final = 1.96
"""|z| of a difference that chance gives in one of twenty days (two-sided 5 %)."""
_ENOUGH: Final = 3
"""Failures from which on a tool counts as failing, and calls before that it counts as known."""
_QUIET: Final = 5
"""Calls without a failure from which on a tool counts as recovered."""
_MOST: Final = 4
"""Tools and patterns of one kind that are named."""


async def overview(look: Look) -> Shown:
    """The page."""
    space, window = look.space, look.window
    asked = w.WINDOWS if window in w.WINDOWS else (window, *w.WINDOWS)
    totals = await statistics.totals(*space, asked=asked, with_durations=False)
    day = totals.windows[-3]
    if not w.calls(totals.windows[-1].totals):
        server = look.context.settings.server
        address = server.public_url or f"http://{server.host}:{server.port}"
        return look.shows(
            "Overview", "begin", at=day.until, is_complete=day.is_complete, address=address
        )
    trend = await statistics.trend(*space, window)
    patterns = await statistics.patterns(*space, window, _PATTERNS)
    tools = await statistics.called(*space, window, _TOOLS)
    # What changed is the same whatever the window; what was read for it is not read again.
    patterns_day = (
        patterns if window == "24h" else await statistics.patterns(*space, "24h", _PATTERNS)
    )
    tools_day = tools if window == "24h" else await statistics.called(*space, "24h", _TOOLS)
    tools_week = tools if window == "7d" else await statistics.called(*space, "7d", _TOOLS)
    failed = [each for each in tools if each.failures]
    failed.sort(key=lambda each: (-each.failures, w.success_rate(each) or 0.0))
    bars = {
        "Successes": [each.successes for each in trend.points],
        "Failures": [each.failures for each in trend.points],
    }
    return look.shows(
        "Overview",
        "overview",
        at=day.until,
        is_complete=day.is_complete,
        totals=[(each.window, _numbers(each)) for each in totals.windows],
        changes=[_change(look, each) for each in changes(day, patterns_day, tools_day, tools_week)],
        reflection=await statistics.reflection(*space, window),
        repair_words=repair_words,
        success=success_chart("Success rate over time", trend, height=200),
        calls=bar_chart(
            "Calls over time", w.axis([each.at for each in trend.points]), bars, height=150
        ),
        costs=await costly(look, _TOP),
        is_gathered=bool(patterns.patterns or not patterns.other_failures),
        tools=failed[:_TROUBLED],
        tool_columns=[
            look.whole_tool_column(),
            h.Column("failures", "Failures", "number"),
            h.Column("rate", "Succeeded", "percent", of=w.success_rate),
            h.Column("calls", "Calls", "number", of=w.calls),
        ],
    )


def _numbers(each: WindowTotals) -> list[tuple[str, str, str]]:
    def told(counts: CallCounts | None) -> tuple[str, str, str]:
        if counts is None:
            return "", "", ""
        rate = w.percent(w.success_rate(counts))
        return w.count(w.calls(counts)), rate, w.count(counts.failures)

    labels = ("Calls", "Succeeded", "Failures")
    return [
        (label, now, f"before: {before}" if before.strip("-") else "")
        for label, now, before in zip(labels, told(each.totals), told(each.before), strict=True)
    ]


# What changed since yesterday: small numbers say little, so a change is only named where it is more
# than chance would give.


class DayChange(NamedTuple):
    """One sentence, and the tool or the pattern that it is about."""

    words: str
    tone: h.Tone = "plain"
    """`good` and `bad` only where it is clear."""
    tool: ToolName | None = None
    pattern_id: str | None = None


def changes(
    day: WindowTotals,
    patterns: PatternStatistics,
    tools_day: Sequence[ToolUsage],
    tools_week: Sequence[ToolUsage],
) -> list[DayChange]:
    """What changed in the last 24 hours, most general first; never empty.

    All are of 24 hours but `tools_week`, of 7 days, which hold these hours too.
    """
    if day.before is None:
        return [DayChange("There is nothing to compare with yet: a day's calls are needed first.")]
    if not w.calls(day.totals) and not w.calls(day.before):
        return [DayChange("Nothing was called in the last 48 hours.")]
    if not w.calls(day.before):  # all would be new
        return [_changed_calls(w.calls(day.totals), 0)]
    return [
        _changed_calls(w.calls(day.totals), w.calls(day.before)),
        *_changed_rate(day.totals, day.before),
        *_changed_tools(tools_day, tools_week),
        *_new_patterns(patterns),
    ]


def is_sure(one: CallCounts, other: CallCounts) -> bool:
    """Whether two success rates differ by more than chance gives; never with few calls.

    By the pooled z-test of two proportions.
    """
    n, m = w.calls(one), w.calls(other)
    if min(n, m) < _FEW:
        return False
    pooled = (one.successes + other.successes) / (n + m)
    error = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return error > 0 and abs(one.successes / n - other.successes / m) / error >= _SURE


def _change(look: Look, change: DayChange) -> h.Value:
    words = h.SIGNS[change.tone] + w.one_line(change.words, 2 * w.MAX_SIGNATURE)
    if change.pattern_id is not None:
        return h.Link(words, look.pattern(change.pattern_id))
    return words if change.tool is None else h.Link(words, look.tool(change.tool))


def _changed_calls(now: int, before: int) -> DayChange:
    words = f"{w.counted(now, 'call')} in the last 24 hours"
    if before == 0:
        return DayChange(f"{words}, none in the 24 hours before.")
    if now == before:
        return DayChange(f"{words}, as many as in the 24 hours before.")
    # Of few calls a percentage would say more than there is.
    by = f" ({(now - before) / before:+.0%})" if before >= _FEW else ""
    return DayChange(f"{words}, {w.count(before)} in the 24 hours before{by}.")


def _changed_rate(now: CallCounts, before: CallCounts) -> list[DayChange]:
    rate, former = w.success_rate(now), w.success_rate(before)
    if rate is None or former is None:
        return []
    if min(w.calls(now), w.calls(before)) < _FEW:
        return [DayChange(f"Fewer than {_FEW} calls on one side: success rates are not compared.")]
    words = f"{w.percent(rate)} succeeded, {w.percent(former)} the day before"
    if not is_sure(now, before):
        return [DayChange(f"{words}: the difference may be chance.")]
    points = (rate - former) * 100
    if points > 0:
        return [DayChange(f"{words}: up by {points:.1f} points.", "good")]
    return [DayChange(f"{words}: down by {-points:.1f} points.", "bad")]


def _changed_tools(day: Sequence[ToolUsage], week: Sequence[ToolUsage]) -> Iterable[DayChange]:
    today = {place_of(each.tool): each for each in day}
    failing: list[DayChange] = []
    recovered: list[DayChange] = []
    for each in week:
        now = today.get(place_of(each.tool), CallCounts())
        # Both windows end now, so what is left of the week is what was before these 24 hours.
        failed = max(0, each.failures - now.failures)
        earlier = failed + max(0, each.successes - now.successes)
        name, before = w.tool_name(each.tool), w.count(earlier)
        if failed == 0 and now.failures >= _ENOUGH and earlier >= _ENOUGH:
            words = (
                f"{name} began to fail: {w.count(now.failures)} of {w.count(w.calls(now))} calls; "
                f"in the days before none of {before}."
            )
            failing.append(DayChange(words, "bad", tool=each.tool))
        # It failed so often that a day without a failure is news: every tenth call, at least.
        was_bad = failed >= _ENOUGH and failed * 10 >= earlier
        if was_bad and now.failures == 0 and now.successes >= _QUIET:
            words = (
                f"{name} recovered: no failure in {w.count(now.successes)} calls; in the days "
                f"before {w.count(failed)} of {before} failed."
            )
            recovered.append(DayChange(words, "good", tool=each.tool))
    return [*_first(failing, "tools began to fail"), *_first(recovered, "tools recovered")]


def _new_patterns(patterns: PatternStatistics) -> Iterable[DayChange]:
    new = [
        DayChange(
            f"New since yesterday, {w.counted(each.failures, 'time')}: {each.pattern.title[:160]}",
            "warn",
            pattern_id=each.pattern.pattern_id,
        )
        for each in patterns.patterns
        if each.before == 0 and each.failures >= _ENOUGH
    ]
    return _first(new, "failures are new since yesterday")


def _first(found: Sequence[DayChange], words: str) -> list[DayChange]:
    more = len(found) - _MOST
    return [*found[:_MOST], *([DayChange(f"{more} more {words}.")] if more > 0 else [])]
