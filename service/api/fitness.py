"""Choosing a tool for a scenario: candidates, who serves a namespace best, how tools failed."""

from dataclasses import replace
from typing import Annotated, TypeVar
from uuid import uuid4

from fastapi import APIRouter, Query
from pydantic import Field

from aftercall import models as m
from aftercall.models.tools import EXPLORE, Scenario
from mongo import contents
from retrieval.answers.fitness.history import statistics_with_marks
from retrieval.answers.fitness.score import quality_of, trials_of
from retrieval.knowledge.rows.log import read_executions
from retrieval.knowledge.rows.registry import Registry, ToolCandidate, offer_tool, plain_candidate
from retrieval.knowledge.rows.statistics import NO_VERSION
from service.api.tools import find_registered
from service.context import Context
from service.requests import JsonRoute, Namespace, Read, Record, Suggest, ToolId

router = APIRouter(tags=["choosing a tool"], route_class=JsonRoute)
RankedT = TypeVar("RankedT", bound=m.RankedTool)
_FAILURES = "/tools/{toolId:name}/failures"
_MAX_MESSAGE = 10_000
"""Characters kept of an error message, as many as of a scenario: marks are read by the dozen."""


class BestToolQuery(m.WireModel):
    """The scenario for which the best tool is wanted, and how it is chosen."""

    scenario: Scenario = Field(description="What is to be done, in words.")
    use_rag: bool = Field(
        default=True,
        description="Look for semantic matches and past failures too; else the promoted version "
        "and the original are compared by base and quality.",
    )
    mode: m.RankingMode = Field(default="fitness", description="How candidates are ranked.")
    explore: bool = Field(default=False, description=EXPLORE)
    limit: int = Field(default=10, ge=1, le=50, description="Candidates shown at most.")


class FailuresQuery(m.WireModel):
    """How the failures of a tool are ordered, and how many are wanted."""

    scenario: Scenario | None = Field(
        default=None, description="Failures in scenarios like this one come first."
    )
    limit: int = Field(default=20, ge=1, le=100)


@router.post("/tools/find", summary="Tools for a scenario, best first")
async def find_tools(space: Suggest, question: m.FindRequest) -> m.FoundTools:
    """Return tools of all namespaces, the fittest first; none if no tool fits.

    With tags, only tools that have at least one of them.
    """
    context, workspace = space
    found = await context.chooser.find_tools(
        workspace, question, principal=context.caller.principal
    )
    return found.model_copy(update={"candidates": _quote_failures(context, found.candidates)})


@router.post("/evolutions/find", summary="How tools were evolved for scenarios like one")
async def find_evolutions(space: Suggest, question: m.EvolutionRequest) -> m.EvolutionList:
    """Return present and past promotions, nearest first, by namespace, reason and mutation."""
    return await space.context.history.find_evolutions(space.workspace, question)


@router.get("/namespaces", summary="All namespaces, by name")
async def list_namespaces(space: Read) -> m.NamespaceList:
    """Return all namespaces; a tool without one serves the namespace that has its id as name."""
    return await space.context.chooser.list_namespaces(space.workspace)


@router.get(
    "/namespaces/{namespace:name}/best",
    summary="The fittest tool of a namespace for a scenario",
    name="best_tool",
)
async def find_best_tool(
    space: Suggest, namespace: Namespace, query: Annotated[BestToolQuery, Query()]
) -> m.BestTool:
    """Return the fittest tool with every factor of its score, and all candidates.

    It also names what was left out and why. The score is base x quality x failure demotion;
    `belowThreshold` marks a tool that is hardly fit.
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
    [shown] = _quote_failures(space.context, [found])
    return shown.model_copy(update={"candidates": _quote_failures(space.context, found.candidates)})


def _quote_failures(context: Context, ranked: list[RankedT]) -> list[RankedT]:
    """Return the tools without the words of others, unless the caller's key may read."""
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
async def mark_failure(space: Record, tool_id: ToolId, mark: m.FailureMark) -> m.MarkedFailure:
    """Mark a failure: it is durable now, and counts against the tool.

    It counts more in scenarios like this one. The same `markId` twice counts once. Recorded
    executions count without being marked; with `executionId` the mark states how bad that one was,
    and it is of that execution's version if `version` is left out. Without either it is of the
    version in force.

    Raises:
        UnknownToolError: there is no such tool; the error has the nearest names.
    """
    context, workspace = space
    log, redactor, now = context.store.events, context.redactor, context.clock()
    registry = await context.memory.read_registry(workspace)
    named = [] if mark.execution_id is None else [mark.execution_id]
    call = next(
        iter(await read_executions(log, workspace, named)), None
    )  # None if it is not stored yet
    failed, version = _find_failed(registry, tool_id, mark.version, call)
    record = contents.FailureRecord(
        tool=failed.key,
        mark_id=mark.mark_id or str(uuid4()),
        version=version,
        scenario=redactor.text(mark.scenario),
        error_message=redactor.text(mark.error_message)[:_MAX_MESSAGE],
        severity=mark.severity,
        marked_at=now,
        # A masked tag would match every scenario with a masked secret.
        negative_tags=tuple(tag for tag in mark.negative_tags if redactor.text(tag) == tag),
        execution_id=mark.execution_id,
        called=None if call is None else contents.Called.from_execution(call),
    )
    event = contents.mark_event(record, context.caller.principal)
    is_new = await log.append(workspace, [event]) == ["accepted"]
    if is_new:
        context.indexer.wake_learner()
    # All stored marks count, also those not learned from yet.
    statistics = await statistics_with_marks([failed.key], memory=context.memory, log=log)
    trials = trials_of(failed, statistics[failed.key])
    return m.MarkedFailure(
        mark_id=record.mark_id,
        tool_id=tool_id,
        version=version,
        severity=mark.severity,
        duplicate=not is_new,
        quality=quality_of(trials, now=now, start=failed.start, since=failed.since),
    )


def _find_failed(
    registry: Registry, tool_id: str, version: str | None, call: contents.StoredExecution | None
) -> tuple[ToolCandidate, str | None]:
    """Return the candidate that failed, and its version.

    The version is that of the call, else the given one, else the one in force.
    """
    stored = find_registered(registry, tool_id)
    in_force, plain = offer_tool(registry, stored), plain_candidate(registry, stored, "original")
    possible = [in_force, plain]
    if call and (called := [each for each in possible if each.key == call.tool_key]):
        possible = called
        version = version or call.execution.tool_version or NO_VERSION
    if version is None:
        return in_force, in_force.tool.version
    for each in possible:
        if each.counts_version(version):
            return each, version or None
    return replace(possible[-1], versions=(version,), start=1.0, since=None), version or None


@router.get(_FAILURES, summary="Failures of a tool", name="tool_failures")
async def list_failures(
    space: Read, tool_id: ToolId, query: Annotated[FailuresQuery, Query()]
) -> m.ToolFailures:
    """Return marked and recorded failures of all versions.

    Those nearest to the scenario come first, without a scenario the latest. Without one every
    `similarity` is 0, and `weight` states how far time has reduced it.
    """
    return await space.context.history.list_failures(
        space.workspace, tool_id, scenario=query.scenario, limit=query.limit
    )
