"""The indexer: what is durable becomes usable, each execution exactly once.

Two kinds of durable queues. Those of the first are learned from: executions, outcomes, marks and
corrections become knowledge, statistics, health, documents and repairs, changed tools and
promotions become documents, committed in one transaction with the queues' new state, so that a
crash repeats at most an uncommitted batch. Those of the second follow in the vector index:
documents that are new get their vectors, those that are gone lose them (idempotent, ids come from
content). Profiles, repair rules, statistics and health need no vector, so they never wait for the
model.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from embeddings.protocol import Embedder
from embeddings.terms import terms_text
from ingest.batch import BatchMaterial, LearnedBatch, learn_batch, load_batch
from ingest.derived import derive_documents
from ingest.fitness import FitnessMaterial, LearnedFitness, learn_fitness
from ingest.fitness_loading import FitnessAtHand, load_fitness, load_marked
from ingest.health import HealthMaterial, LearnedHealth, learn_health
from ingest.health_loading import HealthAtHand, load_corrected, load_health, tie_corrections
from ingest.queue_worker import QueueWorker
from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit, ToolKey
from retrieval.documents import Document
from retrieval.index.protocol import IndexPoint, VectorIndex
from retrieval.knowledge import ToolKnowledge
from retrieval.memory import Memory

BATCH = 1000
"""Executions per transaction: enough to share the cost of a tool's knowledge among its calls."""
REGISTERED_BATCH = 250
"""Changed tools, and promotions, per transaction: they are large, and executions wait behind them.
"""
CORRECTED_BATCH = 100
"""Corrections per transaction: each brings its whole execution, which may be as large as a request.
"""
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
        on_axes: told a workspace when boundary axes were named in it, once that is durable.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        index: VectorIndex,
        embedder: Embedder,
        on_axes: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._embedder = embedder
        self._on_axes = on_axes
        self._knowledge: dict[ToolKey, ToolKnowledge] = {}
        self._fitness = FitnessAtHand()
        self._health = HealthAtHand()
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
        store = self._store
        marks = await store.pending_marks(BATCH)
        marked = await load_marked(marks, store)
        corrections = await store.pending_corrections(CORRECTED_BATCH)
        corrected = await load_corrected(corrections, store)
        executions = await store.pending(BATCH)
        # Outcomes come last: they speak of failures that must have been learned before.
        outcomes = [] if len(executions) >= BATCH else await store.pending_outcomes(BATCH)
        changed = await store.changed_tools(REGISTERED_BATCH)
        promotions = await store.pending_promotions(REGISTERED_BATCH)
        queues = (executions, outcomes, marks, corrections, changed, promotions)
        records = sum(len(queue) for queue in queues)
        if not records:
            return 0
        # Taken out while it is changed: when anything fails, it is read anew from the store.
        at_hand, self._knowledge = self._knowledge, {}
        fitness_at_hand, self._fitness = self._fitness, FitnessAtHand()
        health_at_hand, self._health = self._health, HealthAtHand()
        material = await load_batch(
            executions, outcomes, store=store, memory=self._memory, at_hand=at_hand
        )
        said = await tie_corrections(corrections, corrected, executions, store)
        health = await load_health(
            executions, said.tied, material.readings, [tool for tool, _ in marked],
            store=store, at_hand=health_at_hand,
        )  # fmt: skip
        fitness = await load_fitness(
            executions, marks, marked, health, store=store, at_hand=fitness_at_hand
        )
        learned, fared, felt = await asyncio.to_thread(_learn, material, fitness, health)
        derived = await derive_documents(changed, promotions, store=store)
        await store.add_outcomes(learned.reported)
        commit = IndexCommit(
            positions=[each.position for each in executions],
            knowledge=learned.knowledge_rows,
            documents=[*learned.document_rows, *fared.documents, *derived.rows],
            repairs=learned.repair_rows,
            outcomes=outcomes,
            statistics=fared.statistics,
            health=felt.rows,
            corrections=said.positions(),
            marks=[each.position for each in marks],
            changed_tools=[each.position for each in changed],
            promotions=[each.position for each in promotions],
            removed=[*fared.removed, *derived.removed],
        )
        # Shielded: a shutdown in the middle must not leave the caches behind the store.
        self._committing = asyncio.ensure_future(self._commit(commit))
        await asyncio.shield(self._committing)
        self._knowledge = dict(islice((material.knowledge | at_hand).items(), _MAX_AT_HAND))
        self._fitness = fitness_at_hand.after(fitness, fared.removed)
        self._health = health_at_hand.after(health)
        for workspace in felt.named_axes:
            self._on_axes(workspace)
        return records

    async def embed_step(self) -> int:
        """Bring one batch of documents into the index, or out of it.

        Returns how many, 0 when all have their vectors and nothing else has one.
        """
        gone = await self._store.removed_documents(BATCH)
        if gone:
            await self._index.delete([each.document_id for each in gone])
            await self._store.mark_removed(gone)
        rows = await self._store.pending_vectors(EMBED_BATCH)
        if not rows:
            return len(gone)
        documents = [Document.model_validate_json(row.data) for row in rows]
        vectors = await self._embedder.embed([each.text for each in documents], "document")
        points = [
            _point(row, document, vector)
            for row, document, vector in zip(rows, documents, vectors, strict=True)
        ]
        await self._index.upsert(points)
        await self._store.mark_embedded(rows)
        return len(rows) + len(gone)

    async def _commit(self, commit: IndexCommit) -> None:
        await self._store.commit_index(commit)
        self._memory.forget_knowledge([row.tool for row in commit.knowledge])
        self._memory.forget_statistics([row.tool for row in commit.statistics])
        self._memory.forget_health([row.tool for row in commit.health])
        changed = [(row.workspace, row.document_id) for row in commit.documents]
        self._memory.forget_documents([*changed, *commit.removed])
        if commit.removed or any(row.is_new for row in commit.documents):
            self._vectors.wake()


def _learn(
    material: BatchMaterial, fitness: FitnessMaterial, health: HealthMaterial
) -> tuple[LearnedBatch, LearnedFitness, LearnedHealth]:
    return learn_batch(material), learn_fitness(fitness), learn_health(health)


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
