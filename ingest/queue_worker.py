"""A queue worker: one step after the other while there is work; it waits while there is none."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from embeddings.protocol import EmbeddingError
from mongo.errors import StoreError
from retrieval.index.protocol import VectorIndexError

_RETRY_S = 1.0

log = logging.getLogger("aftercall.indexer")


class QueueWorker:
    """Runs `step` in the background until it finds nothing to do; then waits to be woken.

    Args:
        name: what the log calls it.
        step: works off one batch of a durable queue; returns how many items that were.
    """

    def __init__(self, name: str, step: Callable[[], Awaitable[int]]) -> None:
        self._name = name
        self._step = step
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = None
        """Why the work stands still; None while all is well."""

    def start(self) -> None:
        """Begin to work off the queue."""
        self._work.set()
        self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Say that there is something new in the queue."""
        self._work.set()

    async def close(self) -> None:
        """Stop; what is left stays in the queue."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _run(self) -> None:
        while True:
            try:
                self._work.clear()
                done = await self._step()
                self.problem = None
                if not done:
                    await self._work.wait()
            except (StoreError, VectorIndexError, EmbeddingError) as error:
                self.problem = str(error)
                log.error("%s stands still and will be tried again: %s", self._name, error)  # noqa: TRY400 - an operator's matter, not a bug
                await asyncio.sleep(_RETRY_S)
            except Exception:
                self.problem = "an internal error; see the log"
                log.exception("%s failed and will be tried again", self._name)
                await asyncio.sleep(_RETRY_S)
