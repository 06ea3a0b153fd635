"""The indexer: what is durable becomes usable, each execution exactly once.

The queue is a state on the record. A batch is learned from, its new documents are put into the
vector index (idempotent: ids come from content), and then knowledge, documents and the records'
new state are committed in one transaction. A crash before the commit repeats the batch; a crash
after it repeats nothing.
"""

import asyncio
import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from embeddings.protocol import Embedder, EmbeddingError
from embeddings.terms import terms_text
from ingest.batch import LearnedBatch, learn_batch, load_batch
from mongo.errors import StoreError
from mongo.protocol import LogStore
from mongo.records import IndexCommit, StoredExecution, SuggestionOutcome
from retrieval.documents import Document
from retrieval.index.protocol import IndexPoint, VectorIndex, VectorIndexError
from retrieval.memory import Memory

BATCH = 500
"""Executions per transaction: large enough to share an fsync, small enough to stay under 0.2 s."""
_RETRY_S = 1.0

log = logging.getLogger("aftercall.indexer")


class Indexer:
    """Works off the durable queue; one per log store.

    Args:
        store: the queue and the place of what is learned.
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
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem: str | None = None

    @property
    def problem(self) -> str | None:
        """Why indexing stands still; None while all is well."""
        return self._problem

    def start(self) -> None:
        """Begin to work off the queue in the background."""
        self._work.set()
        self._task = asyncio.create_task(self._run(), name="indexer")

    def wake(self) -> None:
        """Say that there is something new in the queue."""
        self._idle.clear()
        self._work.set()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until the queue is empty; False when it is not within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Stop after the batch at hand; what is left stays in the queue."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def run_until_empty(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Work off the whole queue in the foreground; returns how many records that were.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: what stopped it; it can be run again.
        """
        done = 0
        while count := await self.step():
            done += count
            if on_progress:
                on_progress(done)
        return done

    async def step(self) -> int:
        """Learn from one batch; returns how many records it had, 0 when the queue is empty."""
        executions = await self._store.pending(BATCH)
        # Outcomes come last: they speak of failures that must have been learned before.
        outcomes = [] if len(executions) >= BATCH else await self._store.pending_outcomes(BATCH)
        if not executions and not outcomes:
            return 0
        await self._index_batch(executions, outcomes)
        return len(executions) + len(outcomes)

    async def _run(self) -> None:
        while True:
            try:
                self._work.clear()
                if not await self.step() and not self._work.is_set():
                    self._idle.set()
                    await self._work.wait()
                self._problem = None
            except (StoreError, VectorIndexError, EmbeddingError) as error:
                self._problem = str(error)
                log.error("indexing stands still and will be tried again: %s", error)  # noqa: TRY400 - an operator's matter, not a bug
                await asyncio.sleep(_RETRY_S)
            except Exception:
                self._problem = "an internal error; see the log"
                log.exception("indexing failed and will be tried again")
                await asyncio.sleep(_RETRY_S)

    async def _index_batch(
        self, executions: list[StoredExecution], outcomes: list[SuggestionOutcome]
    ) -> None:
        material = await load_batch(executions, outcomes, store=self._store, memory=self._memory)
        learned = await asyncio.to_thread(learn_batch, material)
        await self._embed(learned)
        await self._store.add_outcomes(learned.reported)
        commit = IndexCommit(
            positions=[each.position for each in executions],
            knowledge=learned.knowledge_rows,
            documents=learned.document_rows,
            repairs=learned.repair_rows,
            outcomes=outcomes,
        )
        # Shielded: a shutdown in the middle must not leave the caches behind the store.
        await asyncio.shield(self._commit(commit))
        if learned.reported:
            self._work.set()

    async def _commit(self, commit: IndexCommit) -> None:
        await self._store.commit_index(commit)
        self._memory.forget_knowledge([row.tool for row in commit.knowledge])
        self._memory.forget_documents(
            [(row.workspace, row.document_id) for row in commit.documents]
        )

    async def _embed(self, learned: LearnedBatch) -> None:
        new = learned.new_documents
        if not new:
            return
        vectors = await self._embedder.embed([document.text for _, document in new], "document")
        points = [
            _point(workspace, document, vector)
            for (workspace, document), vector in zip(new, vectors, strict=True)
        ]
        await self._index.upsert(points)


def _point(workspace: str, document: Document, vector: NDArray[np.float32]) -> IndexPoint:
    return IndexPoint(
        document_id=document.document_id,
        workspace=workspace,
        kind=document.kind,
        server_name=document.server_name,
        tool_name=document.tool_name,
        vector=vector,
        terms=terms_text(document.text),
    )
