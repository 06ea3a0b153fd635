"""What is known of tools: the health of one; boundaries and failure patterns of all."""

import asyncio
from collections.abc import Mapping

from aftercall.models import Boundaries, ToolHealth
from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.boundaries.cohesion import TroubledTool, boundaries_of, cohesion_of
from retrieval.fitness.registry import (
    MAX_KNOWN,
    UnknownToolError,
    meant,
    named,
    nearest_names,
    possible_tools,
    recorded_name,
)
from retrieval.health.record import KnownHealth
from retrieval.health.report import health_report
from retrieval.health.signals import stated_methods
from retrieval.log import troubled_tools
from service.context import Context
from service.recommendations import recommendations_about

MAX_TOOLS = 500
"""Tools that are looked at for boundaries, the latest troubled first, as for recommendations."""


async def tool_health(context: Context, workspace: str, name: str) -> ToolHealth:
    """The health of the tool of that id, or whose calls are recorded under that name."""
    tool, registered = await _tool_of(context, workspace, name)
    return await _health(context, tool, registered)


async def health_of(context: Context, tool: ToolKey) -> ToolHealth:
    """The health of the tool that calls name exactly so."""
    memory = context.memory
    # Under no name at all is kept what is known of the workspace.
    registered = await memory.tool(tool) if tool.tool_name else None
    if registered is None and not (tool.tool_name and await memory.health([tool])):
        registry = await memory.registry(tool.workspace)
        recorded = await context.memory.called(tool.workspace, MAX_KNOWN)
        name = recorded_name(tool)
        raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
    return await _health(context, tool, registered)


async def _health(context: Context, tool: ToolKey, registered: StoredTool | None) -> ToolHealth:
    known = (await context.memory.health([tool])).get(tool) or KnownHealth()
    knowledge = await context.memory.knowledge(tool)
    clusters = await context.memory.axis_clusters(tool.workspace)
    now = context.clock()
    report = await asyncio.to_thread(
        lambda: health_report(
            known,
            tool=named(tool, registered.tool.tool_id if registered else None),
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


async def _tool_of(
    context: Context, workspace: str, name: str
) -> tuple[ToolKey, StoredTool | None]:
    registry = await context.memory.registry(workspace)
    registered = registry.by_id.get(name)
    if registered is not None:
        return registered.tool_key, registered
    found = list(await context.memory.health(list(possible_tools(workspace, name))))
    recorded: list[ToolKey] = []
    if not found:
        recorded = await context.memory.called(workspace, MAX_KNOWN)
        found = meant(name, recorded)
    if not found:
        raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
    if len(found) > 1:
        raise UnknownToolError(name, sorted(recorded_name(each) for each in found))
    return found[0], await context.memory.tool(found[0])


async def boundaries(context: Context, workspace: str, limit: int) -> Boundaries:
    """The boundaries as of now; of clusters, co-occurrences and tools at most `limit` each."""
    tools = await troubled_tools(context.store, workspace, MAX_TOOLS)
    health = await context.memory.health(tools)
    book = await context.memory.axis_book(workspace)
    clusters = await context.memory.axis_clusters(workspace)
    ids = {each.tool_key: each.tool.tool_id for each in await context.memory.tools(workspace)}
    return await asyncio.to_thread(
        lambda: boundaries_of(
            book,
            clusters,
            _troubled(health, ids),
            redactor=context.redactor,
            rules=context.cohesion,
            now=context.clock(),
            limit=limit,
        )
    )


def _troubled(health: Mapping[ToolKey, KnownHealth], ids: dict[ToolKey, str]) -> list[TroubledTool]:
    return [
        TroubledTool(
            named(tool, ids.get(tool)),
            KnownHealth(referrals=known.referrals, recent_corrections=known.recent_corrections),
        )
        for tool, known in health.items()
    ]
