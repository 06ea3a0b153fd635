"""Usage of tools in windows up to the latest nightly run."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aftercall.wire import CallCounts, ToolUsage, Usage, UsageWindow, WireModel
from mongo.records import ToolKey
from retrieval.usage.windows import UsageWindows, usage_fact
from service.http import nightly_examples as examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers
from service.http.responses import answer

router = APIRouter(tags=["statistics"])


class _Asked(WireModel):
    window: UsageWindow = Field(
        default="24h", description="Up to the latest nightly run, not up to now."
    )
    limit: int = Field(
        default=100, ge=1, le=500, description="Tools and agents in the answer, at most so many."
    )


UsageQuery = Annotated[_Asked, Query()]


@router.get(
    "/stats/usage",
    summary="How often tools were called, by whom, and how that went",
    response_model=Usage,
    responses=answers(200, examples.USAGE, errors=(422, 503)),
)
async def usage(query: UsageQuery, services: OpenServices, workspace: CurrentWorkspace) -> Response:
    """Counted by the nightly run, hour by hour; `computedAt` is null before the first one.

    It stays when executions expire. Times are those that callers gave their calls.
    """
    fact = await services.store.get_fact(usage_fact(workspace))
    windows = UsageWindows() if fact is None else UsageWindows.model_validate_json(fact)
    found = windows.windows.get(query.window, Usage(window=query.window))
    ids = {each.tool_key: each.tool.tool_id for each in await services.memory.tools(workspace)}
    shown = found.by_tool[: query.limit]
    agents = found.by_agent[: query.limit]
    return answer(
        found.model_copy(
            update={
                "by_tool": [_with_id(each, ids, workspace) for each in shown],
                "by_agent": agents,
                "other_tools": _with(found.other_tools, found.by_tool[query.limit :]),
                "other_agents": _with(found.other_agents, found.by_agent[query.limit :]),
            }
        )
    )


def _with_id(usage: ToolUsage, ids: Mapping[ToolKey, str], workspace: str) -> ToolUsage:
    tool = usage.tool
    known = ids.get(ToolKey(workspace, tool.server_name, tool.tool_name))
    return usage.model_copy(update={"tool": tool.model_copy(update={"tool_id": known})})


def _with(others: CallCounts, cut: Sequence[CallCounts]) -> CallCounts:
    return CallCounts(
        successes=others.successes + sum(each.successes for each in cut),
        failures=others.failures + sum(each.failures for each in cut),
    )
