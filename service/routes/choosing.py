"""Choosing a tool for a scenario: candidates, who serves a namespace best, how tools failed."""

from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from aftercall import models as m
from aftercall.models.tools import EXPLORE, Scenario
from service import tools
from service.context import Context
from service.requests import JsonRoute, Namespace, Reading, Recording, Suggesting, ToolId

router = APIRouter(tags=["choosing a tool"], route_class=JsonRoute)
RankedT = TypeVar("RankedT", bound=m.RankedTool)
_FAILURES = "/tools/{toolId:name}/failures"


class _BestQuery(m.WireModel):
    scenario: Scenario = Field(description="What is to be done, in words.")
    use_rag: bool = Field(
        default=True,
        description="Look for semantic matches and past failures too; else the promoted version "
        "and the original are compared by base and quality.",
    )
    mode: m.RankingMode = Field(default="fitness", description="How candidates are ranked.")
    explore: bool = Field(default=False, description=EXPLORE)
    limit: int = Field(default=10, ge=1, le=50, description="Candidates shown at most.")


class _FailuresQuery(m.WireModel):
    scenario: Scenario | None = Field(
        default=None, description="Failures in scenarios like this one come first."
    )
    limit: int = Field(default=20, ge=1, le=100)


@router.post("/tools/find", summary="Tools for a scenario, best first")
async def find_tools(question: m.FindRequest, space: Suggesting) -> m.FoundTools:
    """Of all namespaces; empty when no tool fits. With tags, tools that have at least one."""
    context, workspace = space
    found = await context.chooser.find_tools(
        workspace, question, principal=context.caller.principal
    )
    return found.model_copy(update={"candidates": _for(context, found.candidates)})


@router.post("/evolutions/find", summary="How tools were evolved for scenarios like one")
async def find_evolutions(question: m.EvolutionRequest, space: Suggesting) -> m.EvolutionList:
    """Promotions of the past and present, nearest first, by namespace, reason and mutation."""
    return await space.context.history.find_evolutions(space.workspace, question)


@router.get("/namespaces", summary="All namespaces, by name")
async def list_namespaces(space: Reading) -> m.NamespaceList:
    """Return a tool without a namespace serves the one that is called like its id."""
    return await space.context.chooser.list_namespaces(space.workspace)


@router.get(
    "/namespaces/{namespace:name}/best", summary="The fittest tool of a namespace for a scenario"
)
async def best_tool(
    namespace: Namespace, query: Annotated[_BestQuery, Query()], space: Suggesting
) -> m.BestTool:
    """With every factor of its score, all candidates, and what was left out and why.

    The score is base x quality x failure demotion; `belowThreshold` marks one that is hardly fit.
    """
    found = await space.context.chooser.find_best(
        space.workspace,
        namespace,
        query.scenario,
        use_rag=query.use_rag,
        mode=query.mode,
        limit=query.limit,
        principal=space.context.caller.principal,
        explore=query.explore,
    )
    [shown] = _for(space.context, [found])
    return shown.model_copy(update={"candidates": _for(space.context, found.candidates)})


def _for(context: Context, ranked: list[RankedT]) -> list[RankedT]:
    """Return what others stated of failures, in their own words, is for those who may read."""
    if "read" in context.caller.scopes:
        return ranked
    found = []
    for each in ranked:
        bare: dict[str, object] = {"scenario": "", "error_message": None, "tags": []}
        failures = [one.model_copy(update=bare) for one in each.factors.similar_failures]
        factors = each.factors.model_copy(update={"similar_failures": failures})
        found.append(each.model_copy(update={"factors": factors}))
    return found


@router.post(_FAILURES, summary="Mark a failure of a tool", status_code=202)
async def mark_failure(tool_id: ToolId, mark: m.FailureMark, space: Recording) -> m.MarkedFailure:
    """It is durable now, and counts against the tool, the more in scenarios like this one.

    The same `markId` twice counts once. Recorded executions count without being marked; with
    `executionId` the mark states how bad that one was, and of what version it was when `version` is
    left out; without either it is of the version in force.
    """
    return await tools.mark_failure(*space, tool_id, mark)


@router.get(_FAILURES, summary="Failures of a tool")
async def tool_failures(
    tool_id: ToolId, query: Annotated[_FailuresQuery, Query()], space: Reading
) -> m.ToolFailures:
    """Marked or recorded, of all versions: nearest to the scenario first, without one the latest.

    Without a scenario every `similarity` is 0, and `weight` states how far time has worn it off.
    """
    return await space.context.history.list_failures(
        space.workspace, tool_id, scenario=query.scenario, limit=query.limit
    )
