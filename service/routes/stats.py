"""Statistics of calls: in total, by tool and by agent, over time."""

from typing import Annotated, Self

from fastapi import APIRouter, Query, Response
from pydantic import Field, model_validator

from aftercall.models import (
    AgentStatistics,
    Latency,
    ToolStatisticsList,
    Totals,
    Trend,
    Usage,
    UsageWindow,
    WireModel,
)
from aftercall.models.base import Name
from mongo.records import ToolKey
from service.openapi import answers
from service.routes import stats_examples as examples
from service.routes.parameters import (
    AgentName,
    CurrentContext,
    CurrentWorkspace,
    ListQuery,
    NoQuery,
    WindowQuery,
    answer,
)

router = APIRouter(tags=["statistics"])


class _OverTime(WireModel):
    window: UsageWindow = Field(default="24h", description="Up to now.")
    tool_name: Name | None = Field(
        default=None, description="Only calls of the tool that calls name so."
    )
    server_name: Name | None = Field(
        default=None, description="Its server; left out, the tool without one is meant."
    )

    @model_validator(mode="after")
    def _server_of_a_tool(self) -> Self:
        if self.server_name is not None and self.tool_name is None:
            raise ValueError("serverName needs toolName; a server alone is no tool")
        return self

    def tool(self, workspace: str) -> ToolKey | None:
        """The tool that is meant; None for all."""
        if self.tool_name is None:
            return None
        return ToolKey(workspace, self.server_name, self.tool_name)


OverTimeQuery = Annotated[_OverTime, Query()]


@router.get(
    "/stats/totals",
    summary="How many calls there were, and how they went",
    response_model=Totals,
    responses=answers(200, examples.TOTALS, errors=(422, 503)),
)
async def totals(_query: NoQuery, context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """Of 24 hours, 7 days and 30 days up to now, each with the same span before it where known.

    24h begins with an hour, the others with a day (UTC), so that points of `/stats/trend` add up.
    """
    return answer(await context.statistics.totals(workspace))


@router.get(
    "/stats/usage",
    summary="How often tools were called, by whom, and how that went",
    response_model=Usage,
    responses=answers(200, examples.USAGE, errors=(422, 503)),
)
async def usage(query: ListQuery, context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """Up to now: what the nightly run counted, and what arrived since.

    It stays when executions expire. Times are those that callers gave their calls. Tools and agents
    beyond the limit are counted together.
    """
    return answer(await context.statistics.usage(workspace, query.window, query.limit))


@router.get(
    "/stats/trend",
    summary="How calls went over time",
    response_model=Trend,
    responses=answers(200, examples.TREND, errors=(422, 503)),
)
async def trend(
    query: OverTimeQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """By the hour for 24h, else by the day (UTC); those without calls too.

    A tool that nobody called has points of none.
    """
    tool = query.tool(workspace)
    return answer(await context.statistics.trend(workspace, query.window, tool))


@router.get(
    "/stats/latency",
    summary="How long calls took over time",
    response_model=Latency,
    responses=answers(200, examples.LATENCY, errors=(422, 503)),
)
async def latency(
    query: OverTimeQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """p50, p95 and p99 in milliseconds, within 5 % of themselves, by the hour or by the day (UTC).

    Of calls that say how long they took; null where there is none.
    """
    tool = query.tool(workspace)
    return answer(await context.statistics.latency(workspace, query.window, tool))


@router.get(
    "/stats/tools",
    summary="Tools that were called, and how good they are",
    response_model=ToolStatisticsList,
    responses=answers(200, examples.TOOLS, errors=(422, 503)),
)
async def tools(query: ListQuery, context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """Calls are of the window; quality and cohesion are of now.

    Quality is that of the tool's fitness (`GET /namespaces/{namespace}/best`), cohesion that of
    `GET /boundaries`.
    """
    return answer(await context.statistics.tools(workspace, query.window, query.limit))


@router.get(
    "/stats/agents/{agent:path}",
    summary="What one agent called, and how that went",
    response_model=AgentStatistics,
    responses=answers(200, examples.AGENT, errors=(422, 503), own={404: examples.UNKNOWN_AGENT}),
)
async def agent(
    agent: AgentName, query: WindowQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Some of its tools, those with most failures first. The name may hold slashes."""
    return answer(await context.statistics.agent(workspace, agent, query.window))
