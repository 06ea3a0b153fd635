"""Following the store: what other processes changed is forgotten here, and switches are noticed.

Without it an answer could rest on what was known before another process learned more.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from mongo.upkeep import ChangeFeed, Upkeep
from retrieval.memory import Memory
from service.logs import log_event

logger = logging.getLogger(__name__)

EVERY = timedelta(seconds=0.5)
"""What is learned elsewhere is to be usable here within a second."""

OnGeneration = Callable[[int], Awaitable[None]]
"""Told the generation that holds: at first, and whenever it is another one."""


class _Follower:
    """Polls a feed and passes on what it says."""

    def __init__(
        self, store: Upkeep, memory: Memory, on_generation: OnGeneration, feed: ChangeFeed | None
    ) -> None:
        self._store = store
        self._memory = memory
        self._on_generation = on_generation
        self._feed = feed
        self._generation: int | None = None
        self._is_failing = False

    async def look(self) -> None:
        """Once; what goes wrong is logged the first time, and done the next time."""
        try:
            await self._look()
        except Exception as error:  # noqa: BLE001  # whatever it is, the next look may do better
            if not self._is_failing:
                log_event(
                    logger,
                    "what other processes do is not seen at the moment",
                    level="warning",
                    error=error,
                )
            self._is_failing = True
        else:
            if self._is_failing:
                log_event(logger, "what other processes do is seen again")
            self._is_failing = False

    async def _look(self) -> None:
        if self._feed is None:
            self._feed = await self._store.follow()
            self._memory.forget_all()  # of what was before it
        seen = await self._feed.poll()
        for change in seen.changes:
            self._memory.forget(change)
        if seen.generation != self._generation:
            is_switch = self._generation is not None
            # Before and after: in between, answers may still read what was learned before.
            self._memory.forget_all()
            await self._on_generation(seen.generation)
            self._memory.forget_all()
            self._generation = seen.generation
            if is_switch:
                log_event(logger, "what was learned anew is in use", generation=seen.generation)


@asynccontextmanager
async def following(
    store: Upkeep,
    memory: Memory,
    on_generation: OnGeneration,
    every: timedelta = EVERY,
    *,
    feed: ChangeFeed | None = None,
) -> AsyncIterator[None]:
    """Follow in the background until the block ends; a store that is away is waited for.

    The first look is over when the block begins.

    Args:
        store: whose changes.
        memory: forgets what has changed.
        on_generation: told which generation holds; told again while it raises.
        every: from one look to the next.
        feed: of before anything was read; one from now on unless given.
    """
    follower = _Follower(store, memory, on_generation, feed)
    await follower.look()
    task = asyncio.create_task(_run(follower, every), name="following")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _run(follower: _Follower, every: timedelta) -> None:
    while True:
        await asyncio.sleep(every.total_seconds())
        await follower.look()
