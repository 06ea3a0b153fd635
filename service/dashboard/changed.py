"""What changed since yesterday, in words: the last 24 hours beside what was before. Pure.

Small numbers say little, so a change is told only where it is more than chance would give: two
shares by the pooled z-test of two proportions, and a tool's failures by how often it was called.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from aftercall.models import (
    CallCounts,
    PatternStatistics,
    ToolName,
    ToolStatisticsList,
    WindowTotals,
)
from service.dashboard.shown import numbers
from service.dashboard.shown.failure_rows import name_of
from service.dashboard.tone import Tone

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


_WORDS: Final = 160
"""Characters of a wording in a sentence."""


@dataclass(frozen=True, slots=True)
class Change:
    """One sentence."""

    words: str
    tone: Tone = "plain"
    """`good` and `bad` only where it is clear."""
    tool: ToolName | None = None
    """The tool that it is about."""
    pattern_id: str | None = None
    """The pattern that it is about."""


def changes(
    day: WindowTotals,
    patterns: PatternStatistics,
    tools_day: ToolStatisticsList,
    tools_week: ToolStatisticsList,
) -> list[Change]:
    """What changed, most general first; never empty.

    Args:
        day: the totals of 24h.
        patterns: those of 24h.
        tools_day: the tools of 24h.
        tools_week: those of 7d, which hold these 24 hours too.
    """
    if day.before is None:
        return [Change("There is nothing to compare with yet: a day's calls are needed first.")]
    now, before = calls_of(day.totals), calls_of(day.before)
    if now == 0 and before == 0:
        return [Change("Nothing was called in the last 48 hours.")]
    return [
        Change(_calls(now, before)),
        *_rates(day.totals, day.before),
        *_tools(tools_day, tools_week),
        *_patterns(patterns),
    ]


def calls_of(counts: CallCounts) -> int:
    """All calls."""
    return counts.successes + counts.failures


def success_rate(counts: CallCounts) -> float | None:
    """Share of calls that succeeded, in [0, 1]; None without calls."""
    calls = calls_of(counts)
    return counts.successes / calls if calls else None


def is_sure(one: CallCounts, other: CallCounts) -> bool:
    """Whether two success rates differ by more than chance gives; never with few calls."""
    n, m = calls_of(one), calls_of(other)
    if min(n, m) < _FEW:
        return False
    pooled = (one.successes + other.successes) / (n + m)
    error = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return error > 0 and abs(one.successes / n - other.successes / m) / error >= _SURE


def _calls(now: int, before: int) -> str:
    told = f"{numbers.count(now)} {_plural('call', now)} in the last 24 hours"
    if before == 0:
        return f"{told}, none in the 24 hours before."
    if now == before:
        return f"{told}, as many as in the 24 hours before."
    # Of few calls a percentage would say more than there is.
    by = f" ({(now - before) / before:+.0%})" if before >= _FEW else ""
    return f"{told}, {numbers.count(before)} in the 24 hours before{by}."


def _rates(now: CallCounts, before: CallCounts) -> list[Change]:
    rate, former = success_rate(now), success_rate(before)
    if rate is None or former is None:
        return []
    if min(calls_of(now), calls_of(before)) < _FEW:
        return [Change(f"Fewer than {_FEW} calls on one side: success rates are not compared.")]
    points = (rate - former) * 100
    told = f"{numbers.percent(rate)} succeeded, {numbers.percent(former)} the day before"
    if not is_sure(now, before):
        return [Change(f"{told}: no more of a difference than chance gives.")]
    if points > 0:
        return [Change(f"{told}: up by {points:.1f} points.", "good")]
    return [Change(f"{told}: down by {-points:.1f} points.", "bad")]


def _tools(day: ToolStatisticsList, week: ToolStatisticsList) -> list[Change]:
    today = {_key(each.tool): each for each in day.tools}
    failing: list[Change] = []
    recovered: list[Change] = []
    for each in week.tools:
        now = today.get(_key(each.tool), CallCounts())
        # Both windows end now, so what is left of the week is what was before these 24 hours.
        earlier = CallCounts(
            successes=max(0, each.successes - now.successes),
            failures=max(0, each.failures - now.failures),
        )
        name = name_of(each.tool)
        if earlier.failures == 0 and now.failures >= _ENOUGH and calls_of(earlier) >= _ENOUGH:
            words = (
                f"{name} began to fail: {numbers.count(now.failures)} of "
                f"{numbers.count(calls_of(now))} calls; in the days before none of "
                f"{numbers.count(calls_of(earlier))}."
            )
            failing.append(Change(words, "bad", tool=each.tool))
        elif now.failures == 0 and now.successes >= _QUIET and _was_bad(earlier):
            words = (
                f"{name} recovered: no failure in {numbers.count(now.successes)} calls; in the "
                f"days before {numbers.count(earlier.failures)} of "
                f"{numbers.count(calls_of(earlier))} failed."
            )
            recovered.append(Change(words, "good", tool=each.tool))
    return [*_some(failing, "tools began to fail"), *_some(recovered, "tools recovered")]


def _was_bad(earlier: CallCounts) -> bool:
    """Failed so often that a day without one is news: every tenth call, at least."""
    return earlier.failures >= _ENOUGH and earlier.failures * 10 >= calls_of(earlier)


def _patterns(patterns: PatternStatistics) -> list[Change]:
    new = [
        Change(
            f"A failure that was not there the day before, {numbers.count(each.failures)} "
            f"{_plural('time', each.failures)}: {each.pattern.signature[:_WORDS]}",
            "warn",
            pattern_id=each.pattern.pattern_id,
        )
        for each in patterns.patterns
        if each.before == 0 and each.failures >= _ENOUGH
    ]
    return _some(new, "patterns of failure were not there the day before")


def _some(found: Sequence[Change], words: str) -> list[Change]:
    more = len(found) - _MOST
    return [*found[:_MOST], *([Change(f"{more} more {words}.")] if more > 0 else [])]


def _key(tool: ToolName) -> tuple[str | None, str]:
    return tool.server_name, tool.tool_name


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
