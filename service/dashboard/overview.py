"""*Overview*: how calls go, what asking about failures did, and what changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from aftercall.models import (
    CallCounts,
    PatternStatistics,
    ReflectionStatistics,
    RepairTimes,
    ToolName,
    ToolUsage,
    Totals,
    Trend,
    WindowTotals,
)
from service import statistics
from service.dashboard.charts import bar_chart, success_chart
from service.dashboard.failures import pattern_columns
from service.dashboard.html import (
    Column,
    Html,
    Tone,
    box,
    empty,
    facts,
    grid,
    lines,
    link,
    markup,
    p,
    plain_table,
    section,
    stat,
    stats,
    toned,
)
from service.dashboard.look import Look, Shown
from service.dashboard.suggestions import repair_words
from service.dashboard.tools import place_of
from service.dashboard.words import (
    MAX_SIGNATURE,
    WINDOWS,
    axis,
    calls,
    count,
    counted,
    one_line,
    percent,
    success_rate,
    tool_name,
)

_TOOLS: Final = 500
"""Tools that are compared with the days before."""
_PATTERNS: Final = 50
_TOP: Final = 5
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
    totals = await statistics.totals(*space, with_durations=False)
    day, month = totals.windows[0], totals.windows[-1]
    if not calls(month.totals):
        begin = _how_to_begin(is_complete=day.is_complete)
        return Shown("Overview", begin, day.until, is_complete=day.is_complete)
    trend = await statistics.trend(*space, window)
    reflection = await statistics.reflection(*space, window)
    patterns = await statistics.patterns(*space, window, _PATTERNS)
    tools = await statistics.called(*space, window, _TOOLS)
    # What changed is the same whatever the window; what was read for it is not read again.
    patterns_day = (
        patterns if window == "24h" else await statistics.patterns(*space, "24h", _PATTERNS)
    )
    tools_day = tools if window == "24h" else await statistics.called(*space, "24h", _TOOLS)
    tools_week = tools if window == "7d" else await statistics.called(*space, "7d", _TOOLS)
    found = changes(day, patterns_day, tools_day, tools_week)
    changed = section("What changed since yesterday", lines(_change(look, each) for each in found))
    content = [
        _totals(totals),
        grid(box("stack", changed, _answers(look, reflection)), _trend(look, trend)),
        _reflection(look, reflection),
        grid(_patterns(look, patterns), _tools(look, tools)),
    ]
    return Shown("Overview", content, day.until, is_complete=day.is_complete)


def _totals(totals: Totals) -> Html:
    def numbers(counts: CallCounts | None) -> tuple[str, str, str]:
        if counts is None:
            return "", "", ""
        return count(calls(counts)), percent(success_rate(counts)), count(counts.failures)

    return grid(
        [
            section(
                f"Last {WINDOWS[each.window]}",
                stats(
                    [
                        stat(label, now, f"before: {before}" if before.strip("-") else "")
                        for label, now, before in zip(
                            ("Calls", "Succeeded", "Failures"),
                            numbers(each.totals),
                            numbers(each.before),
                            strict=True,
                        )
                    ],
                    class_="stats three",
                ),
            )
            for each in totals.windows
        ],
        class_="grid three",
    )


def _trend(look: Look, trend: Trend) -> Html:
    labels = axis((each.at for each in trend.points), look.window)
    return section(
        f"Success rate, {WINDOWS[look.window]}",
        success_chart("Success rate over time", trend, height=200),
        bar_chart(
            "Calls over time",
            labels,
            {
                "Successes": [each.successes for each in trend.points],
                "Failures": [each.failures for each in trend.points],
            },
            height=150,
        ),
    )


def _reflection(look: Look, found: ReflectionStatistics) -> Html:
    retries = success_rate(found.retries)
    tried = f"{count(calls(found.retries))}, {percent(retries)} succeeded"
    return section(
        f"Before and after reflection, {WINDOWS[look.window]}",
        stats(
            _rate("First attempts that succeeded", found.first_attempts),
            _rate("Tasks that succeeded", found.tasks),
            _rate("Calls that followed a suggestion", found.suggested),
        ),
        facts(
            ("Retries", "none" if retries is None else tried),
            ("Repaired with a suggestion", _repaired(found.with_suggestion)),
            ("Repaired without one", _repaired(found.without_suggestion)),
        ),
        remark="A task is a first attempt with the retries that followed it. What succeeded only "
        "when it was tried again counts as a success after reflection.",
    )


def _rate(label: str, counts: CallCounts) -> Html:
    return stat(label, percent(success_rate(counts)), f"of {count(calls(counts))}")


def _repaired(times: RepairTimes) -> str:
    median, of = repair_words(times)
    return "none" if median == "-" else f"{median}, {of}"


def _answers(look: Look, found: ReflectionStatistics) -> Html:
    answers = found.answers

    def share(some: int) -> str:
        return percent(some / answers.asked) if answers.asked else ""

    actions = [
        (each.action.replace("_", " ").capitalize(), count(each.answers))
        for each in answers.by_action
    ]
    nobody = [("Nobody asked yet", "POST /suggest with a call that failed")]
    return section(
        f"Suggestions, {WINDOWS[look.window]}",
        stats(
            stat("Asked", count(answers.asked)),
            stat("Without a suggestion", count(answers.abstained), share(answers.abstained)),
            stat("Confident, above 80 %", count(answers.confident), share(answers.confident)),
        ),
        facts(*(actions if answers.asked else nobody)),
        link("All about suggestions", look.link("/suggestions")),
    )


def _patterns(look: Look, found: PatternStatistics) -> Html:
    keys = ("signature", "tool", "failures", "before")
    table = plain_table(
        "Most frequent failures",
        [each for each in pattern_columns(look) if each.key in keys],
        found.patterns[:_TOP],
        missing="No pattern yet: the nightly run finds them (aftercall nightly).",
    )
    more = link("All failures", look.link("/failures"))
    return section("Most frequent failures", table, more)


def _tools(look: Look, tools: Sequence[ToolUsage]) -> Html:
    failed = [each for each in tools if each.failures]
    failed.sort(key=lambda each: (-each.failures, success_rate(each) or 0.0))
    table = plain_table(
        "Tools in trouble",
        [
            look.whole_tool_column(),
            Column("failures", "Failures", "number"),
            Column("rate", "Succeeded", "percent", of=success_rate),
            Column("calls", "Calls", "number", of=calls),
        ],
        failed[:_TOP],
        missing="No tool failed.",
    )
    return section("Tools in trouble", table, link("All tools", look.link("/tools")))


def _how_to_begin(*, is_complete: bool) -> Html:
    missing = empty(
        "No call was recorded yet.",
        "Fill the dashboard with a month of a made-up history, to see what it is like:",
        "aftercall demo --history",
        is_complete=is_complete,
    )
    ways = lines([
        "With the gateway: put it before your MCP servers, and every call is recorded.",
        "With the SDK: wrap your tools, and ask when one fails.",
        "Over HTTP: POST /executions, as the API says.",
    ])  # fmt: skip
    how = section("Record calls of your own", ways, link("The API", "/docs"))
    fills = p("This page fills by itself once the first call has come in.")
    return markup([missing, *([how, fills] if is_complete else [])])


# What changed since yesterday: small numbers say little, so a change is only named where it is more
# than chance would give.


@dataclass(frozen=True, slots=True)
class DayChange:
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
    tools_day: Sequence[ToolUsage],
    tools_week: Sequence[ToolUsage],
) -> list[DayChange]:
    """What changed in the last 24 hours, most general first; never empty.

    All are of 24 hours but `tools_week`, of 7 days, which hold these hours too.
    """
    if day.before is None:
        return [DayChange("There is nothing to compare with yet: a day's calls are needed first.")]
    if not calls(day.totals) and not calls(day.before):
        return [DayChange("Nothing was called in the last 48 hours.")]
    return [
        _changed_calls(calls(day.totals), calls(day.before)),
        *_changed_rate(day.totals, day.before),
        *_changed_tools(tools_day, tools_week),
        *_new_patterns(patterns),
    ]


def is_sure(one: CallCounts, other: CallCounts) -> bool:
    """Whether two success rates differ by more than chance gives; never with few calls.

    By the pooled z-test of two proportions.
    """
    n, m = calls(one), calls(other)
    if min(n, m) < _FEW:
        return False
    pooled = (one.successes + other.successes) / (n + m)
    error = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return error > 0 and abs(one.successes / n - other.successes / m) / error >= _SURE


def _change(look: Look, change: DayChange) -> str:
    words = toned(one_line(change.words, 2 * MAX_SIGNATURE), change.tone)
    if change.pattern_id is not None:
        return link(words, look.pattern(change.pattern_id))
    return words if change.tool is None else link(words, look.tool(change.tool))


def _changed_calls(now: int, before: int) -> DayChange:
    words = f"{counted(now, 'call')} in the last 24 hours"
    if before == 0:
        return DayChange(f"{words}, none in the 24 hours before.")
    if now == before:
        return DayChange(f"{words}, as many as in the 24 hours before.")
    # Of few calls a percentage would say more than there is.
    by = f" ({(now - before) / before:+.0%})" if before >= _FEW else ""
    return DayChange(f"{words}, {count(before)} in the 24 hours before{by}.")


def _changed_rate(now: CallCounts, before: CallCounts) -> list[DayChange]:
    rate, former = success_rate(now), success_rate(before)
    if rate is None or former is None:
        return []
    if min(calls(now), calls(before)) < _FEW:
        return [DayChange(f"Fewer than {_FEW} calls on one side: success rates are not compared.")]
    words = f"{percent(rate)} succeeded, {percent(former)} the day before"
    if not is_sure(now, before):
        return [DayChange(f"{words}: no more of a difference than chance gives.")]
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
        name = tool_name(each.tool)
        if failed == 0 and now.failures >= _ENOUGH and earlier >= _ENOUGH:
            words = (
                f"{name} began to fail: {count(now.failures)} of {count(calls(now))} calls; in the "
                f"days before none of {count(earlier)}."
            )
            failing.append(DayChange(words, "bad", tool=each.tool))
        # It failed so often that a day without a failure is news: every tenth call, at least.
        was_bad = failed >= _ENOUGH and failed * 10 >= earlier
        if was_bad and now.failures == 0 and now.successes >= _QUIET:
            words = (
                f"{name} recovered: no failure in {count(now.successes)} calls; in the days before "
                f"{count(failed)} of {count(earlier)} failed."
            )
            recovered.append(DayChange(words, "good", tool=each.tool))
    return [*_first(failing, "tools began to fail"), *_first(recovered, "tools recovered")]


def _new_patterns(patterns: PatternStatistics) -> Iterable[DayChange]:
    new = [
        DayChange(
            f"A failure that was not there the day before, {counted(each.failures, 'time')}: "
            f"{each.pattern.signature[:160]}",
            "warn",
            pattern_id=each.pattern.pattern_id,
        )
        for each in patterns.patterns
        if each.before == 0 and each.failures >= _ENOUGH
    ]
    return _first(new, "patterns of failure were not there the day before")


def _first(found: Sequence[DayChange], words: str) -> list[DayChange]:
    more = len(found) - _MOST
    return [*found[:_MOST], *([DayChange(f"{more} more {words}.")] if more > 0 else [])]
