"""What is known of tools: the health of one; boundaries and failure patterns of all."""

import asyncio
import time
from collections.abc import Sequence

from pydantic import Field

from aftercall.models import (
    Boundaries,
    ErrorCategory,
    FailurePattern,
    FailurePatternList,
    ToolHealth,
    WireModel,
)
from aftercall.models.base import Name
from ingest.nightly.patterns import MAX_PATTERNS, patterns_fact
from mongo.records import HealthRow, StoredTool, ToolKey
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
from retrieval.patterns import Pattern, decoded
from service.context import Context
from service.recommendations import recommendations_about
from service.statistics.patterns import told_pattern

MAX_TOOLS = 500
"""Tools that are looked at for boundaries, the latest troubled first, as for recommendations."""


async def tool_health(context: Context, workspace: str, name: str) -> ToolHealth:
    """The health of the tool of that id, or whose calls are recorded under that name.

    Raises:
        UnknownToolError: nothing is known of such a tool, or several servers have one.
        StoreError: when the store cannot say.
    """
    tool, registered = await _tool_of(context, workspace, name)
    return await _health(context, tool, registered)


async def health_of(context: Context, tool: ToolKey) -> ToolHealth:
    """The health of the tool that calls name exactly so.

    Raises:
        UnknownToolError: it is neither registered nor was it ever called.
        StoreError: when the store cannot say.
    """
    memory = context.memory
    # Under no name at all is kept what is known of the workspace.
    registered = await memory.tool(tool) if tool.tool_name else None
    if registered is None and not (tool.tool_name and await memory.health([tool])):
        registry = await memory.registry(tool.workspace)
        recorded = await context.store.tools_with_health(tool.workspace, MAX_KNOWN)
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
        recorded = await context.store.tools_with_health(workspace, MAX_KNOWN)
        found = meant(name, recorded)
    if not found:
        raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
    if len(found) > 1:
        raise UnknownToolError(name, sorted(recorded_name(each) for each in found))
    return found[0], await context.memory.tool(found[0])


async def boundaries(context: Context, workspace: str, limit: int) -> Boundaries:
    """The boundaries as of now; of clusters, co-occurrences and tools at most `limit` each.

    Raises:
        StoreError: when the store cannot say.
    """
    rows = await context.store.list_health(workspace, MAX_TOOLS, troubled=True)
    book = await context.memory.axis_book(workspace)
    clusters = await context.memory.axis_clusters(workspace)
    ids = {each.tool_key: each.tool.tool_id for each in await context.memory.tools(workspace)}
    return await asyncio.to_thread(
        lambda: boundaries_of(
            book,
            clusters,
            _troubled(rows, ids),
            redactor=context.redactor,
            rules=context.cohesion,
            now=context.clock(),
            limit=limit,
        )
    )


def _troubled(rows: Sequence[HealthRow], ids: dict[ToolKey, str]) -> list[TroubledTool]:
    """The tools with what cohesion is made of; decoded, all of a row would take thrice the room."""
    read = []
    for row in rows:
        known = KnownHealth.model_validate_json(row.data)
        about = KnownHealth(referrals=known.referrals, recent_corrections=known.recent_corrections)
        read.append(TroubledTool(named(row.tool, ids.get(row.tool)), about))
        time.sleep(0)  # the event loop must get the interpreter between two
    return read


class PatternsQuery(WireModel):
    """Which patterns are asked for."""

    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)

    def includes(self, pattern: Pattern) -> bool:
        """Whether a pattern is one of them."""
        return (
            self.tool_name in (None, pattern.tool_name)
            and self.server_name in (None, pattern.server_name)
            and self.category in (None, pattern.category)
        )


async def failure_patterns(
    context: Context, workspace: str, query: PatternsQuery
) -> FailurePatternList:
    """Those that are asked for, most failures first.

    Raises:
        StoreError: when the store cannot say.
    """
    is_filtered = (query.tool_name, query.server_name, query.category) != (None, None, None)
    rows = await context.store.list_patterns(
        workspace, MAX_PATTERNS if is_filtered else query.limit
    )
    at = await context.store.get_fact(patterns_fact(workspace))
    ids = {each.tool_key: each.tool.tool_id for each in await context.memory.tools(workspace)}

    def shown() -> list[FailurePattern]:
        found = []
        for row in rows:
            pattern = decoded(row.data)
            if query.includes(pattern):
                tool = ToolKey(workspace, pattern.server_name, pattern.tool_name)
                found.append(told_pattern(pattern, tool, ids.get(tool), context.redactor))
            if len(found) == query.limit:
                break
        return found

    return FailurePatternList.model_validate(
        {"patterns": await asyncio.to_thread(shown), "consolidated_at": at}
    )
