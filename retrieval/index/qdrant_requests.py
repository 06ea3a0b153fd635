"""Questions as Qdrant's requests, and its answers as hits."""

from collections.abc import Sequence
from dataclasses import replace

from qdrant_client import models

from retrieval.index.fields import (
    DENSE,
    KIND,
    OF_A_HIT,
    SERVER,
    TERMS,
    TOOL,
    VERSION,
    WORKSPACE,
    idf_corpus,
    payload_of,
    prefetch_limit,
)
from retrieval.index.hits import to_hits, to_unfused
from retrieval.index.protocol import Hit, IndexPoint, IndexQuery
from retrieval.index.sparse import TermEncoder

OVERSAMPLING = 2.0
"""Candidates by int8, as a multiple of those asked for, of which the cosine is then taken."""

NEAREST = models.SearchParams(
    quantization=models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
)

EXACT = models.SearchParams(exact=True)
"""For scores of candidates that are found already."""


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
        only = _filter(query)
        vector = query.vector.tolist()
        encoded = self._terms.query(query.terms)
        if encoded is None:
            return [
                models.QueryRequest(
                    query=vector,
                    using=DENSE,
                    filter=only,
                    params=NEAREST,
                    limit=query.limit,
                    with_payload=OF_A_HIT,
                    with_vector=[DENSE],
                )
            ]
        terms = models.SparseVector(indices=encoded.indices, values=encoded.values)
        idf = _idf(query)
        count = prefetch_limit(query) if query.fused else query.limit
        sides = [
            models.Prefetch(query=vector, using=DENSE, filter=only, params=NEAREST, limit=count),
            models.Prefetch(query=terms, using=TERMS, filter=only, params=idf, limit=count),
        ]
        if query.fused:
            return [
                models.QueryRequest(
                    prefetch=sides,
                    query=models.FusionQuery(fusion=models.Fusion.DBSF),
                    limit=query.limit,
                    with_payload=OF_A_HIT,
                    with_vector=[DENSE],
                )
            ]
        # Every shard has its own best of each side: all are asked for, with both scores, and
        # `hits` keeps what is among the best of all shards.
        limit = 2 * query.limit * self._shards
        return [
            models.QueryRequest(
                prefetch=sides,
                query=vector,
                using=DENSE,
                params=EXACT,
                limit=limit,
                score_threshold=query.least_similarity,
                with_payload=OF_A_HIT,
            ),
            models.QueryRequest(
                prefetch=sides,
                query=terms,
                using=TERMS,
                params=idf,
                limit=limit,
                with_payload=False,
            ),
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


def nothing_fits(query: IndexQuery) -> bool:
    """Whether no document can be an answer, so that none need be asked for."""
    return (
        query.limit <= 0 or not query.workspaces or query.versions == () or query.document_ids == ()
    )


def _idf(query: IndexQuery) -> models.SearchParams | None:
    corpus = idf_corpus(query)
    if corpus is None:
        return None
    return models.SearchParams(idf=models.IdfCorpusParams(corpus=_filter(corpus)))


def _filter(query: IndexQuery) -> models.Filter:
    must: list[models.Condition] = [
        _any_of(WORKSPACE, query.workspaces),
        _is(KIND, query.kind),
    ]
    if query.tool_name is not None:
        must.append(_is(TOOL, query.tool_name))
    if query.server_name is not None:
        must.append(_is(SERVER, query.server_name))
    if query.versions is not None:
        must.append(_any_of(VERSION, query.versions))
    if query.document_ids is not None:
        must.append(models.HasIdCondition(has_id=list(dict.fromkeys(query.document_ids))))
    return models.Filter(must=must)


def _is(field: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def _any_of(field: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))
