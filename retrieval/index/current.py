"""The index of the moment: what everyone asks, while a rebuild puts another in its place."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from retrieval.index.opening import FIRST_INDEX
from retrieval.index.patience import Patience
from retrieval.index.protocol import Hit, IndexPoint, IndexQuery, VectorIndex, VectorIndexError

T = TypeVar("T")

log = logging.getLogger(__name__)


class CurrentIndex:
    """`VectorIndex` that delegates to another, which can be replaced while calls are under way.

    A call that began with an index ends with it. The index belongs to this from now on.

    Args:
        index: The present one.
        opened: The name that it was opened by.
        patience: With searches and counts, where the index is a server that may hang.
    """

    def __init__(
        self, index: VectorIndex, opened: str = FIRST_INDEX, *, patience: Patience | None = None
    ) -> None:
        self._use = _Use(index, opened)
        self._patience = patience
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """The present index's."""
        return self._use.index.name

    @property
    def opened(self) -> str:
        """The name that the present index was opened by, as `opening.index_name` says."""
        return self._use.opened

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        """See `VectorIndex.upsert`."""
        with self._present() as index:
            await index.upsert(points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        """See `VectorIndex.delete`."""
        with self._present() as index:
            await index.delete(document_ids)

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """See `VectorIndex.search`."""
        with self._present() as index:
            return await self._in_time(lambda: index.search(queries))

    async def count(self) -> int:
        """See `VectorIndex.count`."""
        with self._present() as index:
            return await self._in_time(index.count)

    async def switch(self, index: VectorIndex, opened: str = FIRST_INDEX) -> None:
        """Put another index in the place of the present one, which is closed.

        Every call from now on goes to the new one. Returns when those that were under way in the
        former one are done and it is closed, which goes on even where the caller is cancelled.

        Args:
            index: The new one, open; the present one itself stays open.
            opened: The name that it was opened by.

        Raises:
            VectorIndexError: when this is closed; the index is closed then, too.
        """
        if self._closed:
            await index.close()
            raise _closed_error()
        former = self._use
        if former.index is index:
            former.opened = opened
            return
        self._use = _Use(index, opened)
        leaving = asyncio.create_task(former.close_when_idle())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)

    async def close(self) -> None:
        """See `VectorIndex.close`. Former indexes that are still in use are waited for."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._use.index.close()
        finally:
            await asyncio.gather(*self._leaving)

    async def _in_time(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await (call() if self._patience is None else self._patience.wait_for(call))

    @contextmanager
    def _present(self) -> Iterator[VectorIndex]:
        if self._closed:
            raise _closed_error()
        with self._use as index:
            yield index


class _Use:
    """An index and how many calls are under way in it."""

    def __init__(self, index: VectorIndex, opened: str) -> None:
        self.index = index
        self.opened = opened
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> VectorIndex:
        self._calls += 1
        self._idle.clear()
        return self.index

    def __exit__(self, *_: object) -> None:
        self._calls -= 1
        if not self._calls:
            self._idle.set()

    async def close_when_idle(self) -> None:
        """It is not in its place any more, so a failure to close harms no one."""
        await self._idle.wait()
        try:
            await self.index.close()
        except VectorIndexError as error:
            log.warning("the former vector index was not closed properly: %s", error)


def _closed_error() -> VectorIndexError:
    return VectorIndexError("this index is closed; open another")
