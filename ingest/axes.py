"""Axes of a workspace, clustered again: reads its book, embeds, clusters, names, keeps."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
from cachetools import LRUCache

from embeddings.protocol import Embedder, Vectors
from mongo.protocol import Knowledge
from mongo.records import Commit, Row, encode_json
from retrieval.knowledge.memory import AXIS_CLUSTERS, Memory
from retrieval.knowledge.patterns.clusters import (
    AxisClusters,
    cluster_rows,
    name_clusters,
    neutral_sentences,
    neutral_vector,
    phrase_vectors,
    sentences_of,
)
from retrieval.knowledge.rows.health import MAX_BOOK_AXES, AxisBook, axes_of_pair, prune_book

_CHUNK = 16
"""Axes embedded at a time, so that a question that comes meanwhile waits for few."""
_REMEMBERED = 2 * MAX_BOOK_AXES
"""Vectors kept, so that one new axis costs one: 4,000 of MiniLM's take 6 MB."""
log = logging.getLogger("aftercall.boundaries")


class AxisClusterer:
    """Clusters the axes of workspaces; one workspace at a time."""

    def __init__(
        self,
        *,
        knowledge: Callable[[], Knowledge],
        memory: Memory,
        embedder: Embedder,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._knowledge = knowledge
        self._memory = memory
        self._embedder = embedder
        self._clock = clock
        self._vectors: LRUCache[str, Vectors] = LRUCache(_REMEMBERED)
        self._neutral: Vectors | None = None
        self._lock = asyncio.Lock()

    async def cluster_axes(self, workspace: str) -> AxisClusters:
        """Cluster a workspace's heaviest `MAX_BOOK_AXES` axes again, keeping ids and names."""
        async with self._lock:
            book = await self._memory.axis_book(workspace)
            previous = await self._memory.axis_clusters(workspace)
            await asyncio.to_thread(prune_book, book)
            axes = sorted(book.axes)  # the order decides between equals
            if not axes and not previous.clusters:
                return previous
            vectors = await self._embed_axes(axes)
            if self._neutral is None:
                said = await self._embedder.embed(neutral_sentences(), "document")
                self._neutral = neutral_vector(said)
            found = await asyncio.to_thread(
                _cluster_named, axes, vectors, self._neutral, book, previous, self._clock()
            )
            row = Row(AXIS_CLUSTERS, "", encode_json(found))
            serial = await self._knowledge().commit(Commit(workspace, put=[row]))
            self._memory.forget_rows(workspace, [(row.kind, row.key)], serial)
        if len(found.clusters) != len(previous.clusters):
            log.info(
                "the %d boundary axes of workspace %s are %d clusters",
                len(axes), workspace, len(found.clusters),
            )  # fmt: skip
        return found

    async def cluster_all(self) -> list[str]:
        """Cluster the axes of every workspace from scratch; returns those that have any."""
        workspaces = await self._knowledge().read_cursors()
        return [each for each in workspaces if (await self.cluster_axes(each)).clusters]

    async def is_due(self, workspace: str) -> bool:
        """Return whether an axis is not clustered."""
        book = await self._memory.axis_book(workspace)
        if not book.axes:
            return False
        clusters = await self._memory.axis_clusters(workspace)
        return clusters.clustered_at is None or not all(map(clusters.knows_axis, book.axes))

    async def _embed_axes(self, axes: Sequence[str]) -> Vectors:
        """Return a vector per axis, in order; only those not remembered are made."""
        known = {axis: self._vectors[axis] for axis in axes if axis in self._vectors}
        missing = [axis for axis in axes if axis not in known]
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            texts = [text for axis in chunk for text in sentences_of(axis)]
            made = phrase_vectors(await self._embedder.embed(texts, "document"))
            known.update(zip(chunk, made, strict=True))
        self._vectors.update(known)
        vectors = np.array([known[axis] for axis in axes], dtype=np.float32)
        return vectors.reshape(-1, self._embedder.dimension)


def _cluster_named(
    axes: Sequence[str],
    vectors: Vectors,
    neutral: Vectors,
    book: AxisBook,
    previous: AxisClusters,
    at: datetime,
) -> AxisClusters:
    rows = {axis: row for row, axis in enumerate(axes)}
    pairs = (axes_of_pair(key) for key in book.pairs)
    apart = [(rows[one], rows[other]) for one, other in pairs if one in rows and other in rows]
    partition = [[axes[row] for row in rows] for rows in cluster_rows(vectors, neutral, apart)]
    counts = {axis: seen.tally.count for axis, seen in book.axes.items()}
    return name_clusters(previous, partition, counts, at=at)
