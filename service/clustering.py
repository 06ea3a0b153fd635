"""Clustering axes by itself: soon after new ones were named, and at the start.

All axes are clustered anew by the nightly run.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from ingest.axes import AxisClusterer
from mongo.protocol import LogStore
from service.logs import log_event

logger = logging.getLogger(__name__)

_SETTLE = timedelta(seconds=2)
"""After a new axis, and between two rounds: those that come with it are clustered with it, and a
tool that names new ones all the time costs one round in so many seconds."""

_REST = 4.0
"""Times a round's own length until the next: one that names new axes all the time takes a fifth of
the model's time, so that questions come first."""

_AT_LEAST = timedelta(minutes=10)
"""How often it is looked for axes that nobody told of: those that another process learned."""


class AxisWatch:
    """Which workspaces have axes that were not looked at since they were named."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._wake = asyncio.Event()

    def axes_named(self, workspace: str) -> None:
        """Axes were named in the workspace; told by the indexer, on the event loop."""
        self._named.add(workspace)
        self._wake.set()

    async def any_named(self, within: timedelta) -> bool:
        """Whether axes were named since the last `take`, or are until the time has passed."""
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    def take(self) -> set[str]:
        """The workspaces in which axes were named since the last time."""
        self._wake.clear()
        taken, self._named = self._named, set()
        return taken


@asynccontextmanager
async def clustering(
    clusterer: AxisClusterer,
    store: LogStore,
    watch: AxisWatch,
    settle: timedelta = _SETTLE,
) -> AsyncIterator[None]:
    """Cluster in the background until the block ends; a round at work is given up then.

    Args:
        clusterer: does it.
        store: knows the workspaces.
        watch: told of new axes.
        settle: from a new axis to its clustering.
    """
    task = asyncio.create_task(_run(clusterer, store, watch, settle), name="clustering")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _run(
    clusterer: AxisClusterer,
    store: LogStore,
    watch: AxisWatch,
    settle: timedelta,
) -> None:
    wait, rest = timedelta(0), 0.0
    while True:
        await asyncio.sleep(rest)
        any_named = await watch.any_named(wait)
        await asyncio.sleep(settle.total_seconds())
        workspaces = watch.take()
        wait = _AT_LEAST
        started = time.monotonic()
        try:
            if not any_named:  # the start, or time has passed
                workspaces |= set(await store.workspaces_with_health())
            for workspace in sorted(workspaces):
                if await clusterer.is_due(workspace):
                    await clusterer.cluster(workspace)
        except Exception as error:  # noqa: BLE001  # whatever it is, the next round may do better
            log_event(logger, "boundary axes were not clustered", level="warning", error=error)
        rest = _REST * (time.monotonic() - started)
