"""Statistics of calls: in total, by tool and agent, over time.

They are sums of counters over `service.windows`, and facts of the knowledge store.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from aftercall import models as m
from aftercall.models.base import Name
from aftercall.tables import sum_values
from mongo.records import ToolKey
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.registry import UnknownNameError, nearest_names
from service.api.health import read_qualities
from service.context import Context, Space
from service.requests import NO_QUERY, JsonRoute, ListQuery, Read, ToolFilter, Window, WindowQuery
from service.windows import (
    CALL_COUNTERS,
    WindowHours,
    call_counts,
    call_fields,
    rank_counts,
    read_window,
    span_of,
)

router = APIRouter(tags=["statistics"], route_class=JsonRoute)
MAX_TOOLS_OF_AGENT = 20
"""Those with most failures, then most calls."""
_DURATIONS = f"{what.DURATION}*"
AgentName = Annotated[Name, Path(description="As executions name it; may hold slashes.")]


class ToolWindow(ToolFilter, Window):
    """A window of all calls, or of those of one tool."""


OverTimeQuery = Annotated[ToolWindow, Query()]


@router.get(
    "/stats/totals",
    summary="How many calls there were, and how they went",
    name="totals",
    dependencies=[NO_QUERY],
)
async def read_totals(space: Read) -> m.Totals:
    """Return all calls of 24 hours, 7 days and 30 days up to now, each with the span before it.

    The span before is null if it is not known. 24h begins with an hour, the others with a day
    (UTC), so that points of `/stats/trend` add up.
    """
    return m.Totals(windows=await sum_windows(space))


async def sum_windows(
    space: Space, *, asked: Iterable[m.UsageWindow] = m.LATEST_WINDOWS, with_durations: bool = True
) -> list[m.WindowTotals]:
    """Return all calls of each window; durations are most of the work."""
    windows = []
    for window in asked:
        span = span_of(space, window)
        before = await span.known_before()
        windows.append(
            m.WindowTotals(
                **await span.describe_window(),
                totals=await _count_all(span, with_durations=with_durations),
                before=call_counts(await before.by_name(*CALL_COUNTERS)) if before else None,
            )
        )
    return windows


@router.get(
    "/stats/usage", summary="How often tools were called, by whom, and how that went", name="usage"
)
async def read_usage(space: Read, query: ListQuery) -> m.Usage:
    """Return calls by tool, agent and kind of failure: nightly counts, and what came since.

    The counts stay when executions expire. Times are those of the callers. Tools and agents beyond
    the limit are counted together.
    """
    span, about = await read_window(space, query.window)
    by_tool, other_tools = await _count_tools(span, query.limit)
    agents = await _count_agents(span)
    ranked = sorted(agents, key=lambda name: (-sum(agents[name]), name))
    shown = [name for name in ranked if name != what.OTHER][: query.limit]
    repaired = await span.by_name(prefix=what.AGENT_REPAIRED)
    categories = await span.by_name(prefix=what.CATEGORY)
    categories.pop(what.OTHER, None)
    return m.Usage(
        **about,
        computed_at=about["until"],
        totals=await _count_all(span),
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
            for name, number in rank_counts(categories)
        ],
        other_tools=other_tools,
        other_agents=add_pairs(agents[name] for name in agents.keys() - shown),
    )


async def read_called_tools(space: Space, window: m.UsageWindow, limit: int) -> list[m.ToolUsage]:
    """Return tools as `read_usage` does, without their durations."""
    found, _ = await _count_tools(span_of(space, window), limit, with_durations=False)
    return found


@router.get("/stats/trend", summary="How calls went over time", name="trend")
async def read_trend(space: Read, query: OverTimeQuery) -> m.Trend:
    """Return calls by the hour for 24h, else by the day (UTC), also where there were none.

    A tool without calls has points with zero calls.
    """
    context = space.context
    tool = query.find_tool(space.workspace)
    span, about = await read_window(space, query.window)
    points = await span.read_points(CALL_COUNTERS, tool)
    names = (what.VERSION_SUCCESS, what.VERSION_FAILURE)
    counted = await span.read_points([f"{each}*" for each in names], tool) if tool else []
    made = sum_values(
        (name.removeprefix(names[0]).removeprefix(names[1]), number)
        for _, point in counted
        for name, number in point.items()
    )
    return m.Trend(
        **about,
        step=span.unit,
        tool=await _name_tool(context, tool),
        points=[m.TrendPoint(at=at, **call_fields(point)) for at, point in points],
        versions=[
            m.VersionTrend(
                version=name,
                points=[
                    call_counts(point, *(f"{each}{name}" for each in names)) for _, point in counted
                ],
            )
            for name, _ in rank_counts(made)
        ],
    )


@router.get("/stats/latency", summary="How long calls took over time", name="latency")
async def read_latency(space: Read, query: OverTimeQuery) -> m.Latency:
    """Return p50, p95 and p99 in milliseconds, by the hour or by the day (UTC).

    They are within 5 % of the true values. Only calls with a duration count; without any the value
    is null.
    """
    context = space.context
    tool = query.find_tool(space.workspace)
    span, about = await read_window(space, query.window)
    points = await span.read_points((_DURATIONS,), tool)
    return m.Latency(
        **about,
        step=span.unit,
        tool=await _name_tool(context, tool),
        overall=_read_quantiles(sum((point for _, point in points), Counter())),
        points=[
            m.LatencyPoint(at=at, calls=point.total(), duration_ms=_read_quantiles(point))
            for at, point in points
        ],
    )


@router.get("/stats/tools", summary="Tools that were called, and how good they are", name="tools")
async def list_tool_statistics(space: Read, query: ListQuery) -> m.ToolStatisticsList:
    """Return the called tools: calls in the window, quality and cohesion of now.

    Quality is that of the tool's fitness (`GET /namespaces/{namespace}/best`), cohesion that of
    `GET /boundaries`.
    """
    workspace = space.workspace
    span, about = await read_window(space, query.window)
    by_tool, others = await _count_tools(span, query.limit)
    keys = [ToolKey(workspace, e.tool.server_name, e.tool.tool_name) for e in by_tool]
    known = await read_qualities(space, keys)
    return m.ToolStatisticsList(
        **about,
        tools=[
            m.ToolStatistics(**dict(each), **known[key]._asdict())
            for each, key in zip(by_tool, keys, strict=True)
        ],
        other_tools=others,
    )


@router.get(
    "/stats/agents/{agent:name}", summary="What one agent called, and how that went", name="agent"
)
async def read_agent(space: Read, agent: AgentName, query: WindowQuery) -> m.AgentStatistics:
    """Return the calls of an agent, and some of its tools, those with most failures first.

    The name may hold slashes.

    Raises:
        UnknownNameError: no agent of that name called anything lately.
    """
    context, workspace = space
    span, about = await read_window(space, query.window)
    longest = await _count_agents(span_of(space, "30d"))
    if agent not in longest or agent == what.OTHER:
        nearest = nearest_names(agent, list(longest), ())
        raise UnknownNameError(agent, nearest, "agent", "GET /stats/usage?window=30d")
    worked = f"{what.AGENT_SUCCESS}{agent}"
    failed = f"{what.AGENT_FAILURE}{agent}"
    sums = await span.by_key(worked, failed)
    counts = {tool: (each[worked], each[failed]) for tool, each in sums.items()}

    def sort_key(tool: ToolKey) -> tuple[int, int, str]:
        successes, failures = counts[tool]
        return -failures, -(successes + failures), str(tool)

    heaviest = sorted(counts, key=sort_key)[:MAX_TOOLS_OF_AGENT]
    registry = await context.memory.read_registry_of(workspace, heaviest)
    repaired = await span.by_name(prefix=what.AGENT_REPAIRED)
    tools: list[m.AgentTool] = []
    for tool in heaviest:
        successes, failures = counts[tool]
        name = registry.tool_name(tool)
        tools.append(m.AgentTool(tool=name, successes=successes, failures=failures))
    totals = dict(add_pairs(counts.values()))
    return m.AgentStatistics(
        **about,
        agent=agent,
        usage=m.AgentUsage(agent=agent, repaired=repaired[agent], **totals),
        tools=tools,
    )


async def _count_tools(
    span: WindowHours, limit: int, *, with_durations: bool = True
) -> tuple[list[m.ToolUsage], m.CallCounts]:
    tools = await span.top_tools((what.SUCCESS, what.FAILURE), limit)
    calls = await span.by_key(*CALL_COUNTERS, tools=tools)
    durations = await span.by_key(_DURATIONS, tools=tools) if with_durations else {}
    context, workspace = span.space
    registry = await context.memory.read_registry_of(workspace, tools)
    shown = [
        m.ToolUsage(
            tool=registry.tool_name(tool),
            duration_ms=_read_quantiles(durations.get(tool, Counter())),
            **call_fields(calls.get(tool, Counter())),
        )
        for tool in tools
    ]
    others = Counter(await span.by_name(what.SUCCESS, what.FAILURE))
    for counted in calls.values():
        others.subtract({name: counted[name] for name in (what.SUCCESS, what.FAILURE)})
    return shown, call_counts(+others)


async def _count_agents(span: WindowHours) -> dict[str, tuple[int, int]]:
    worked = await span.by_name(prefix=what.AGENT_SUCCESS)
    failed = await span.by_name(prefix=what.AGENT_FAILURE)
    return {name: (worked[name], failed[name]) for name in {**worked, **failed}}


async def _count_all(span: WindowHours, *, with_durations: bool = True) -> dict[str, Any]:
    found = call_fields(await span.by_name(*CALL_COUNTERS))
    if with_durations:
        found["duration_ms"] = _read_quantiles(await span.by_name(_DURATIONS))
    return found


async def _name_tool(context: Context, tool: ToolKey | None) -> m.ToolName | None:
    if tool is None:
        return None
    return (await context.memory.read_registry_of(tool.workspace, [tool])).tool_name(tool)


def add_pairs(counted: Iterable[tuple[int, int]]) -> m.CallCounts:
    """Return the sums of pairs of successes and failures."""
    worked, failed = map(sum, zip((0, 0), *counted, strict=True))
    return m.CallCounts(successes=worked, failures=failed)


def _read_quantiles(durations: Mapping[str, int]) -> m.DurationQuantiles | None:
    if not durations:
        return None
    buckets = {int(name.removeprefix(what.DURATION)): each for name, each in durations.items()}
    p50, p95, p99 = (
        round(what.duration_quantile(buckets, share) or 0.0, 3) for share in (0.5, 0.95, 0.99)
    )
    return m.DurationQuantiles(p50=p50, p95=p95, p99=p99)
