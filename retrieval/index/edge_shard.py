"""One Qdrant Edge shard, blocking: the only module that calls its engine.

The library's surprises are kept in here (version 0.9):

- It holds the GIL during every call, so a call from any thread stops the event loop too. Updates
  are therefore cut into small operations, and what takes seconds (`optimize`) is left to another
  process (`CompactingProcess`).
- An update is in the write-ahead log when it returns, but not on the disk: that survives a killed
  process, not a power cut. `flush` writes everything, with the GIL held: 6 ms on an idle disk, 50
  to 250 ms on a busy one. `fsync` on the log's files from Python makes the log durable instead,
  and the shard replays it when it is loaded: 0.1 ms on an idle disk, GIL free.
- The log is a sparse file in a memory map: on a full disk the kernel would kill the process, so
  whoever updates a shard checks for space first (`edge_folder`).
- A panic inside the library arrives as a `BaseException`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import qdrant_edge as qdrant

from retrieval.index.protocol import (
    DENSE,
    KIND,
    OF_A_HIT,
    SERVER,
    TERMS,
    TOOL,
    WORKSPACE,
    Hit,
    IndexPoint,
    IndexQuery,
    TermEncoder,
    VectorIndexError,
    batches,
    payload_of,
    to_hits,
    to_unfused,
)

Fusion = Literal["dbsf", "rrf"]
"""How dense and sparse scores become one.

`dbsf`: each side's scores scaled by their mean and three standard deviations, then added
(distribution-based score fusion). `rrf`: reciprocal rank fusion, blind to how far ranks lie apart.
"""

KEYWORDS = (WORKSPACE, KIND, TOOL, SERVER)
"""Payload fields with an index. A version is only asked for along with its tool, which leaves at
most some dozens of documents to look at, so it needs none."""

WRITE_AHEAD_LOG = "wal"

CHUNK = 32
"""Points an operation: 0.7 ms with the GIL held."""

POINTS_PER_FLUSH = 10_000
"""Points after which the log (20 MB by then) is folded into the segments. Rare, since a flush waits
for the disk with the GIL held; replaying so many after a crash takes 0.4 s."""

RRF_K = 60
"""Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion" (SIGIR 2009)."""


