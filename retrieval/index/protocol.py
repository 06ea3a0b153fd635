"""The vector index's protocol: dense vectors and sparse terms over the same documents, fused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Kind = Literal["success", "reflection"]
"""What a document is about: a shape of successful calls, or a pattern of failures."""

SEED_WORKSPACE = "@seed"
"""Where the shipped corpus lives. No tenant: every workspace may read it, none is written to it."""


class VectorIndexError(Exception):
    """The index cannot do it; the message names the cure."""


class IndexModelMismatchError(VectorIndexError):
    """The vectors were made by another model; the cure is `aftercall rebuild`."""


class IndexInUseError(VectorIndexError):
    """Another process has the index open."""


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


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found. `score` orders hits of one query (higher is nearer); it is no probability.

    `similarity` is the cosine of the dense vectors, -1 to 1, whatever the fusion said.
    """

    document_id: str
    workspace: str
    score: float
    similarity: float


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
