"""The vector index of those who answer: what it cannot do is counted, and raised as it was.

Answers do without the index when it fails (`retrieval.suggest`), so that no status of a request
shows it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from retrieval.index.protocol import Hit, IndexPoint, IndexQuery, VectorIndex, VectorIndexError


class CountedIndex:
    """`VectorIndex` that tells of errors.

    Args:
        index: who does it; closed by who opened it.
        on_error: told each error.
    """

    def __init__(self, index: VectorIndex, on_error: Callable[[VectorIndexError], None]) -> None:
        self._index = index
        self._on_error = on_error

    @property
    def name(self) -> str:
        """The index's."""
        return self._index.name

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        """See `VectorIndex.upsert`."""
        with self._told():
            await self._index.upsert(points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        """See `VectorIndex.delete`."""
        with self._told():
            await self._index.delete(document_ids)

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """See `VectorIndex.search`."""
        with self._told():
            return await self._index.search(queries)

    async def count(self) -> int:
        """See `VectorIndex.count`."""
        with self._told():
            return await self._index.count()

    async def close(self) -> None:
        """See `VectorIndex.close`."""
        await self._index.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except VectorIndexError as error:
            self._on_error(error)
            raise
