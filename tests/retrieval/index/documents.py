"""Points and questions for the index's tests, embedded by hashing."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from embeddings.embedders import hashed_vector
from embeddings.text import terms_text
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import Hit, IndexPoint, IndexQuery, VectorIndex
from retrieval.knowledge.rows.documents import Kind

DIMENSION = 96


def document_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def point(
    name: str,
    text: str | None = None,
    *,
    workspace: str = "default",
    kind: Kind = "success",
    tool_name: str | None = "search",
    server_name: str | None = None,
    terms: str | None = None,
    version: str = "",
) -> IndexPoint:
    """A point whose vector and terms are of the text, which is the name unless given."""
    text = name if text is None else text
    return IndexPoint(
        document_id=document_id(name),
        workspace=workspace,
        kind=kind,
        server_name=server_name,
        tool_name=tool_name,
        vector=hashed_vector(text, DIMENSION),
        terms=terms_text(text) if terms is None else terms,
        version=version,
    )


def question(
    text: str,
    *,
    workspaces: tuple[str, ...] = ("default",),
    kind: Kind = "success",
    limit: int = 10,
    tool_name: str | None = None,
    server_name: str | None = None,
    terms: str | None = None,
    document_ids: tuple[str, ...] | None = None,
) -> IndexQuery:
    return IndexQuery(
        workspaces=workspaces,
        kind=kind,
        vector=hashed_vector(text, DIMENSION),
        terms=terms_text(text) if terms is None else terms,
        limit=limit,
        tool_name=tool_name,
        server_name=server_name,
        document_ids=document_ids,
    )


async def open_edge(folder: Path) -> EdgeIndex:
    return await EdgeIndex.open(folder, dimension=DIMENSION, fingerprint="hashing-1@96")


def shards(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("shard-*"))


def uses(index: VectorIndex) -> list[Callable[[], Awaitable[object]]]:
    """Every call that an index takes."""
    return [
        lambda: index.upsert_points([point("a")]), lambda: index.delete([document_id("a")]),
        lambda: index.search_points([question("a")]), index.count_points,
    ]  # fmt: skip


def nearly(hits: list[Hit], tolerance: float = 1e-6) -> list[Hit]:
    """Hits that equal these where the scores differ by rounding only."""
    return [
        replace(
            hit,
            score=pytest.approx(hit.score, abs=tolerance),
            similarity=pytest.approx(hit.similarity, abs=tolerance),
        )
        for hit in hits
    ]
