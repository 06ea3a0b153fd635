"""The indexer: what is durable becomes usable, each execution exactly once.

Two durable queues. The first learns: executions and outcomes become knowledge, documents and
repairs, committed in one transaction with the queue's new state, so that a crash repeats at most
an uncommitted batch. The second embeds: documents that are new get their vectors (idempotent, ids
come from content). Profiles and repair rules need no vector, so they never wait for the model.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from embeddings.protocol import Embedder
from embeddings.terms import terms_text
from ingest.batch import learn_batch, load_batch
from ingest.queue_worker import QueueWorker
from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit, ToolKey
from retrieval.documents import Document
from retrieval.index.protocol import IndexPoint, VectorIndex
from retrieval.knowledge import ToolKnowledge
from retrieval.memory import Memory

BATCH = 1000
"""Executions per transaction: enough to share the cost of a tool's knowledge among its calls."""
EMBED_BATCH = 64
"""Documents per round of the model: a fraction of a second, so that few wait for many."""
_MAX_AT_HAND = 1_000
"""Tools whose knowledge is kept decoded between batches; the most recent ones."""


class Indexer:
    """Works off the durable queues; one per log store.

    Args:
        store: the queues and the place of what is learned.
        memory: told what has changed.
        index: gets the vectors of new documents.
        embedder: makes them.
    """

    def __init__(
        self, *, store: LogStore, memory: Memory, index: VectorIndex, embedder: Embedder
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._embedder = embedder
        self._knowledge: dict[ToolKey, ToolKnowledge] = {}
        self._committing: asyncio.Future[None] | None = None
        self._learner = QueueWorker("learning", self.learn_step)
        self._vectors = QueueWorker("embedding", self.embed_step)

    @property
    def problem(self) -> str | None:
        """Why indexing stands still; None while all is well."""
        return self._learner.problem or self._vectors.problem

    def start(self) -> None:
        """Begin to work off the queues in the background."""
        self._learner.start()
        self._vectors.start()

    def wake(self) -> None:
        """Say that something new was stored."""
        self._learner.wake()

    async def close(self) -> None:
        """Stop after the step at hand; what is left stays in the queues."""
        await self._learner.close()
        if self._committing is not None:
            # It goes on when the learner is stopped in the middle; the store is closed after us.
            await asyncio.wait([self._committing])
        await self._vectors.close()

    async def run_until_empty(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Work off both queues in the foreground; returns how many records were learned from.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: what stopped it; it can be run again.
        """
        done = 0
        while True:
            learned = await self.learn_step()
            done += learned
            if on_progress:
                on_progress(done)
            if not learned and not await self.embed_step():
                return done

    async def learn_step(self) -> int:
        """Learn from one batch; returns how many records it had, 0 when there are none."""
        executions = await self._store.pending(BATCH)
        # Outcomes come last: they speak of failures that must have been learned before.
        outcomes = [] if len(executions) >= BATCH else await self._store.pending_outcomes(BATCH)
        if not executions and not outcomes:
            return 0
        # Taken out while it is changed: when anything fails, it is read anew from the store.
        at_hand, self._knowledge = self._knowledge, {}
        material = await load_batch(
            executions, outcomes, store=self._store, memory=self._memory, at_hand=at_hand
        )
        learned = await asyncio.to_thread(learn_batch, material)
        await self._store.add_outcomes(learned.reported)
        commit = IndexCommit(
            positions=[each.position for each in executions],
            knowledge=learned.knowledge_rows,
            documents=learned.document_rows,
            repairs=learned.repair_rows,
            outcomes=outcomes,
        )
        # Shielded: a shutdown in the middle must not leave the caches behind the store.
        self._committing = asyncio.ensure_future(self._commit(commit))
        await asyncio.shield(self._committing)
        self._knowledge = dict(islice((material.knowledge | at_hand).items(), _MAX_AT_HAND))
        return len(executions) + len(outcomes)

    async def embed_step(self) -> int:
        """Embed one batch of new documents; returns how many, 0 when all have their vectors."""
        rows = await self._store.pending_vectors(EMBED_BATCH)
        if not rows:
            return 0
        documents = [Document.model_validate_json(row.data) for row in rows]
        vectors = await self._embedder.embed([each.text for each in documents], "document")
        points = [
            _point(row, document, vector)
            for row, document, vector in zip(rows, documents, vectors, strict=True)
        ]
        await self._index.upsert(points)
        await self._store.mark_embedded(rows)
        return len(rows)

    async def _commit(self, commit: IndexCommit) -> None:
        await self._store.commit_index(commit)
        self._memory.forget_knowledge([row.tool for row in commit.knowledge])
        self._memory.forget_documents(
            [(row.workspace, row.document_id) for row in commit.documents]
        )
        if any(row.is_new for row in commit.documents):
            self._vectors.wake()


def _point(row: DocumentRow, document: Document, vector: NDArray[np.float32]) -> IndexPoint:
    return IndexPoint(
        document_id=document.document_id,
        workspace=row.workspace,
        kind=document.kind,
        server_name=document.server_name,
        tool_name=document.tool_name,
        vector=vector,
        terms=terms_text(document.text),
    )
