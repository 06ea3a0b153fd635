"""Boundaries and health of tools: what they are asked for, and how their calls go."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query
from pydantic import Field

from aftercall import models as m
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.answers.fitness.score import quality_of, trials_of
from retrieval.answers.health_report import health_report
from retrieval.knowledge.patterns.cohesion import boundaries_of, cohesion_of
from retrieval.knowledge.rows.health import KnownHealth
from retrieval.knowledge.rows.health_signals import stated_methods
from retrieval.knowledge.rows.log import troubled_tools
from retrieval.knowledge.rows.registry import (
    MAX_KNOWN,
    Registry,
    ToolCandidate,
    UnknownToolError,
    name_tool,
    nearest_names,
    offer_tool,
    plain_candidate,
    recorded_name,
)
from retrieval.knowledge.rows.statistics import ToolTrials, merge_trials
from service.api.recommendations import find_recommendations
from service.api.tools import find_called_tools
from service.context import Context, Space
from service.requests import NO_QUERY, JsonRoute, Read, ToolId

router = APIRouter(tags=["boundaries"], route_class=JsonRoute)
MAX_TOOLS = 500
"""Tools that are looked at for boundaries, the latest troubled first, as for recommendations."""


class BoundariesQuery(m.WireModel):
    """How many clusters, co-occurrences and tools are wanted."""

    limit: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Clusters, co-occurrences and tools in the answer, of each at most so many.",
    )


@router.get(
    "/boundaries", summary="Boundary axes of all tools, and tools that are asked for several jobs"
)
async def read_boundaries(space: Read, query: Annotated[BoundariesQuery, Query()]) -> m.Boundaries:
    """Return the boundary axes of all tools, as clusters.

    Axes are the tools' own words; those that mean one capability are one cluster. A cluster keeps
    its id and name as long as possible. Axes are clustered some seconds after they were first
    named; until then each stands for itself. Each workspace remembers its 2,000 weightiest axes.
    """
    context, workspace = space
    health = await context.memory.read_health(
        await troubled_tools(context.store, workspace, MAX_TOOLS)
    )
    book = await context.memory.axis_book(workspace)
    clusters = await context.memory.axis_clusters(workspace)
    ids = {each.tool_key: each.tool.tool_id for each in await context.memory.list_tools(workspace)}
    troubled = [
        (
            name_tool(tool, ids.get(tool)),
            KnownHealth(referrals=known.referrals, recent_corrections=known.recent_corrections),
        )
        for tool, known in health.items()
    ]
    return await asyncio.to_thread(
        lambda: boundaries_of(
            book,
            clusters,
            troubled,
            redactor=context.redactor,
            rules=context.cohesion,
            now=context.clock(),
            limit=query.limit,
        )
    )


@router.get("/tools/{toolId:name}/health", summary="The health of a tool", dependencies=[NO_QUERY])
async def read_health(space: Read, tool_id: ToolId) -> m.ToolHealth:
    """Return the health of a tool, counted over all known calls of all versions.

    Weights halve every 7 days. Registering is optional: besides an id, `toolName` or
    `serverName/toolName` will do. A success that is empty, or that the tool itself calls weak, is
    reported as weak and stays a success. The name of a method is shown when the tool's schema has
    it or several sessions used it.

    Raises:
        UnknownToolError: no tool has that id or name, or several tools share the name.
    """
    context, workspace = space
    tools = await find_called_tools(space, tool_id)
    if len(tools) > 1:
        raise UnknownToolError(tool_id, sorted(map(recorded_name, tools)))
    registered = (await context.memory.read_registry(workspace)).by_id.get(tool_id)
    return await _report_health(
        context, tools[0], registered or await context.memory.find_tool(tools[0])
    )


async def read_recorded_health(context: Context, tool: ToolKey) -> m.ToolHealth:
    """Return the health of the tool that calls name exactly so.

    Raises:
        UnknownToolError: the tool is neither registered nor called.
    """
    memory = context.memory
    # The row without a name belongs to the workspace, and to no tool.
    registered = await memory.find_tool(tool) if tool.tool_name else None
    if registered is None and not (tool.tool_name and await memory.read_health([tool])):
        registry = await memory.read_registry(tool.workspace)
        recorded = await context.memory.list_called(tool.workspace, MAX_KNOWN)
        name = recorded_name(tool)
        raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
    return await _report_health(context, tool, registered)


async def _report_health(
    context: Context, tool: ToolKey, registered: StoredTool | None
) -> m.ToolHealth:
    known = (await context.memory.read_health([tool])).get(tool) or KnownHealth()
    knowledge = await context.memory.read_knowledge(tool)
    clusters = await context.memory.axis_clusters(tool.workspace)
    now = context.clock()
    report = await asyncio.to_thread(
        lambda: health_report(
            known,
            tool=name_tool(tool, registered.tool.tool_id if registered else None),
            knowledge=knowledge,
            cohesion=cohesion_of(known, clusters, now=now, rules=context.cohesion),
            stated_methods=stated_methods(registered.tool if registered else None),
            redactor=context.redactor,
            now=now,
        )
    )
    found = await find_recommendations(Space(context, tool.workspace), [tool])
    ids = [each.recommendation_id for each in found if each.state == "open"]
    return report.model_copy(update={"recommendation_ids": ids})


# Quality as in fitness, and cohesion as in boundaries, of many tools at once.


class ToolQuality(NamedTuple):
    """How good a tool is now; None if that is unknown."""

    quality: float | None = None
    cohesion: float | None = None
    cohesion_warning: bool = False


async def read_qualities(space: Space, tools: Sequence[ToolKey]) -> Mapping[ToolKey, ToolQuality]:
    """Return how good these tools are now, registered or not."""
    context, workspace = space
    memory, now = context.memory, context.clock()
    registry = await memory.read_registry_of(workspace, tools)
    clusters = await memory.axis_clusters(workspace)
    statistics, health = await memory.read_statistics(tools), await memory.read_health(tools)

    def rate_tools() -> dict[ToolKey, ToolQuality]:
        found = {}
        for tool in tools:
            candidate = _in_force(registry, registry.find_named(tool))
            known = health.get(tool)
            score = cohesion_of(known, clusters, now=now, rules=context.cohesion) if known else None
            found[tool] = ToolQuality(
                quality=_rate_quality(candidate, statistics.get(tool), now),
                cohesion=score.score if score else None,
                cohesion_warning=score.warning if score else False,
            )
        return found

    return await asyncio.to_thread(rate_tools)


def _in_force(registry: Registry, stored: StoredTool | None) -> ToolCandidate | None:
    """Return the candidate that stands for the calls of a registered tool.

    It is the promoted version if calls name that version alike.
    """
    if stored is None:
        return None
    in_force = offer_tool(registry, stored)
    is_own = in_force.key == stored.tool_key
    return in_force if is_own else plain_candidate(registry, stored, "original")


def _rate_quality(
    candidate: ToolCandidate | None, statistics: ToolTrials | None, now: datetime
) -> float | None:
    """Return the quality as in the tool's fitness; an unregistered tool counts all versions."""
    if candidate is None:
        known = statistics.versions.values() if statistics else ()
        trials = merge_trials(*(each.trials for each in known))
        return quality_of(trials, now=now) if trials else None
    trials = trials_of(candidate, statistics)
    if not trials and candidate.since is None:
        return None
    return quality_of(trials, now=now, start=candidate.start, since=candidate.since)
