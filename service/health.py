"""What is known of tools: the health of one; boundaries and failure patterns of all."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from aftercall.models import Boundaries, ToolHealth
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
from service.context import Context
from service.recommendations import recommendations_about
from service.tools import tools_called

MAX_TOOLS = 500
"""Tools that are looked at for boundaries, the latest troubled first, as for recommendations."""


async def tool_health(context: Context, workspace: str, name: str) -> ToolHealth:
    """Return the health of the tool of that id, or whose calls are recorded under that name."""
    tools = await tools_called(context, workspace, name)
    if len(tools) > 1:
        raise UnknownToolError(name, sorted(map(recorded_name, tools)))
    registered = (await context.memory.read_registry(workspace)).by_id.get(name)
    return await _health(context, tools[0], registered or await context.memory.find_tool(tools[0]))


async def health_of(context: Context, tool: ToolKey) -> ToolHealth:
    """Return the health of the tool that calls name exactly so."""
    memory = context.memory
    # Under no name at all is kept what is known of the workspace.
    registered = await memory.find_tool(tool) if tool.tool_name else None
    if registered is None and not (tool.tool_name and await memory.read_health([tool])):
        registry = await memory.read_registry(tool.workspace)
        recorded = await context.memory.list_called(tool.workspace, MAX_KNOWN)
        name = recorded_name(tool)
        raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
    return await _health(context, tool, registered)


async def _health(context: Context, tool: ToolKey, registered: StoredTool | None) -> ToolHealth:
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
    found = await recommendations_about(context, tool.workspace, [tool])
    ids = [each.recommendation_id for each in found if each.state == "open"]
    return report.model_copy(update={"recommendation_ids": ids})


async def boundaries(context: Context, workspace: str, limit: int) -> Boundaries:
    """Return the boundaries as of now.

    Of clusters, co-occurrences and tools at most `limit` each.
    """
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
            limit=limit,
        )
    )


# Quality and cohesion of many tools at once: as fitness has the one, boundaries the other.


class ToolQuality(NamedTuple):
    """How good a tool is now; None where nothing is known."""

    quality: float | None = None
    cohesion: float | None = None
    cohesion_warning: bool = False


async def tool_qualities(
    context: Context, workspace: str, tools: Sequence[ToolKey]
) -> Mapping[ToolKey, ToolQuality]:
    """Return how good these tools are now, registered or not."""
    memory, now = context.memory, context.clock()
    registry = await memory.registry_of(workspace, tools)
    clusters = await memory.axis_clusters(workspace)
    statistics, health = await memory.read_statistics(tools), await memory.read_health(tools)

    def made() -> dict[ToolKey, ToolQuality]:
        found = {}
        for tool in tools:
            candidate = _in_force(registry, registry.find_named(tool))
            known = health.get(tool)
            score = cohesion_of(known, clusters, now=now, rules=context.cohesion) if known else None
            found[tool] = ToolQuality(
                quality=_quality(candidate, statistics.get(tool), now),
                cohesion=score.score if score else None,
                cohesion_warning=score.warning if score else False,
            )
        return found

    return await asyncio.to_thread(made)


def _in_force(registry: Registry, stored: StoredTool | None) -> ToolCandidate | None:
    """Return what calls of a registered tool are judged as.

    Its promoted version, if they name it so.
    """
    if stored is None:
        return None
    in_force = offer_tool(registry, stored)
    is_own = in_force.key == stored.tool_key
    return in_force if is_own else plain_candidate(registry, stored, "original")


def _quality(
    candidate: ToolCandidate | None, statistics: ToolTrials | None, now: datetime
) -> float | None:
    """As in the factors of its fitness; of a tool that is not registered by all its versions."""
    if candidate is None:
        known = statistics.versions.values() if statistics else ()
        trials = merge_trials(*(each.trials for each in known))
        return quality_of(trials, now=now) if trials else None
    trials = trials_of(candidate, statistics)
    if not trials and candidate.since is None:
        return None
    return quality_of(trials, now=now, start=candidate.start, since=candidate.since)
