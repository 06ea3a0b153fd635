"""Statistics of workspaces: sums of counters over `service.windows`, and what else is known."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, get_args

import numpy as np

from aftercall import models as m
from aftercall.tables import sum_values
from mongo.records import ToolKey
from retrieval.answers.judge.reliability import Promise, reliability
from retrieval.knowledge.memory import JUDGED
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, cost_of
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.registry import UnknownNameError, nearest_names
from service.context import Context
from service.health import tool_qualities
from service.patterns import (
    by_pattern,
    consolidated_at,
    latest_repairs,
    reviews_of,
    shown,
    state_of,
    stored_pattern,
    stored_patterns,
)
from service.windows import WindowHours, span_of

MAX_TOOLS_OF_AGENT = 20
"""Those with most failures, then most calls."""
MAX_COSTS = 500
"""Patterns that are weighed, those of most failures."""
MAX_OUTCOMES = 2_000
"""The latest outcomes that are looked at."""
_CALLS = (
    what.SUCCESS, what.FAILURE, what.RETRY_SUCCESS, what.RETRY_FAILURE, what.FOLLOWED_SUCCESS,
    what.FOLLOWED_FAILURE,
)  # fmt: skip
_DURATIONS = f"{what.DURATION}*"


async def totals(
    context: Context,
    workspace: str,
    *,
    asked: Iterable[m.UsageWindow] = m.LATEST_WINDOWS,
    with_durations: bool = True,
) -> m.Totals:
    """Return all calls within each window; durations are most of the work."""
    windows = []
    for window in asked:
        span = span_of(context, workspace, window)
        before = await span.known_before()
        windows.append(
            m.WindowTotals(
                **await span.about(),
                totals=await _all_calls(span, with_durations=with_durations),
                before=_counts(await before.by_name(*_CALLS)) if before else None,
            )
        )
    return m.Totals(windows=windows)


async def usage(context: Context, workspace: str, window: m.UsageWindow, limit: int) -> m.Usage:
    """Calls by tool, agent and kind of failure; at most `limit` tools and agents."""
    span, about = await _span(context, workspace, window)
    by_tool, other_tools = await _by_tool(span, limit)
    agents = await _agents(span)
    ranked = sorted(agents, key=lambda name: (-sum(agents[name]), name))
    shown = [name for name in ranked if name != what.OTHER][:limit]
    repaired = await span.by_name(prefix=what.AGENT_REPAIRED)
    categories = await span.by_name(prefix=what.CATEGORY)
    categories.pop(what.OTHER, None)
    return m.Usage(
        **about,
        computed_at=about["until"],
        totals=await _all_calls(span),
        with_context=(await span.by_name(what.WITH_CONTEXT)).total(),
        by_tool=by_tool,
        by_agent=[
            m.AgentUsage(
                agent=name,
                successes=agents[name][0],
                failures=agents[name][1],
                repaired=repaired[name],
            )
            for name in shown
        ],
        by_category=[
            m.CategoryUsage.model_validate({"category": name, "failures": number})
            for name, number in _most(categories)
        ],
        other_tools=other_tools,
        other_agents=pairs(agents[name] for name in agents.keys() - shown),
    )


async def called(
    context: Context, workspace: str, window: m.UsageWindow, limit: int
) -> list[m.ToolUsage]:
    """As `usage` shows tools, without their durations."""
    found, _ = await _by_tool(span_of(context, workspace, window), limit, with_durations=False)
    return found


async def trend(
    context: Context, workspace: str, window: m.UsageWindow, tool: ToolKey | None = None
) -> m.Trend:
    """Calls hour by hour or day by day, of one tool or all."""
    span, about = await _span(context, workspace, window)
    points = await span.points(_CALLS, tool)
    names = (what.VERSION_SUCCESS, what.VERSION_FAILURE)
    counted = await span.points([f"{each}*" for each in names], tool) if tool else []
    made = sum_values(
        (name.removeprefix(names[0]).removeprefix(names[1]), number)
        for _, point in counted
        for name, number in point.items()
    )
    return m.Trend(
        **about,
        step=span.unit,
        tool=await _named(context, tool),
        points=[m.TrendPoint(at=at, **_fields(point)) for at, point in points],
        versions=[
            m.VersionTrend(
                version=name,
                points=[
                    _counts(point, *(f"{each}{name}" for each in names)) for _, point in counted
                ],
            )
            for name, _ in _most(made)
        ],
    )


async def latency(
    context: Context, workspace: str, window: m.UsageWindow, tool: ToolKey | None = None
) -> m.Latency:
    """Return how long calls took, hour by hour or day by day, of one tool or all."""
    span, about = await _span(context, workspace, window)
    points = await span.points((_DURATIONS,), tool)
    return m.Latency(
        **about,
        step=span.unit,
        tool=await _named(context, tool),
        overall=_quantiles(sum((point for _, point in points), Counter())),
        points=[
            m.LatencyPoint(at=at, calls=point.total(), duration_ms=_quantiles(point))
            for at, point in points
        ],
    )


async def tools(
    context: Context, workspace: str, window: m.UsageWindow, limit: int
) -> m.ToolStatisticsList:
    """Tools that were called in a window, at most `limit`, and how good they are now."""
    span, about = await _span(context, workspace, window)
    by_tool, others = await _by_tool(span, limit)
    keys = [ToolKey(workspace, e.tool.server_name, e.tool.tool_name) for e in by_tool]
    known = await tool_qualities(context, workspace, keys)
    return m.ToolStatisticsList(
        **about,
        tools=[
            m.ToolStatistics(**dict(each), **known[key]._asdict())
            for each, key in zip(by_tool, keys, strict=True)
        ],
        other_tools=others,
    )


async def agent(
    context: Context, workspace: str, agent: str, window: m.UsageWindow
) -> m.AgentStatistics:
    """Return the calls of one agent; those of a known one that has none in the window are none."""
    span, about = await _span(context, workspace, window)
    longest = await _agents(span_of(context, workspace, "30d"))
    if agent not in longest or agent == what.OTHER:
        nearest = nearest_names(agent, list(longest), ())
        raise UnknownNameError(agent, nearest, "agent", "GET /stats/usage?window=30d")
    names = (f"{what.AGENT_SUCCESS}{agent}", f"{what.AGENT_FAILURE}{agent}")
    sums = await span.by_key(*names)
    tools = {tool: (each[names[0]], each[names[1]]) for tool, each in sums.items()}
    heaviest = sorted(tools, key=lambda tool: (-tools[tool][1], -sum(tools[tool]), str(tool)))
    registry = await context.memory.registry_of(workspace, heaviest[:MAX_TOOLS_OF_AGENT])
    repaired = await span.by_name(prefix=what.AGENT_REPAIRED)
    return m.AgentStatistics(
        **about,
        agent=agent,
        usage=m.AgentUsage(agent=agent, repaired=repaired[agent], **dict(pairs(tools.values()))),
        tools=[
            m.AgentTool(
                tool=registry.tool_name(tool), successes=tools[tool][0], failures=tools[tool][1]
            )
            for tool in heaviest[:MAX_TOOLS_OF_AGENT]
        ],
    )


async def reflection(
    context: Context, workspace: str, window: m.UsageWindow
) -> m.ReflectionStatistics:
    """Return what asking about failures did.

    Which retry belongs to which first attempt is not counted: `tasks` takes each success for that
    of another task, as many as there are.
    """
    span, about = await _span(context, workspace, window)
    calls = await span.by_name(*_CALLS)
    counted, answers = _fields(calls), await span.by_name(prefix=what.ANSWER)
    watched = await span.by_name(prefix=what.SHADOW)
    before = await span.by_name(what.BEFORE_SUCCESS, what.BEFORE_FAILURE)
    # What was repaired before it was made would have failed.
    saved = before[what.BEFORE_SUCCESS]
    first = m.CallCounts(
        successes=max(0, calls[what.SUCCESS] - calls[what.RETRY_SUCCESS] - saved),
        failures=calls[what.FAILURE] - calls[what.RETRY_FAILURE] + saved,
    )
    began = first.successes + first.failures
    done = min(calls[what.SUCCESS], began)
    by_suggestion, by_agents = await _repair_times(context, workspace, about)
    return m.ReflectionStatistics(
        **about,
        first_attempts=first,
        tasks=m.CallCounts(successes=done, failures=began - done),
        repaired_before=_counts(before, what.BEFORE_SUCCESS, what.BEFORE_FAILURE),
        retries=counted["retries"],
        suggested=counted["suggested"],
        answers=_answers(answers),
        with_suggestion=by_suggestion,
        without_suggestion=by_agents,
        shadow=_shadow(watched, answers[what.UNMADE]) if watched else None,
    )


async def missing(context: Context, workspace: str) -> list[str]:
    """What the calls of the last 7 days leave out that could be learned from, in sentences."""
    sums = await span_of(context, workspace, "7d").by_name(
        what.SUCCESS, what.FAILURE, what.WITH_CONTEXT
    )
    calls = sums[what.SUCCESS] + sums[what.FAILURE]
    without = calls - sums[what.WITH_CONTEXT]
    if 2 * without <= calls:
        return []
    return [
        f"{without:,} of {calls:,} calls do not say what for, so tools cannot be compared by "
        'task: send `context`, over MCP `_meta` "aftercall/context", the header '
        "`aftercall-context` or `aftercall gateway --context`"
    ]


async def patterns(
    context: Context, workspace: str, window: m.UsageWindow, limit: int
) -> m.PatternStatistics:
    """Patterns met in a window, of the latest nightly run (none before), at most `limit`."""
    span, about = await _span(context, workspace, window)
    most, failures, earlier = await _met(span, limit)
    found = [
        m.PatternFailures(
            pattern=each,
            failures=failures[each.pattern_id],
            before=None if earlier is None else earlier.get(each.pattern_id, 0),
        )
        for each in await shown(context, workspace, most)
    ]
    total = (await span.by_name(*_CALLS))[what.FAILURE]
    other = max(0, total - sum(each.failures for each in found))
    return m.PatternStatistics(**about, patterns=found, other_failures=other)


async def fix_first(
    context: Context, workspace: str, window: m.UsageWindow, limit: int
) -> m.FixFirst:
    """Open patterns of a window by what they cost now, at most `limit`.

    Agents have mended as many as is seen of the latest 2,000 repairs, at least the pattern's share
    of all times: of repairs that no edit describes only the number is kept.
    """
    span, about = await _span(context, workspace, window)
    met, failures, earlier = await _met(span, MAX_COSTS)
    reviews = await reviews_of(context, workspace, met)
    marks: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for each in await latest_repairs(context, workspace):
        if about["since"] <= each.mended.failed_at <= about["until"]:
            marks[each.mended.followed_suggestion][each.mark] += 1
    by_suggestion, by_agents = [
        await by_pattern(context, workspace, marks[suggested]) for suggested in (True, False)
    ]
    costs, left = dict[str, dict[str, Any]](), Counter[str]()
    for one in met:
        name, failed = one.pattern_id, failures[one.pattern_id]
        if (state := state_of(reviews.get(name))) != "open":
            left[state] += 1
            continue
        before = None if earlier is None else earlier.get(name, 0)
        helped = min(failed, by_suggestion.get(name, 0))
        share = one.mended / max(1, one.count)
        alone = min(failed - helped, max(by_agents.get(name, 0), round(failed * share)))
        costs[name] = {
            "failures": failed,
            "before": before,
            "mended_by_suggestion": helped,
            "mended_by_agents": alone,
            "unmended": failed - helped - alone,
            "cost": cost_of(failed - helped - alone, failed, before),
        }
    ranked = sorted(costs, key=lambda name: (-costs[name]["cost"], -costs[name]["failures"], name))
    by_id = {each.pattern_id: each for each in met}
    first = await shown(context, workspace, [by_id[name] for name in ranked[:limit]])
    return m.FixFirst(
        **about,
        patterns=[m.PatternCost(pattern=each, **costs[each.pattern_id]) for each in first],
        ignored=left["ignored"],
        resolved=left["resolved"],
    )


async def _met(
    span: WindowHours, limit: int
) -> tuple[list[ConsolidatedPattern], dict[str, int], dict[str, int] | None]:
    """The patterns met most, with the failures of all in the window, and in the span before it."""
    context, workspace, before = span.context, span.workspace, await span.known_before()

    if await consolidated_at(context, workspace) is None:
        return [], {}, None if before is None else {}

    async def counted(span: WindowHours) -> dict[str, int]:
        return await by_pattern(context, workspace, await span.by_name(prefix=what.SIGNATURE))

    failures, earlier = await counted(span), await counted(before) if before else None
    names = [name for name, _ in _most(failures)][:limit]
    return await stored_patterns(context, workspace, names), failures, earlier


async def pattern(
    context: Context, workspace: str, pattern_id: str, window: m.UsageWindow
) -> m.PatternHistory:
    """Return how often a pattern was met, day by day."""
    stored = await stored_pattern(context, workspace, pattern_id)
    [answered] = await shown(context, workspace, [stored])
    span, about = await _span(context, workspace, window)
    points = await span.points([f"{what.SIGNATURE}{mark.hex()}" for mark in stored.member_marks()])
    return m.PatternHistory(
        **about,
        pattern=answered,
        points=[m.FailurePoint(at=at, failures=point.total()) for at, point in points],
    )


async def confidence(context: Context, workspace: str) -> m.ConfidenceStatistics:
    """Return what suggestions promised and what came of it, of the latest outcomes."""
    rows = await context.store.knowledge.scan_rows(workspace, JUDGED.name, MAX_OUTCOMES, by="rank")
    judged = [each for row in rows if (each := JUDGED.decode_row(row)).estimate is not None]
    return reliability([Promise(e.confidence, e.outcome == "success") for e in judged])


async def _span(
    context: Context, workspace: str, window: m.UsageWindow
) -> tuple[WindowHours, dict[str, Any]]:
    span = span_of(context, workspace, window)
    return span, await span.about()


async def _by_tool(
    span: WindowHours, limit: int, *, with_durations: bool = True
) -> tuple[list[m.ToolUsage], m.CallCounts]:
    tools = await span.top_tools((what.SUCCESS, what.FAILURE), limit)
    calls = await span.by_key(*_CALLS, tools=tools)
    durations = await span.by_key(_DURATIONS, tools=tools) if with_durations else {}
    registry = await span.context.memory.registry_of(span.workspace, tools)
    shown = [
        m.ToolUsage(
            tool=registry.tool_name(tool),
            duration_ms=_quantiles(durations.get(tool, Counter())),
            **_fields(calls.get(tool, Counter())),
        )
        for tool in tools
    ]
    others = Counter(await span.by_name(what.SUCCESS, what.FAILURE))
    for counted in calls.values():
        others.subtract({name: counted[name] for name in (what.SUCCESS, what.FAILURE)})
    return shown, _counts(+others)


async def _agents(span: WindowHours) -> dict[str, tuple[int, int]]:
    worked = await span.by_name(prefix=what.AGENT_SUCCESS)
    failed = await span.by_name(prefix=what.AGENT_FAILURE)
    return {name: (worked[name], failed[name]) for name in {**worked, **failed}}


async def _all_calls(span: WindowHours, *, with_durations: bool = True) -> dict[str, Any]:
    found = _fields(await span.by_name(*_CALLS))
    if with_durations:
        found["duration_ms"] = _quantiles(await span.by_name(_DURATIONS))
    return found


def _shadow(sums: Counter[str], unmade: int) -> m.ShadowCounts:
    def of(*names: str) -> m.CallCounts:
        return m.CallCounts(
            successes=sum(sums[f"{name}.success"] for name in names),
            failures=sum(sums[f"{name}.failure"] for name in names),
        )

    return m.ShadowCounts(
        watched=of("pass", "warn", "repair", "block"),
        repaired_before=of("repair"),
        blocked=of("block"),
        repaired_after=unmade,
        same=of("same"),
        other=of("other"),
    )


def _answers(sums: Counter[str]) -> m.AnswerCounts:
    actions = {f"action:{each}": each for each in get_args(m.Action)}
    kinds = {f"{what.ABSTAINED}:{each}": each for each in get_args(m.ErrorCategory)}
    return m.AnswerCounts(
        asked=sums[what.ASKED],
        abstained=sums[what.ABSTAINED],
        confident=sums[what.SURE],
        by_action=[
            m.ActionCount(action=actions[name], answers=number)
            for name, number in _most(sums)
            if name in actions
        ],
        abstentions=[
            m.CategoryAbstentions(category=kinds[name], answers=number)
            for name, number in _most(sums)
            if name in kinds
        ],
    )


async def _repair_times(
    context: Context, workspace: str, about: Mapping[str, Any]
) -> tuple[m.RepairTimes, m.RepairTimes]:
    """Of the failures that were repaired in a window: those by a suggestion, and the others."""
    waited: dict[bool, list[float]] = {True: [], False: []}
    for _, each in await latest_repairs(context, workspace):
        if about["since"] <= each.mended_at <= about["until"]:
            # By another clock a success may be of before its failure.
            seconds = max(0.0, (each.mended_at - each.failed_at) / timedelta(seconds=1))
            waited[each.followed_suggestion].append(seconds * 1000)
    return _times(waited[True]), _times(waited[False])


async def _named(context: Context, tool: ToolKey | None) -> m.ToolName | None:
    if tool is None:
        return None
    return (await context.memory.registry_of(tool.workspace, [tool])).tool_name(tool)


def pairs(pairs: Iterable[tuple[int, int]]) -> m.CallCounts:
    """Return the sums of successes and failures."""
    worked, failed = map(sum, zip((0, 0), *pairs, strict=True))
    return m.CallCounts(successes=worked, failures=failed)


def _counts(
    calls: Counter[str], worked: str = what.SUCCESS, failed: str = what.FAILURE
) -> m.CallCounts:
    return m.CallCounts(successes=calls[worked], failures=calls[failed])


def _fields(calls: Counter[str]) -> dict[str, Any]:
    return {
        **dict(_counts(calls)),
        "retries": _counts(calls, what.RETRY_SUCCESS, what.RETRY_FAILURE),
        "suggested": _counts(calls, what.FOLLOWED_SUCCESS, what.FOLLOWED_FAILURE),
    }


def _most(sums: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(sums.items(), key=lambda each: (-each[1], each[0]))


def _quantiles(durations: Mapping[str, int]) -> m.DurationQuantiles | None:
    if not durations:
        return None
    buckets = {int(name.removeprefix(what.DURATION)): each for name, each in durations.items()}
    p50, p95, p99 = (
        round(what.duration_quantile(buckets, share) or 0.0, 3) for share in (0.5, 0.95, 0.99)
    )
    return m.DurationQuantiles(p50=p50, p95=p95, p99=p99)


def _times(waited_ms: Iterable[float]) -> m.RepairTimes:
    if not (found := list(waited_ms)):
        return m.RepairTimes()
    p50, p95 = np.percentile(found, [50, 95])
    return m.RepairTimes(
        repairs=len(found), p50_ms=round(float(p50), 3), p95_ms=round(float(p95), 3)
    )
