"""News: tells whoever looks that there is something new to be looked at, and nothing of what it is.

What this process does is told at once. What others do to the same store is noticed by a slow look
at it, only while somebody waits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mongo.errors import StoreError
from service.logs import log_event

logger = logging.getLogger(__name__)

EVERY_S = 5.0
"""Seconds between two looks at the store."""

LookAt = Callable[[str], Awaitable[object]]
"""Something that is another one when there is news of a workspace in the store."""


class News:
    """Versions of workspaces that grow with whatever happens there. All on one event loop.

    Args:
        look_at: reads what changes with the store; cheap, and may raise `StoreError`.
        every_s: seconds between two looks.
    """

    def __init__(self, look_at: LookAt, every_s: float = EVERY_S) -> None:
        self._look_at = look_at
        self._every_s = every_s
        self._versions: dict[str, int] = {}
        self._of_all = 0
        """Happenings of which nobody knows where they were."""
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, object] = {}

    def version(self, workspace: str) -> int:
        """The version now; 0 before anything happened since the start."""
        return self._of_all + self._versions.get(workspace, 0)

    def tell(self, workspace: str) -> None:
        """Something happened in a workspace; returns at once."""
        self._versions[workspace] = self._versions.get(workspace, 0) + 1
        self._wake(workspace)

    def tell_all(self) -> None:
        """Something happened, and whoever knows of it does not know where."""
        self._of_all += 1
        for workspace in list(self._waiting):
            self._wake(workspace)

    async def wait(self, workspace: str, seen: int, timeout_s: float) -> int:
        """The version once it is another one than `seen`, or the same after the timeout.

        Args:
            workspace: whose.
            seen: the version that is known already; another one than that of now returns at once.
            timeout_s: seconds to wait at most.
        """
        if self.version(workspace) != seen:
            return self.version(workspace)
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace, set()).add(told)
        self._look(workspace)
        try:
            async with asyncio.timeout(timeout_s):
                await told
        except TimeoutError:
            pass
        finally:
            self._waiting.get(workspace, set()).discard(told)
        return self.version(workspace)

    async def close(self) -> None:
        """Look no more; those who wait are told, so that they do not wait for nothing."""
        looking = list(self._looking.values())
        for each in looking:
            each.cancel()
        if looking:
            await asyncio.wait(looking)
        self.tell_all()

    def _wake(self, workspace: str) -> None:
        for each in self._waiting.pop(workspace, ()):
            if not each.done():
                each.set_result(None)

    def _look(self, workspace: str) -> None:
        if workspace not in self._looking:
            task = asyncio.create_task(self._keep_looking(workspace), name="looking for news")
            self._looking[workspace] = task
            task.add_done_callback(lambda _: self._looking.pop(workspace, None))

    async def _keep_looking(self, workspace: str) -> None:
        """Until a look finds nobody waiting; between two of their waits there may be a moment."""
        is_failing = False
        while True:
            try:
                now = await self._look_at(workspace)
            except StoreError as error:
                if not is_failing:
                    log_event(logger, "no news from the store", level="warning", error=error)
                is_failing = True
            else:
                is_failing = False
                if self._seen.setdefault(workspace, now) != now:
                    self._seen[workspace] = now
                    self.tell(workspace)
            await asyncio.sleep(self._every_s)
            if not self._waiting.get(workspace):
                return
