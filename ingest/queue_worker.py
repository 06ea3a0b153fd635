"""A queue worker: one step after the other while there is work; it waits while there is none.

Work is by workspace. Each that has any gets one step in a round, so that none waits for the backlog
of another, and one whose step fails does not hold up the others.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from embeddings.protocol import EmbeddingError
from mongo.errors import StoreError
from retrieval.index.protocol import VectorIndexError

_RETRY_S = 1.0

log = logging.getLogger("aftercall.indexer")


class QueueWorker:
    """Runs rounds in the background until one finds nothing to do; then waits to be woken.

    Args:
        name: what the log calls it.
        queued: the workspaces that may have work.
        step: works off one batch of a workspace's durable queue; returns how many items that were.
        after: called after each round with the workspaces that it had; is not to raise.
        poll: seconds after which it is looked again without being woken; None for never.
        glance: tells cheaply whether most of what can be queued is. Where it is given it is polled,
            and the queues themselves only when it says so, or each `look` seconds.
        look: seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        queued: Callable[[], Awaitable[Sequence[str]]],
        step: Callable[[str], Awaitable[int]],
        after: Callable[[Sequence[str]], Awaitable[None]],
        poll: float | None = None,
        glance: Callable[[], Awaitable[bool]] | None = None,
        look: float = 0.0,
    ) -> None:
        self._name = name
        self._queued = queued
        self._step = step
        self._after = after
        self._poll = poll
        self._glance = glance
        self._look = look
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problems: dict[str | None, str] = {}
        self._rest: dict[str, float] = {}
        self._last = ""

    @property
    def problem(self) -> str | None:
        """Why the work stands still, at least in some workspace; None while all is well."""
        return next(iter(self._problems.values()), None)

    def start(self) -> None:
        """Begin to work off the queue."""
        self._work.set()
        self._task = asyncio.create_task(self._run(), name=self._name)

    def wake(self) -> None:
        """Say that there is something new in the queue."""
        self._work.set()

    async def round(self) -> int:
        """One step in each workspace that has work, in the foreground; returns how many items.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: the first that went wrong; every workspace
                has had its step.
        """
        self._rest.clear()
        done, failed = await self._turns(await self._queued())
        for error in failed.values():
            raise error
        return done

    async def close(self) -> None:
        """Stop; what is left stays in the queue."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _run(self) -> None:
        while True:
            self._work.clear()
            try:
                queued = await self._queued()
            except Exception as error:  # noqa: BLE001  # told, and tried again
                self._problems[None] = _said(error)
                self._tell({"": error})
                await asyncio.sleep(_RETRY_S)
                continue
            done, failed = await self._turns(queued)
            resting = self._problems.items()
            self._problems = {each: said for each, said in resting if each in self._rest}
            self._problems |= {each: _said(error) for each, error in failed.items()}
            self._tell(failed)
            if not done:
                await self._wait()

    async def _turns(self, queued: Sequence[str]) -> tuple[int, dict[str, Exception]]:
        done, failed = 0, dict[str, Exception]()
        now = time.monotonic()
        self._rest = {each: until for each, until in self._rest.items() if until > now}
        # It goes on behind the one that came last, so that each has its turn whatever happens.
        for workspace in sorted(queued, key=lambda each: (each <= self._last, each)):
            if workspace in self._rest:
                continue
            self._last = workspace
            try:
                done += await self._step(workspace)
            except Exception as error:  # noqa: BLE001  # told, and tried again
                failed[workspace] = error
                self._rest[workspace] = time.monotonic() + _RETRY_S
        await self._after(queued)
        return done, failed

    async def _wait(self) -> None:
        """Until it is worth to look at the queues again."""
        look_at = time.monotonic() + self._look
        while not await self._is_woken():
            if self._rest or self._glance is None or time.monotonic() >= look_at:
                return
            try:
                if await self._glance():
                    return
            except Exception:  # noqa: BLE001  # looking at the queues says what is wrong
                return

    async def _is_woken(self) -> bool:
        """Whether it was, before the next poll was due."""
        waits = [each for each in (self._poll, _RETRY_S if self._rest else None) if each]
        try:
            async with asyncio.timeout(min(waits, default=None)):
                return await self._work.wait()
        except TimeoutError:
            return False

    def _tell(self, failed: dict[str, Exception]) -> None:
        """One line for each thing that went wrong, however many workspaces it stops."""
        for message, error in {str(error): error for error in failed.values()}.items():
            if isinstance(error, StoreError | VectorIndexError | EmbeddingError):
                # An operator's matter, not a bug.
                log.error("%s stands still and will be tried again: %s", self._name, message)
            else:
                log.error("%s failed and will be tried again", self._name, exc_info=error)


def _said(error: Exception) -> str:
    if isinstance(error, StoreError | VectorIndexError | EmbeddingError):
        return str(error)
    return "an internal error; see the log"
