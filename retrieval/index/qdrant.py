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
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qdrant_client import models

from retrieval.index.opening import QdrantPlace
from retrieval.index.protocol import (
    DENSE,
    OF_A_HIT,
    TERMS,
    Hit,
    IndexPoint,
    IndexQuery,
    TermEncoder,
    VectorIndexError,
    VectorIndexUnavailableError,
    batches,
    check_id,
    check_point,
    check_vector,
    payload_of,
    to_hits,
    to_unfused,
)
from retrieval.index.qdrant_collection import Connection, ensure_collection

POINTS_PER_CALL = 64
"""A point takes 50 µs to encode, on the event loop, and 1.8 KiB on the wire (384 dimensions)."""

IDS_PER_CALL = 1_000

OVERSAMPLING = 2.0
"""Candidates by int8, as a multiple of those asked for, of which the cosine is then taken."""

NEAREST = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
)

EXACT = models.SearchParams(exact=True)
"""For scores of candidates that are found already."""

log = logging.getLogger(__name__)


class RequestMaker:
    """Makes requests to a collection of so many shards, and reads what they brought."""

    def __init__(self, *, shards: int) -> None:
        self._shards = shards
        self._terms = TermEncoder()

    def point(self, point: IndexPoint) -> models.PointStruct:
        """A document as it is stored."""
        vectors: dict[str, list[float] | models.SparseVector] = {DENSE: point.vector.tolist()}
        if (terms := self._terms.document(point.terms)) is not None:
            vectors[TERMS] = models.SparseVector(indices=terms.indices, values=terms.values)
        return models.PointStruct(id=point.document_id, vector=vectors, payload=payload_of(point))

    def requests(self, query: IndexQuery) -> list[models.QueryRequest]:
        """One request, or two where both sides' scores are asked for: cosines, then BM25's."""
        only, count = _filter(query), query.candidates
        dense: dict[str, Any] = {"query": query.vector.tolist(), "using": DENSE}
        answer: dict[str, Any] = {
            "limit": query.limit, "with_payload": OF_A_HIT, "with_vector": [DENSE]
        }  # fmt: skip
        encoded = self._terms.query(query.terms)
        if encoded is None:
            return [models.QueryRequest(**dense, filter=only, params=NEAREST, **answer)]
        terms: dict[str, Any] = {
            "query": models.SparseVector(indices=encoded.indices, values=encoded.values),
            "using": TERMS,
        }
        corpus = query.idf_corpus()
        terms["params"] = corpus and models.SearchParams(
            idf=models.IdfCorpusParams(corpus=_filter(corpus))
        )
        sides = [
            models.Prefetch(**dense, filter=only, params=NEAREST, limit=count),
            models.Prefetch(**terms, filter=only, limit=count),
        ]
        if query.fused:
            fusion = models.FusionQuery(fusion=models.Fusion.DBSF)
            return [models.QueryRequest(prefetch=sides, query=fusion, **answer)]
        # Every shard has its own best of each side: all are asked for, with both scores, and
        # `hits` keeps what is among the best of all shards.
        limit = 2 * query.limit * self._shards
        return [
            models.QueryRequest(
                **dense,
                prefetch=sides,
                params=EXACT,
                limit=limit,
                score_threshold=query.least_similarity,
                with_payload=OF_A_HIT,
            ),
            models.QueryRequest(**terms, prefetch=sides, limit=limit, with_payload=False),
        ]

    def hits(
        self, query: IndexQuery, answers: Sequence[Sequence[models.ScoredPoint]], *, is_fused: bool
    ) -> list[Hit]:
        """What the requests of a question brought, best first, ties by document id.

        Args:
            query: the question.
            answers: rows, one list a request.
            is_fused: whether the rows' scores are the fusion's.
        """
        if len(answers) == 1:
            hits = to_hits(answers[0], query, is_fused=is_fused)
            return hits if query.fused else [replace(hit, score=0.0) for hit in hits]
        hits = to_unfused(*answers)
        if self._shards == 1:
            return hits
        by_terms = sorted(answers[1], key=lambda row: (-row.score, str(row.id)))
        kept = {hit.document_id for hit in hits[: query.limit]}
        kept.update(str(row.id) for row in by_terms[: query.limit] if row.score > 0)
        return [hit for hit in hits if hit.document_id in kept]


def is_fusion(request: models.QueryRequest) -> bool:
    """Whether the request makes one order of two sides."""
    return isinstance(request.query, models.FusionQuery)


def _filter(query: IndexQuery) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=field, match=models.MatchAny(any=values))
        for field, values in query.conditions().items()
    ]
    if query.document_ids is not None:
        must.append(models.HasIdCondition(has_id=list(dict.fromkeys(query.document_ids))))
    return models.Filter(must=must)


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
        cls, place: QdrantPlace, name: str, *, dimension: int, fingerprint: str
    ) -> "QdrantIndex":
        """Open the index in a collection, or make it. The caller closes it.

        Args:
            place: where, and how a new collection lies over the servers.
            name: of the index; the collection's has the place's prefix.
            dimension: length of the vectors.
            fingerprint: of the embedder, as `Embedder.fingerprint`.

        Raises:
            IndexModelMismatchError: when its vectors are of another model; nothing is changed.
            VectorIndexError: when it is not one of ours, or the server is too old or refuses.
            VectorIndexUnavailableError: when the server does not answer.
        """
        if place.api_key and place.url.startswith("http://"):
            log.warning("Qdrant's key is sent without TLS; use https outside of a private network")
        connection, collection = Connection(place), f"{place.prefix}-{name}"
        model: dict[str, Any] = {"dimension": dimension, "fingerprint": fingerprint}
        try:
            shards = await ensure_collection(connection, collection, place, **model)
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
        for batch in batches(list(last.values()), POINTS_PER_CALL):
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
        for batch in batches(document_ids, IDS_PER_CALL):
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
                [] if query.finds_nothing else self._maker.requests(query) for query in queries
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


async def delete_collection(place: QdrantPlace, name: str) -> None:
    """As `opening.destroy_index`."""
    connection, collection = Connection(place), f"{place.prefix}-{name}"
    try:
        with connection.doing(f"delete the collection {collection}") as client:
            if await client.collection_exists(collection):
                await client.delete_collection(collection)
    finally:
        await connection.close()


async def list_names(place: QdrantPlace) -> list[str]:
    """What follows the prefix in the names of all collections that have it."""
    connection, prefix = Connection(place), f"{place.prefix}-"
    try:
        with connection.doing("list the collections") as client:
            found = (await client.get_collections()).collections
    finally:
        await connection.close()
    return [each.name.removeprefix(prefix) for each in found if each.name.startswith(prefix)]
