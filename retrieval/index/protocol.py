"""The vector index's protocol: dense vectors and sparse terms over the same documents.

Below it stands what both engines share: vectors that are refused before an engine sees them (it may
keep such a point and never find it), the names of vectors and fields, BM25's term frequencies, and
how rows become hits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import qdrant_edge as qdrant
from numpy.typing import NDArray

from retrieval.knowledge.rows.documents import Kind

UNIT_TOLERANCE = 1e-3
"""Half precision keeps a vector's length to that."""
AVERAGE_TERMS = 40.0
"""Terms of a usual document, for BM25's length normalisation."""
DENSE, TERMS = "dense", "terms"
"""The names of a document's vectors."""
WORKSPACE, KIND, TOOL, SERVER = "workspace", "kind", "tool_name", "server_name"
VERSION = "version"
OF_A_HIT = [TOOL, SERVER, VERSION]
"""Fields of the payload that a hit repeats."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EdgePlace:
    """Embedded indexes, each in a folder of this one, for one process."""

    folder: Path
    owner: str = ""
    """The id of the log store whose indexes are meant; another store's are refused."""


@dataclass(frozen=True, slots=True)
class QdrantPlace:
    """Collections on a Qdrant server; shown without key and address, which may hold a password."""

    url: str = field(repr=False)
    """`http://host:port`, `https://...` for TLS, or `local:DIR` for the client's own slow store."""
    owner: str = ""
    """As of `EdgePlace`."""
    api_key: str | None = field(default=None, repr=False)
    grpc_port: int = 6334
    prefix: str = "aftercall"
    """What the collections' names begin with, before a hyphen."""
    shards: int = 1
    replicas: int = 1
    write_consistency: int = 1
    timeout_s: float = 20.0


IndexPlace = EdgePlace | QdrantPlace


class VectorIndexError(Exception):
    """The index cannot do it; the message names the cure."""


class IndexModelMismatchError(VectorIndexError):
    """The vectors were made by another model; the cure is `aftercall rebuild`."""


class IndexInUseError(VectorIndexError):
    """Another process has the index open."""


class IndexOfAnotherStoreError(VectorIndexError):
    """The index belongs to another log store; it was left as it is."""


class IndexMissingError(VectorIndexError):
    """The index was deleted while it was in use; the cure is `aftercall rebuild`."""


class VectorIndexUnavailableError(VectorIndexError):
    """The server of the index does not answer, or not in time; trying again later may help."""


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """A document to index: a UUID, a vector of unit length, and `terms`, identifiers split."""

    document_id: str
    workspace: str
    kind: Kind
    server_name: str | None
    tool_name: str | None
    vector: NDArray[np.float32]
    terms: str
    version: str = ""
    """Of the tool that the document is about; empty where none is known."""


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A question to the index.

    Only documents of `workspaces` and `kind` are seen; of `tool_name` (and `server_name`) too, when
    given. The answer holds the nearest `limit`; with `terms` also the best `limit` by BM25, so up
    to twice as many. Which of them are better is for those to say who ask.
    """

    workspaces: tuple[str, ...]
    kind: Kind
    vector: NDArray[np.float32]
    terms: str
    limit: int
    tool_name: str | None = None
    server_name: str | None = None
    tools: tuple[tuple[str, str], ...] | None = None
    """Only documents of these servers and names, '' for no server; None for any. With two servers
    the tools of the other's names may be found too."""
    document_ids: tuple[str, ...] | None = None
    """Only these documents: how near are they? None for any. Ids that are none find nothing."""
    least_similarity: float | None = None
    """Only documents with at least this cosine; None for any. Farther ones are not even looked up,
    which takes a third of the time."""

    @property
    def finds_nothing(self) -> bool:
        """Return whether no document can be an answer, so that none need be asked for."""
        return self.limit <= 0 or not self.workspaces or () in (self.document_ids, self.tools)

    def field_conditions(self) -> dict[str, list[str]]:
        """Return the values that each field of the payload may have."""
        given = {
            WORKSPACE: self.workspaces,
            KIND: (self.kind,),
            TOOL: None if self.tool_name is None else (self.tool_name,),
            SERVER: None if self.server_name is None else (self.server_name,),
        }
        if self.tools is not None:
            given[SERVER] = tuple({server for server, _ in self.tools})
            given[TOOL] = tuple({name for _, name in self.tools})
        return {field: list(values) for field, values in given.items() if values is not None}

    def idf_corpus(self) -> "IndexQuery":
        """Return the question whose filter selects what the IDF is counted over.

        All of the kind.
        """
        return IndexQuery(self.workspaces, self.kind, self.vector, self.terms, self.limit)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found: BM25's `score` (0: no common term), the cosine `similarity`, -1 to 1."""

    document_id: str
    score: float
    similarity: float
    tool_name: str | None = None
    server_name: str | None = None
    version: str = ""


