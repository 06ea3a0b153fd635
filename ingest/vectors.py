"""The vectors: documents that are new get them, those that are gone lose them.

Idempotent, for the ids of documents come from their content. Only under the workspace's lease, and
only while the index has the vectors of the generation that holds.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aftercall.stages import stage
from embeddings.protocol import Embedder
from embeddings.text import terms_text
from ingest.claims import Claims
from mongo.protocol import LogStore
from mongo.records import DocumentRow, Lease
from retrieval.index.protocol import IndexPoint, VectorIndex
from retrieval.knowledge.documents import Document

REMOVED_BATCH = 1000
"""Documents that are taken out of the index at once."""
EMBED_BATCH = 64
"""Documents per round of the model: a fraction of a second, so that few wait for many."""


class VectorKeeper:
    """Brings the index to what is stored, a batch of one workspace at a time.

    Args:
        store: the queues of documents.
        index: gets the vectors.
        embedder: makes them.
        claims: which workspaces it may work on.
    """

    def __init__(
        self, *, store: LogStore, index: VectorIndex, embedder: Embedder, claims: Claims
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._claims = claims
        self._generation: int | None = None
        """That whose vectors the index has."""

    def switched(self, generation: int) -> None:
        """The index has the vectors of this generation from now on."""
        self._generation = generation

    async def step(self, workspace: str) -> int:
        """One batch into the index, and one out of it; how many documents, 0 when none waits.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: it can be done again.
        """
        async with self._claims.using(workspace) as lease:
            if lease is None or not await self._is_index_current():
                return 0
            gone = await self._store.removed_documents(workspace, REMOVED_BATCH)
            if gone:
                removed = [each.document_id for each in gone]
                await self._index.delete(removed)
                await self._mend(workspace, lease, dict.fromkeys(removed))
                await self._store.mark_removed(gone)
            rows = await self._store.pending_vectors(workspace, EMBED_BATCH)
            if rows:
                with stage("indexer.embed") as noted:
                    noted.note(documents=len(rows))
                    await self._upsert(rows)
                await self._mend(workspace, lease, {row.document_id: row.data for row in rows})
                await self._store.mark_embedded(rows)
            return len(rows) + len(gone)

    async def _is_index_current(self) -> bool:
        """Whether the index has the vectors of what is stored; not before a switch was noticed."""
        generation = await self._store.generation()
        if self._generation is None:
            self._generation = generation
        return generation == self._generation

    async def _upsert(self, rows: Sequence[DocumentRow]) -> None:
        documents = [Document.model_validate_json(row.data) for row in rows]
        vectors = await self._embedder.embed([each.text for each in documents], "document")
        points = [
            _point(row, document, vector)
            for row, document, vector in zip(rows, documents, vectors, strict=True)
        ]
        await self._index.upsert(points)

    async def _mend(self, workspace: str, lease: Lease, written: dict[str, bytes | None]) -> None:
        """Undo what was written into the index too late, after another process had gone on.

        The index knows no leases. Whoever was stopped in the middle may have put an old text in the
        place of a newer one; it sees so afterwards, and writes what is stored now, until it is so.
        """
        while written and not self._claims.is_held(lease):
            stored = {
                row.document_id: row
                for row in await self._store.get_documents(workspace, list(written))
            }
            changed = {
                each: stored.get(each) for each, data in written.items()
                if data != (stored[each].data if each in stored else None)
            }  # fmt: skip
            await self._index.delete([each for each, row in changed.items() if row is None])
            there = [row for row in changed.values() if row is not None]
            if there:
                await self._upsert(there)
            written = {each: row.data if row else None for each, row in changed.items()}


def _point(row: DocumentRow, document: Document, vector: NDArray[np.float32]) -> IndexPoint:
    return IndexPoint(
        document_id=document.document_id,
        workspace=row.workspace,
        kind=document.kind,
        server_name=document.server_name,
        tool_name=document.tool_name,
        vector=vector,
        terms=terms_text(document.text) if document.terms is None else document.terms,
        version=document.version,
    )
