"""The vector index on a Qdrant server, or a cluster, for any number of processes.

It answers as the embedded index does, up to ties and what follows:

- Segments larger than Qdrant's `indexing_threshold` are ranked by int8 over a graph, so a document
  at the end of an answer may be missing that an exact search finds; smaller ones are searched
  exactly. What is found has the same scores: the cosine of vectors in half precision, within 1e-3.
- Every shard counts the IDF over its own documents, so with several, BM25's scores differ from the
  embedded index's by what the shards' shares differ; small corpora feel it most.
- With `write_consistency` below `replicas`, a replica may answer without the last writes.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeVar

from qdrant_client import models

from retrieval.index.checks import check_id, check_point, check_vector
from retrieval.index.protocol import (
    Hit,
    IndexPoint,
    IndexQuery,
    VectorIndexError,
    VectorIndexUnavailableError,
)
from retrieval.index.qdrant_collection import Model, Spread, ensure_collection
from retrieval.index.qdrant_connection import Connection
from retrieval.index.qdrant_requests import RequestMaker, is_fusion, nothing_fits

POINTS_PER_CALL = 64
"""A point takes 50 µs to encode, on the event loop, and 1.8 KiB on the wire (384 dimensions)."""

IDS_PER_CALL = 1_000

T = TypeVar("T")


class QdrantIndex:
    """`VectorIndex` on a collection. Construct with `await QdrantIndex.open(connection, ...)`.

    A write is acknowledged when the replicas that `write_consistency` asks for have it in their
    logs and answer by it. Qdrant leaves it to the system when a log reaches the disk, so a power
    cut can take the last seconds of the only replica.
    """

    def __init__(
        self, connection: Connection, collection: str, *, dimension: int, shards: int
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._dimension = dimension
        self._maker = RequestMaker(shards=shards)

    @classmethod
    async def open(
        cls,
        connection: Connection,
        collection: str,
        *,
        dimension: int,
        fingerprint: str,
        spread: Spread | None = None,
    ) -> "QdrantIndex":
        """Open the index in a collection, or make it. The caller closes it.

        Args:
            connection: Belongs to the index from now on; closed where this raises.
            collection: Its name.
            dimension: Length of the vectors.
            fingerprint: Of the embedder, as `Embedder.fingerprint`.
            spread: How a new collection lies over the servers.

        Raises:
            IndexModelMismatchError: when its vectors are of another model; nothing is changed.
            VectorIndexError: when it is not one of ours, or the server is too old or refuses.
            VectorIndexUnavailableError: when the server does not answer.
        """
        try:
            shards = await ensure_collection(
                connection,
                collection,
                model=Model(fingerprint, dimension),
                spread=spread or Spread(),
            )
        except BaseException:
            await connection.close()
            raise
        return cls(connection, collection, dimension=dimension, shards=shards)

    @property
    def name(self) -> str:
        """`qdrant`, or `qdrant-local` for the client's own store."""
        return "qdrant-local" if self._connection.is_local else "qdrant"

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        """See `VectorIndex.upsert`. One call a batch, in order."""
        for point in points:
            check_point(point, self._dimension)
        last = {point.document_id: point for point in points}  # as one after the other would do
        for batch in _batches(list(last.values()), POINTS_PER_CALL):
            with self._connection.doing("add to the vectors") as client:
                done = await client.upsert(
                    self._collection,
                    [self._maker.point(point) for point in batch],
                    wait=True,
                    ordering=models.WriteOrdering.STRONG,
                )
            self._require_completed(done)
            await asyncio.sleep(0)  # the local store never yields

    async def delete(self, document_ids: Sequence[str]) -> None:
        """See `VectorIndex.delete`."""
        for document_id in document_ids:
            check_id(document_id)
        for batch in _batches(list(document_ids), IDS_PER_CALL):
            with self._connection.doing("delete from the vectors") as client:
                done = await client.delete(
                    self._collection,
                    models.PointIdsList(points=[*batch]),
                    wait=True,
                    ordering=models.WriteOrdering.STRONG,
                )
            self._require_completed(done)

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """See `VectorIndex.search`. One call for all of them."""
        for query in queries:
            check_vector(query.vector, self._dimension)
            for document_id in query.document_ids or ():
                check_id(document_id)
        with self._connection.doing("search the vectors") as client:
            asked = [
                [] if nothing_fits(query) else self._maker.requests(query) for query in queries
            ]
            flat = [request for several in asked for request in several]
            if not flat:
                return [[] for _ in queries]
            found = iter(await client.query_batch_points(self._collection, flat))
            answers = []
            for query, several in zip(queries, asked, strict=True):
                rows = [next(found).points for _ in several]
                answers.append(
                    self._maker.hits(query, rows, is_fused=is_fusion(several[0])) if rows else []
                )
            return answers

    async def count(self) -> int:
        """See `VectorIndex.count`."""
        with self._connection.doing("count the vectors") as client:
            return (await client.count(self._collection, exact=True)).count

    async def close(self) -> None:
        """See `VectorIndex.close`. Calls that are under way end with `VectorIndexError`."""
        await self._connection.close()

    def _require_completed(self, done: models.UpdateResult) -> None:
        match done.status:
            case models.UpdateStatus.COMPLETED:
                return
            case models.UpdateStatus.WAIT_TIMEOUT | models.UpdateStatus.ACKNOWLEDGED:
                raise VectorIndexUnavailableError(
                    f"Qdrant at {self._connection.where} has taken a write but not done it in "
                    "time; the write is sent again, which changes nothing if it is done by then"
                )
            case _:
                raise VectorIndexError(
                    f"Qdrant at {self._connection.where} said {done.status} to a write; "
                    "`aftercall rebuild` makes the vectors anew if this persists"
                )


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
