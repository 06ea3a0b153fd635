"""Whether the log store answers: asked cheaply, bounded in time, at most once a second."""

import asyncio
import time
from collections.abc import Callable

from mongo.errors import StoreError
from mongo.protocol import LogStore

_KEPT_S = 1.0
"""Supervisors and load balancers ask often, several at a time."""

_WITHIN_S = 2.0
"""A store that takes longer for one number serves nobody; who asks `/readyz` waits as long."""


class StoreWatch:
    """Asks the store when it is asked itself, so that it is right again as soon as the store is.

    Args:
        store: what is watched.
        within_s: seconds in which it has to answer.
        clock: tells the time, in seconds that only grow.
    """

    def __init__(
        self,
        store: LogStore,
        *,
        within_s: float = _WITHIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._within_s = within_s
        self._clock = clock
        self._asked_at: float | None = None
        self._answered = False
        self._one_at_a_time = asyncio.Lock()

    async def answers(self) -> bool:
        """Whether it answered a moment ago, or does now."""
        async with self._one_at_a_time:
            if self._asked_at is None or self._clock() - self._asked_at >= _KEPT_S:
                self._answered = await self._asked()
                self._asked_at = self._clock()
            return self._answered

    async def _asked(self) -> bool:
        try:
            async with asyncio.timeout(self._within_s):
                await self._store.generation()
        except (StoreError, TimeoutError):
            return False
        return True
