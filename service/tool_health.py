"""The health of one tool: which one is meant, and what is known of it now."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from aftercall.models import ToolHealth
from aftercall.redaction import Redactor
from mongo.protocol import LogStore
from mongo.records import StoredTool, ToolKey
from retrieval.boundaries.cohesion import DEFAULT_RULES, CohesionRules, cohesion_of
from retrieval.fitness.registry import UnknownToolError
from retrieval.health.record import KnownHealth
from retrieval.health.report import (
    MAX_KNOWN,
    health_report,
    meant,
    named,
    nearest_names,
    possible_tools,
    recorded_name,
)
from retrieval.health.signals import stated_methods
from retrieval.memory import Memory


class ToolHealths:
    """Tells the health of tools, registered or not.

    Args:
        store: knows which tools were called.
        memory: what is known of tools, cached.
        redactor: masks secrets before anything is answered.
        open_recommendations: ids of the open recommendations about a tool.
        cohesion: when a tool is said to be asked for several jobs.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        redactor: Redactor,
        open_recommendations: Callable[[str, ToolKey], Awaitable[list[str]]],
        cohesion: CohesionRules = DEFAULT_RULES,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._memory = memory
        self._redactor = redactor
        self._open_recommendations = open_recommendations
        self._cohesion = cohesion
        self._clock = clock

    async def health(self, workspace: str, name: str) -> ToolHealth:
        """The health of the tool of that id, or whose calls are recorded under that name.

        Raises:
            UnknownToolError: nothing is known of such a tool, or several servers have one.
            StoreError: when the store cannot say.
        """
        tool, registered = await self._meant(workspace, name)
        return await self._health(tool, registered)

    async def of_tool(self, tool: ToolKey) -> ToolHealth:
        """The health of the tool that calls name exactly so.

        Raises:
            UnknownToolError: it is neither registered nor was it ever called.
            StoreError: when the store cannot say.
        """
        # Under no name at all is kept what is known of the workspace.
        registered = await self._memory.tool(tool) if tool.tool_name else None
        if registered is None and not (tool.tool_name and await self._memory.health([tool])):
            registry = await self._memory.registry(tool.workspace)
            recorded = await self._store.tools_with_health(tool.workspace, MAX_KNOWN)
            name = recorded_name(tool)
            raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
        return await self._health(tool, registered)

    async def _health(self, tool: ToolKey, registered: StoredTool | None) -> ToolHealth:
        found = await self._memory.health([tool])
        known = found.get(tool) or KnownHealth()
        knowledge = await self._memory.knowledge(tool)
        clusters = await self._memory.axis_clusters(tool.workspace)
        now = self._clock()
        report = await asyncio.to_thread(
            lambda: health_report(
                known,
                tool=named(tool, registered.tool.tool_id if registered else None),
                knowledge=knowledge,
                cohesion=cohesion_of(known, clusters, now=now, rules=self._cohesion),
                stated_methods=stated_methods(registered.tool if registered else None),
                redactor=self._redactor,
                now=now,
            )
        )
        ids = await self._open_recommendations(tool.workspace, tool)
        return report.model_copy(update={"recommendation_ids": ids})

    async def _meant(self, workspace: str, name: str) -> tuple[ToolKey, StoredTool | None]:
        registry = await self._memory.registry(workspace)
        registered = registry.by_id.get(name)
        if registered is not None:
            return registered.tool_key, registered
        exact = await self._memory.health(list(possible_tools(workspace, name)))
        found = list(exact)
        recorded: list[ToolKey] = []
        if not found:
            recorded = await self._store.tools_with_health(workspace, MAX_KNOWN)
            found = meant(name, recorded)
        if not found:
            raise UnknownToolError(name, nearest_names(name, registry.by_id, recorded))
        if len(found) > 1:
            raise UnknownToolError(name, sorted(recorded_name(each) for each in found))
        return found[0], await self._memory.tool(found[0])
