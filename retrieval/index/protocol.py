"""The vector index's protocol: dense vectors and sparse terms over the same documents, fused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["success", "reflection", "tool", "scenario", "evolution"]
"""What a document is about: a shape of successful calls, a pattern of failures, a registered tool,
what a tool was used for, or why a tool was evolved."""

SEED_WORKSPACE = "@seed"
"""Where the shipped corpus lives. No tenant: every workspace may read it, none is written to it."""


class VectorIndexError(Exception):
    """The index cannot do it; the message names the cure."""


class IndexModelMismatchError(VectorIndexError):
    """The vectors were made by another model; the cure is `aftercall rebuild`."""


class IndexInUseError(VectorIndexError):
    """Another process has the index open."""


class VectorIndexUnavailableError(VectorIndexError):
    """The server of the index does not answer, or not in time; trying again later may help."""


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """A document to index. `document_id` is a UUID; `vector` has unit length.

    `terms` is the text for the sparse side, identifiers already split (see `embeddings.terms`).
    """

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
    given. `terms` empty means dense only.
    """

    workspaces: tuple[str, ...]
    kind: Kind
    vector: NDArray[np.float32]
    terms: str
    limit: int
    tool_name: str | None = None
    server_name: str | None = None
    versions: tuple[str, ...] | None = None
    """Only documents of these versions; None for any."""
    document_ids: tuple[str, ...] | None = None
    """Only these documents: how near are they? None for any. Ids that are none find nothing."""
    least_similarity: float | None = None
    """Only those of the answer's documents that have at least this cosine; None for any. Where the
    answer is not fused, what is far is not even looked up, which takes a third of the time."""
    fused: bool = True
    """Whether the index makes one order of both sides. If not, the answer holds the best `limit` of
    each side, so up to twice as many, every one with its cosine and its BM25 score, by cosine: for
    who fuses by a rule of its own."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found. `score` orders hits of one query (higher is nearer); it is no probability.

    `similarity` is the cosine of the dense vectors, -1 to 1, whatever the fusion said. Where the
    question was not to be fused, `score` is BM25's: 0 for a document that shares no term with it.
    """

    document_id: str
    workspace: str
    score: float
    similarity: float
    tool_name: str | None = None
    server_name: str | None = None
    version: str = ""


class VectorIndex(Protocol):
    """Documents by nearness. Every method may be called concurrently and never blocks the loop.

    Every method raises `VectorIndexError` and nothing else when the index cannot do it.
    """

    @property
    def name(self) -> str:
        """What `/status` calls this index, such as `qdrant-edge`."""
        ...

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        """Insert documents or replace those of the same id; durable when this returns."""
        ...

    async def delete(self, document_ids: Sequence[str]) -> None:
        """Remove documents; an unknown id is no error."""
        ...

    async def search(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """Answers to several questions at once, in order, each best first."""
        ...

    async def count(self) -> int:
        """How many documents there are."""
        ...

    async def close(self) -> None:
        """Flush and release everything; closing twice does nothing."""
        ...
