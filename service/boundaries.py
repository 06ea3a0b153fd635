"""Boundaries: the axes of all tools of a workspace, and which tools are asked for several jobs."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from aftercall.models import Boundaries
from aftercall.redaction import Redactor
from mongo.protocol import LogStore
from mongo.records import HealthRow, ToolKey
from retrieval.boundaries.cohesion import CohesionRules
from retrieval.boundaries.report import TroubledTool, boundaries_of
from retrieval.health.record import KnownHealth
from retrieval.health.report import named
from retrieval.memory import Memory

MAX_TOOLS = 500
"""Tools that are looked at, the latest troubled first, as for recommendations."""


class BoundaryReports:
    """Tells the boundaries of workspaces.

    Args:
        store: where the health of the tools is.
        memory: knows axes, clusters and registered tools.
        redactor: masks secrets before anything is answered.
        rules: what makes a cohesion warning.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        redactor: Redactor,
        rules: CohesionRules,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._memory = memory
        self._redactor = redactor
        self._rules = rules
        self._clock = clock

    async def report(self, workspace: str, limit: int) -> Boundaries:
        """The boundaries as of now; of clusters, co-occurrences and tools at most `limit` each.

        Raises:
            StoreError: when the store cannot say.
        """
        rows = await self._store.list_health(workspace, MAX_TOOLS, troubled=True)
        book = await self._memory.axis_book(workspace)
        clusters = await self._memory.axis_clusters(workspace)
        ids = {each.tool_key: each.tool.tool_id for each in await self._memory.tools(workspace)}
        return await asyncio.to_thread(
            lambda: boundaries_of(
                book,
                clusters,
                _read(rows, ids),
                redactor=self._redactor,
                rules=self._rules,
                now=self._clock(),
                limit=limit,
            )
        )


def _read(rows: Sequence[HealthRow], ids: dict[ToolKey, str]) -> list[TroubledTool]:
    """The tools with what cohesion is made of; decoded, all of a row would take thrice the room."""
    read = []
    for row in rows:
        known = KnownHealth.model_validate_json(row.data)
        about = KnownHealth(referrals=known.referrals, recent_corrections=known.recent_corrections)
        read.append(TroubledTool(named(row.tool, ids.get(row.tool)), about))
        time.sleep(0)  # the event loop must get the interpreter between two
    return read