class Shard:
    """A shard that is open. One thread may update while another searches."""

    def __init__(self, shard: Any, folder: Path) -> None:
        self._shard = shard
        self._folder = folder
        self._unflushed = 0
        self._terms = TermEncoder()

    @classmethod
    def create(cls, folder: Path, *, dimension: int) -> "Shard":
        """Make an empty shard in a folder that does not exist yet."""
        keyword = qdrant.PayloadSchemaType.Keyword
        with _translated("create the vector index"):
            folder.mkdir(parents=True)
            shard = qdrant.EdgeShard.create(str(folder), _config(dimension))
            for field in KEYWORDS:
                shard.update(qdrant.UpdateOperation.create_field_index(field, keyword))
            shard.flush()
        return cls(shard, folder)

    @classmethod
    def load(cls, folder: Path) -> "Shard":
        """Open what `create` made, and replay its log: some 0.1 s at 50,000 points."""
        with _translated("open the vector index"):
            return cls(qdrant.EdgeShard.load(str(folder)), folder)

    def upsert(self, points: Sequence[IndexPoint]) -> None:
        """Insert or replace; durable when it returns."""
        for chunk in batches(points, CHUNK):
            with _translated("add to the vector index"):
                made = [self._to_point(point) for point in chunk]
                self._shard.update(qdrant.UpdateOperation.upsert_points(made))
        self._make_durable(len(points))

    def delete(self, document_ids: Sequence[str]) -> None:
        """Remove; durable when it returns. Unknown ids do nothing."""
        for chunk in batches(document_ids, CHUNK):
            with _translated("delete from the vector index"):
                self._shard.update(qdrant.UpdateOperation.delete_points([*chunk]))
        self._make_durable(len(document_ids))

    def search(self, queries: Sequence[IndexQuery], fusion: Fusion) -> list[list[Hit]]:
        """Answers in the order of the questions, each best first, ties by document id."""
        with _translated("search the vector index"):
            requests = [self._to_requests(query, fusion) for query in queries]
            flat = [request for several in requests for request in several]
            answers = iter(self._shard.query_batch(qdrant.QueryBatchRequest(flat)))
            hits = []
            for query, several in zip(queries, requests, strict=True):
                found = [next(answers) for _ in several]
                if query.fused:
                    hits.append(to_hits(found[0], query, is_fused=bool(several[0].prefetches)))
                else:
                    hits.append(to_unfused(*found))
            return hits

    def count(self) -> int:
        """How many points there are."""
        with _translated("count the vectors"):
            return int(self._shard.count(qdrant.CountRequest(exact=True)))

    def catch_up(self, source: "Shard", document_ids: Sequence[str]) -> None:
        """Make these documents what they are in another shard, absent ones included."""
        for chunk in batches(document_ids, CHUNK):
            with _translated("bring the vector index up to date"):
                shard = source._shard  # noqa: SLF001
                records = shard.retrieve(chunk, with_payload=True, with_vector=True)
                points = [qdrant.Point(row.id, row.vector, row.payload) for row in records]
                gone = set(chunk) - {str(row.id) for row in records}
                self._shard.update(qdrant.UpdateOperation.upsert_points(points))
                self._shard.update(qdrant.UpdateOperation.delete_points([*gone]))
        self.flush()

    def flush(self) -> None:
        """Write everything to the segments."""
        with _translated("flush the vector index"):
            self._shard.flush()
        self._unflushed = 0

    def optimize(self) -> None:
        """Merge segments and build the HNSW graph: some 0.2 ms a point, GIL held throughout."""
        with _translated("optimize the vector index"):
            self._shard.optimize()

    def close(self) -> None:
        """Flush and let go of the files; closing twice does nothing."""
        with _translated("close the vector index"):
            self._shard.close()

    def _make_durable(self, points: int) -> None:
        self._unflushed += points
        if self._unflushed >= POINTS_PER_FLUSH:
            self.flush()
            return
        log = self._folder / WRITE_AHEAD_LOG
        try:
            for path in [*log.iterdir(), log]:
                # The library prepares the log's next file under a name that vanishes.
                with suppress(FileNotFoundError):
                    sync(path)
        except OSError as error:
            raise VectorIndexError(f"cannot write the vector index to disk: {error}") from error

    def _to_point(self, point: IndexPoint) -> Any:
        vectors: dict[str, Any] = {DENSE: point.vector.tolist()}
        if (terms := self._terms.document(point.terms)) is not None:
            vectors[TERMS] = terms
        return qdrant.Point(point.document_id, vectors, payload_of(point))

    def _to_requests(self, query: IndexQuery, fusion: Fusion) -> list[Any]:
        """One request, or two where both sides' scores are asked for: cosines, then BM25's."""
        only, count = _filter(query), query.candidates
        dense = qdrant.Query.Nearest(query.vector.tolist(), DENSE)
        answer: dict[str, Any] = {
            "with_payload": OF_A_HIT,
            "with_vector": [DENSE] if query.fused else False,
            "score_threshold": None if query.fused else query.least_similarity,
        }
        terms = self._terms.query(query.terms)
        if terms is None:
            return [qdrant.QueryRequest(query=dense, filter=only, limit=query.limit, **answer)]
        sparse = qdrant.Query.Nearest(terms, TERMS)
        corpus = query.idf_corpus()
        idf = qdrant.SearchParams(idf=None if corpus is None else qdrant.IdfParams(_filter(corpus)))
        sides = [
            qdrant.Prefetch(count, query=dense, filter=only),
            qdrant.Prefetch(count, query=sparse, filter=only, params=idf),
        ]
        if query.fused:
            fused: Any = qdrant.Fusion.Dbsf() if fusion == "dbsf" else qdrant.Fusion.Rrf(RRF_K)
            return [qdrant.QueryRequest(query=fused, prefetches=sides, limit=query.limit, **answer)]
        limit = 2 * query.limit
        return [
            qdrant.QueryRequest(query=dense, prefetches=sides, limit=limit, **answer),
            qdrant.QueryRequest(query=sparse, prefetches=sides, limit=limit, params=idf),
        ]


def sync(path: Path) -> None:
    """Put a file or folder on the disk; releases the GIL meanwhile."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _config(dimension: int) -> Any:
    return qdrant.EdgeConfig(
        vectors={
            DENSE: qdrant.EdgeVectorParams(
                size=dimension,
                distance=qdrant.Distance.Cosine,
                # half the memory and disk; the cosine of unit vectors changes by some 1e-5
                datatype=qdrant.VectorStorageDatatype.Float16,
            )
        },
        sparse_vectors={TERMS: qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
        hnsw_config=qdrant.HnswIndexConfig(
            m=16,  # both are the library's defaults
            ef_construct=100,
            full_scan_threshold=2_000,  # KiB of vectors below which what a filter leaves is scanned
            max_indexing_threads=1,  # compaction runs beside the service
        ),
        optimizers=qdrant.EdgeOptimizersConfig(
            default_segment_number=1,  # a search visits every segment
            indexing_threshold=2_000,  # KiB of vectors: about 2,600 of MiniLM's in half precision
        ),
    )


def _filter(query: IndexQuery) -> Any:
    must: list[Any] = [
        qdrant.FieldCondition(
            field, qdrant.MatchValue(values[0]) if len(values) == 1 else qdrant.MatchAny(values)
        )
        for field, values in query.conditions().items()
    ]
    if query.document_ids is not None:
        must.append(qdrant.HasIdCondition(set(query.document_ids)))
    return qdrant.Filter(must=must)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """What the library, or its arguments' conversion, raises as `VectorIndexError`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        raise VectorIndexError(
            f"cannot {what}: {error}; if this persists, `aftercall rebuild` makes it anew"
        ) from error
