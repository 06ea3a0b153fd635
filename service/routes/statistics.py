"""Statistics of calls and of failures: in total, by tool, agent and pattern, over time."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from aftercall import models as m
from aftercall.models.base import Name
from service import patterns as states
from service import statistics
from service.criteria import criteria as read_criteria
from service.patterns import PatternsQuery, listed
from service.requests import (
    Administering,
    JsonRoute,
    ListQuery,
    NoQuery,
    Reading,
    ToolFilter,
    Window,
    WindowQuery,
)

router = APIRouter(tags=["statistics"], route_class=JsonRoute)


class _OverTime(ToolFilter, Window):
    pass


OverTimeQuery = Annotated[_OverTime, Query()]
AgentName = Annotated[Name, Path(description="As executions name it; may hold slashes.")]
PatternId = Annotated[Name, Path(alias="patternId", description="From `GET /patterns`.")]


@router.get("/stats/totals", summary="How many calls there were, and how they went")
async def totals(_query: NoQuery, space: Reading) -> m.Totals:
    """Of 24 hours, 7 days and 30 days up to now, each with the same span before it where known.

    24h begins with an hour, the others with a day (UTC), so that points of `/stats/trend` add up.
    """
    return await statistics.totals(*space)


@router.get("/stats/usage", summary="How often tools were called, by whom, and how that went")
async def usage(query: ListQuery, space: Reading) -> m.Usage:
    """Up to now: what the nightly run counted, and what arrived since.

    It stays when executions expire. Times are those that callers gave their calls. Tools and agents
    beyond the limit are counted together.
    """
    return await statistics.usage(*space, query.window, query.limit)


@router.get("/stats/trend", summary="How calls went over time")
async def trend(query: OverTimeQuery, space: Reading) -> m.Trend:
    """By the hour for 24h, else by the day (UTC); those without calls too.

    A tool that no one called has points of none.
    """
    return await statistics.trend(*space, query.window, query.tool(space.workspace))


@router.get("/stats/latency", summary="How long calls took over time")
async def latency(query: OverTimeQuery, space: Reading) -> m.Latency:
    """p50, p95 and p99 in milliseconds, within 5 % of themselves, by the hour or by the day (UTC).

    Of calls that say how long they took; null where there is none.
    """
    return await statistics.latency(*space, query.window, query.tool(space.workspace))


@router.get("/stats/tools", summary="Tools that were called, and how good they are")
async def tools(query: ListQuery, space: Reading) -> m.ToolStatisticsList:
    """Calls are of the window; quality and cohesion are of now.

    Quality is that of the tool's fitness (`GET /namespaces/{namespace}/best`), cohesion that of
    `GET /boundaries`.
    """
    return await statistics.tools(*space, query.window, query.limit)


@router.get("/stats/agents/{agent:name}", summary="What one agent called, and how that went")
async def agent(agent: AgentName, query: WindowQuery, space: Reading) -> m.AgentStatistics:
    """Return some of its tools, those with most failures first. The name may hold slashes."""
    return await statistics.agent(*space, agent, query.window)


@router.get("/stats/reflection", summary="What asking about failures did")
async def reflection(query: WindowQuery, space: Reading) -> m.ReflectionStatistics:
    """Return how calls went before it and after it, what was answered, and how long repairs took.

    Repairs are of the latest 2,000, and of as many outcomes of suggestions (a success that followed
    one counts when it names in `repairOf` what it repairs). Times are those that callers gave.
    """
    return await statistics.reflection(*space, query.window)


@router.get("/stats/criteria", summary="What is met of the success criteria")
async def criteria(query: WindowQuery, space: Reading) -> m.Criteria:
    """Of each how many of how many meet it, and the share that was asked for (seed 004)."""
    return await read_criteria(*space, query.window)


@router.get("/patterns", summary="Ways in which tools fail, with what helps")
async def patterns(
    query: Annotated[PatternsQuery, Query()], space: Reading
) -> m.FailurePatternList:
    """Most failures first; made by the nightly run, so that those of today come tomorrow.

    Failures of one tool that say one thing are one pattern, whatever their wording. A pattern keeps
    its id as long as any of it is there. What tools stated is quoted as data.
    """
    return await listed(*space, query)


@router.get("/stats/patterns", summary="Failure patterns by what was met lately")
async def pattern_statistics(query: ListQuery, space: Reading) -> m.PatternStatistics:
    """Most failures in the window first. Empty before the first nightly run, which makes patterns.

    Failures that are of no pattern yet are counted together. What tools stated is quoted as data.
    """
    return await statistics.patterns(*space, query.window, query.limit)


@router.get("/stats/fix-first", summary="What costs most tasks now")
async def fix_first(query: ListQuery, space: Reading) -> m.FixFirst:
    """Open patterns by failures that no one repaired, weighed by the trend.

    Patterns are made by the nightly run, so that failures of today come tomorrow.
    """
    return await statistics.fix_first(*space, query.window, query.limit)


@router.put("/patterns/{patternId}", summary="Say what is done about a failure pattern")
async def change_pattern(
    pattern_id: PatternId, change: m.PatternChange, _query: NoQuery, space: Administering
) -> m.FailurePattern:
    """Ignored and resolved ones are no more among those to fix first.

    One that is resolved opens again (`review.reopened`) when it is met later than that.
    """
    return await states.change_pattern(*space, pattern_id, change)


@router.get("/stats/patterns/{patternId}", summary="How often a failure pattern was met over time")
async def pattern_history(
    pattern_id: PatternId, query: WindowQuery, space: Reading
) -> m.PatternHistory:
    """Up to now, those without failures too. Ids are those of `GET /patterns`; they last."""
    return await statistics.pattern(*space, pattern_id, query.window)


@router.get("/stats/confidence", summary="What suggestions promised, and what came of it")
async def confidence(_query: NoQuery, space: Reading) -> m.ConfidenceStatistics:
    """Return the latest 2,000 outcomes in tenths of the confidence that was shown, with two errors.

    A success is a call that succeeded: whether it did what was meant is not known from outcomes.
    """
    return await statistics.confidence(*space)
