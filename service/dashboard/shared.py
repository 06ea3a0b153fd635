"""What several viewers ask for at about the same time is read once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Read = TypeVar("Read")

_FRESH_S: Final = 1.0
"""Seconds for which a page that is opened may show what was read for another one."""


@dataclass(slots=True)
class _Entry:
    begun: float
    version: int
    task: "asyncio.Task[Any]"


class SharedReads:
    """Reads by key, each kept for a second; a read that fails is not kept."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}

    async def get(
        self,
        key: Hashable,
        read: Callable[[], Awaitable[Read]],
        *,
        version: int,
        begun_after: float = 0.0,
    ) -> tuple[Read, int]:
        """What `read` returns, or returned for somebody else a moment ago.

        Args:
            key: names what is read, workspace and window included.
            read: reads it.
            version: of the news, now.
            begun_after: loop time; what was begun before it is too old whatever its age.

        Returns:
            it, and the version of the news when it was begun to be read.
        """
        loop = asyncio.get_running_loop()
        entry = self._entries.get(key)
        if entry is None or entry.begun < begun_after:
            entry = self._entries[key] = _Entry(
                loop.time(), version, asyncio.create_task(_awaited(read))
            )
            entry.task.add_done_callback(lambda task: self._done(key, task))
            loop.call_later(_FRESH_S, self._drop, key, entry)
        # One viewer who leaves must not stop what others wait for.
        result: Read = await asyncio.shield(entry.task)
        return result, entry.version

    def _done(self, key: Hashable, task: "asyncio.Task[Any]") -> None:
        if task.cancelled() or task.exception() is not None:
            entry = self._entries.get(key)
            if entry is not None and entry.task is task:
                del self._entries[key]

    def _drop(self, key: Hashable, entry: _Entry) -> None:
        if self._entries.get(key) is entry:
            del self._entries[key]


async def _awaited(read: Callable[[], Awaitable[Read]]) -> Read:
    return await read()