class VectorIndex(Protocol):
    """Documents by nearness. Methods may run at once, block nothing, raise `VectorIndexError`."""

    @property
    def name(self) -> str:
        """Return what `/status` calls this index, such as `qdrant-edge`."""
        ...

    async def upsert_points(self, points: Sequence[IndexPoint]) -> None:
        """Insert documents or replace those of the same id; durable when this returns."""
        ...

    async def delete(self, document_ids: Sequence[str]) -> None:
        """Remove documents; an unknown id is no error."""
        ...

    async def search_points(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """Answers to several questions at once, in order, each nearest first, ties by id."""
        ...

    async def count_points(self) -> int:
        """Return how many documents there are."""
        ...

    async def close(self) -> None:
        """Flush and release everything; closing twice does nothing."""
        ...


def check_model(made_by: tuple[str, int], configured: tuple[str, int], *, where: str) -> None:
    """Raises `IndexModelMismatchError` unless both models, with their dimensions, are the same."""
    if made_by != configured:
        raise IndexModelMismatchError(
            f"the vectors in {where} are of the model {made_by[0]} ({made_by[1]} dimensions), the "
            f"configured one is {configured[0]} ({configured[1]}): configure the former, or make "
            "the vectors anew with `aftercall rebuild`"
        )


def check_owner(made_for: object, owner: str, *, what: str, cure: str) -> None:
    """Raises `IndexOfAnotherStoreError` unless an index is of the log store `owner`.

    `made_for` is what the index states of itself; `cure` names the setting that parts the two.
    """
    if made_for != owner:
        raise IndexOfAnotherStoreError(
            f"{what} of the log store {made_for}, and this one is {owner}: nothing of it was "
            f"changed. {cure}"
        )


def check_vector(vector: np.ndarray[Any, Any], dimension: int) -> None:
    """Raises `VectorIndexError` unless the vector has the shape (dimension,) and unit length."""
    if vector.shape != (dimension,):
        raise VectorIndexError(
            f"a vector has the shape {vector.shape}, the index takes ({dimension},); "
            "embed with the model of the index"
        )
    length = float(np.linalg.norm(vector))
    if not abs(length - 1.0) < UNIT_TOLERANCE:  # also refuses NaN and infinities
        raise VectorIndexError(f"a vector has the length {length:.4g}; divide it by that")


def make_batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most so many."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def payload_of(point: IndexPoint) -> dict[str, str]:
    """Return the payload of a document.

    '' is "none", since a missing field would match no filter.
    """
    return {
        WORKSPACE: point.workspace,
        KIND: point.kind,
        TOOL: point.tool_name or "",
        SERVER: point.server_name or "",
        VERSION: point.version,
    }


class TermEncoder:
    """Texts as sparse vectors: `indices` are hashes of stems, `values` their weights.

    The embedded engine's own BM25 makes them for every index, in this process and without a model.
    The index adds the other half, the inverse document frequency (its IDF modifier).
    """

    def __init__(self) -> None:
        # English stemming and stop words: on questions in prose they raise hit@5 of BM25 from 0.47
        # to 0.62 (400 of MetaTool's queries), on identifiers they cost nothing (Seal-Tools: 0.994
        # and 0.993). The text is split already (`embeddings.text`), so white space is all that
        # separates terms, and whole identifiers stay whole.
        config = qdrant.Bm25Config(
            tokenizer=qdrant.TokenizerType.Whitespace, language="english", avg_len=AVERAGE_TERMS
        )
        self._bm25 = qdrant.Bm25(config)

    def encode_document(self, terms: str) -> Any | None:
        """Return a `qdrant_edge.SparseVector`.

        None where no term is left, as of stop words alone.
        """
        vector = self._bm25.embed_document(terms)
        return vector if vector.indices else None

    def encode_query(self, terms: str) -> Any | None:
        """Return every term once, with the weight 1; None where no term is left."""
        vector = self._bm25.embed_query(terms)
        return vector if vector.indices else None


def to_hits(query: IndexQuery, nearest: Sequence[Any], by_terms: Sequence[Any] = ()) -> list[Hit]:
    """Rows (`id`, `score`, `payload`) as hits: with their cosines, and with BM25's scores."""
    terms = {row.id: row.score for row in by_terms}
    least = -1.0 if query.least_similarity is None else query.least_similarity
    hits = [
        Hit(
            document_id=str(row.id),
            score=terms.get(row.id, 0.0),
            # The lengths of vectors in half precision are off by 1e-4.
            similarity=min(1.0, max(-1.0, row.score)),
            tool_name=row.payload[TOOL] or None,
            server_name=row.payload[SERVER] or None,
            version=row.payload[VERSION],
        )
        for row in nearest
        if row.score >= least
    ]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.document_id))
