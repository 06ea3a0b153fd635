"""Pages that stay up to date: one watcher for each workspace, however many look at it.

What is new is shown within a tenth of a second; while more and more comes in, once a second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from service.logs import log_event

logger = logging.getLogger(__name__)

_GATHER_S: Final = 0.02
"""Calls are recorded one after the other; those of one moment are shown together."""

_PAUSE_S: Final = 1.0
"""From one refresh to the next while more and more comes in."""

_SPARE: Final = 3.0
"""Refreshes that may follow one another at once after a quiet time: what is learned of a call is
news too, and must not hold up the call that comes after it."""

_WAIT_S: Final = 30.0
"""How long news is waited for at a time, so that a watcher notices that everybody has left."""

_AT_ONCE: Final = 2
"""Viewers that are refreshed at a time: questions to the service come in between."""


class News(Protocol):
    """Tells of what came in; `service.statistics` has it."""

    def version(self, workspace: str) -> int:
        """Changes with everything that came in."""
        ...

    async def wait(self, workspace: str, seen: int, timeout_s: float) -> int:
        """The version, once it is not `seen` any more or the time is over."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Viewer:
    """One open page."""

    refresh: Callable[[float], Awaitable[None]]
    """Shows what is new; given the loop time before which what was read is too old. It tells its
    reader of failures itself."""
    is_gone: Callable[[], bool]


class Watchers:
    """Who looks at which workspace; a watcher runs while somebody does."""

    def __init__(self) -> None:
        self._watchers: dict[str, _Watcher] = {}

    def watch(self, workspace: str, news: News, viewer: Viewer, seen: int) -> None:
        """Refresh `viewer` from now on, at once when something came in after version `seen`."""
        watcher = self._watchers.get(workspace)
        if watcher is None or watcher.has_ended:
            watcher = self._watchers[workspace] = _Watcher(workspace, news)
        watcher.add(viewer, seen)

    def leave(self, workspace: str, viewer: Viewer) -> None:
        """Refresh `viewer` no more."""
        watcher = self._watchers.get(workspace)
        if watcher is not None:
            watcher.remove(viewer)

    async def close(self) -> None:
        """Stop all watchers."""
        watchers, self._watchers = list(self._watchers.values()), {}
        for watcher in watchers:
            await watcher.stop()


class _Watcher:
    def __init__(self, workspace: str, news: News) -> None:
        self._workspace = workspace
        self._news = news
        self._viewers: list[Viewer] = []
        self._seen = news.version(workspace)
        self._task = asyncio.create_task(self._run(), name="dashboard watcher")
        self._late = asyncio.Event()
        self._spare = _SPARE
        self._spent_at = asyncio.get_running_loop().time()

    @property
    def has_ended(self) -> bool:
        return self._task.done()

    def add(self, viewer: Viewer, seen: int) -> None:
        self._viewers.append(viewer)
        if seen != self._seen:  # something came in while its page was being built
            self._late.set()

    def remove(self, viewer: Viewer) -> None:
        # The list itself may be gone through at this moment.
        self._viewers = [each for each in self._viewers if each is not viewer]

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._something_new()
            self._viewers = [each for each in self._viewers if not each.is_gone()]
            if not self._viewers:
                return
            await asyncio.sleep(_GATHER_S)
            self._late.clear()
            self._seen = self._news.version(self._workspace)
            await self._refresh_all()
            await asyncio.sleep(self._rest())

    async def _refresh_all(self) -> None:
        begun = asyncio.get_running_loop().time()
        # Held here only: who leaves later is not to be held while news are waited for.
        viewers = self._viewers
        for start in range(0, len(viewers), _AT_ONCE):
            await asyncio.gather(
                *(_refresh(each, begun) for each in viewers[start : start + _AT_ONCE])
            )
            await asyncio.sleep(0)

    def _rest(self) -> float:
        """Seconds until the next refresh may be: a bucket that fills by one a pause."""
        now = asyncio.get_running_loop().time()
        self._spare = min(_SPARE, self._spare + (now - self._spent_at) / _PAUSE_S) - 1.0
        self._spent_at = now
        return max(0.0, -self._spare) * _PAUSE_S

    async def _something_new(self) -> None:
        while not self._late.is_set() and self._news.version(self._workspace) == self._seen:
            told = asyncio.create_task(self._news.wait(self._workspace, self._seen, _WAIT_S))
            late = asyncio.create_task(self._late.wait())
            try:
                done, _ = await asyncio.wait({told, late}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (told, late):
                    task.cancel()
                await asyncio.gather(told, late, return_exceptions=True)
            if told in done:
                told.result()
            if all(each.is_gone() for each in self._viewers):
                return


async def _refresh(viewer: Viewer, begun: float) -> None:
    if viewer.is_gone():
        return
    try:
        await viewer.refresh(begun)
    except Exception as error:  # noqa: BLE001  # one page's fault is not the other pages'
        log_event(logger, "page not updated", level="error", error=error)
