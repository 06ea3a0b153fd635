"""The indexer: what is durable becomes usable, each execution exactly once.

Two kinds of durable queues, one set for each workspace. Those of the first are learned from:
executions, outcomes, marks and corrections become knowledge, statistics, health, documents and
repairs, changed tools and promotions become documents, committed at once with the queues' new
state, so that a crash repeats at most an uncommitted batch. Those of the second follow in the
vector index: documents that are new get their vectors, those that are gone lose them (idempotent,
ids come from content). Profiles, repair rules, statistics and health need no vector, so they never
wait for the model.

Several processes may do so on one store. A workspace is read and learned under its lease only
(`ingest.claims`), and a commit of one who lost it is refused by the store.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice

from aftercall.stages import stage
from embeddings.protocol import Embedder
from ingest.at_hand import MAX_TOOLS, AtHand, Conditions, Hands
from ingest.batch import BatchMaterial, LearnedBatch, learn_batch, learned_to, load_batch
from ingest.claims import Claims
from ingest.derived import derive_documents
from ingest.fitness import FitnessMaterial, LearnedFitness, learn_fitness
from ingest.fitness_loading import load_fitness, load_marked
from ingest.health import HealthMaterial, LearnedHealth, learn_health
from ingest.health_loading import load_corrected, load_health, tie_corrections
from ingest.queue_worker import QueueWorker
from ingest.vectors import VectorKeeper
from mongo.errors import StoreError, StoreFencedError
from mongo.protocol import LogStore
from mongo.records import IndexCommit, Lease
from retrieval.index.protocol import VectorIndex
from retrieval.memory import Memory

BATCH = 1000
"""Executions per commit: enough to share the cost of a tool's knowledge among its calls."""
REGISTERED_BATCH = 250
"""Changed tools, and promotions, per commit: they are large, and executions wait behind them."""
CORRECTED_BATCH = 100
"""Corrections per commit: each brings its whole execution, which may be as large as a request."""
SHARED_POLL_S = 0.25
"""How often it is looked for executions that other processes stored."""
POLL_S = 1.0
"""The same where nobody else stores anything, but for what a nightly run queues."""
_LOOK_S = 2.0
"""How often the other queues are looked at where nobody wakes us: what others put into those is
learned by themselves, unless we have the workspace."""
_LEASE_S = 15.0
_PAUSE_S = 0.1
_SETTLED_S = 1.0
"""A store may say up to half a second late that a workspace has work."""
_TRICKLE = 100
_TRICKLE_S = 10.0
"""Fewer than so many items queued for so long: they are new ones."""

log = logging.getLogger("aftercall.indexer")


class Indexer:
    """Works off the durable queues; one per process and log store.

    Args:
        store: the queues and the place of what is learned.
        memory: told what has changed.
        index: gets the vectors of new documents.
        embedder: makes them.
        on_axes: told a workspace when boundary axes were named in it, once that is durable.
        claims: which workspaces it may work on; closed by who made it. Without it there is one for
            a store that no other process learns into.
        poll: seconds after which it is looked again without being woken.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        index: VectorIndex,
        embedder: Embedder,
        on_axes: Callable[[str], None] = lambda _: None,
        claims: Claims | None = None,
        poll: float = POLL_S,
    ) -> None:
        self._store = store
        self._memory = memory
        self._on_axes = on_axes
        self._own_claims = claims is None
        self._claims = claims or Claims(store, ttl=_LEASE_S, is_shared=False)
        self._hands = Hands()
        self._vectors = VectorKeeper(
            store=store, index=index, embedder=embedder, claims=self._claims
        )
        self._committing: asyncio.Future[None] | None = None
        self._learner = QueueWorker(
            "learning",
            queued=store.queued_workspaces,
            step=self._learn,
            after=self._after_learning,
            poll=poll,
            glance=store.has_arrivals,
            look=_LOOK_S,
        )
        self._embedding = QueueWorker(
            "embedding", queued=store.queued_workspaces, step=self._vectors.step, after=_nothing
        )

    @property
    def problem(self) -> str | None:
        """Why indexing stands still; None while all is well."""
        return self._learner.problem or self._embedding.problem

    def start(self) -> None:
        """Begin to work off the queues in the background."""
        self._learner.start()
        self._embedding.start()

    def wake(self) -> None:
        """Say that something new was stored."""
        self._learner.wake()

    def switched(self, generation: int) -> None:
        """What was learned is another one's, and the index has the vectors of this generation."""
        self._vectors.switched(generation)
        self._hands.drop()
        self._learner.wake()

    async def close(self) -> None:
        """Stop after the step at hand; what is left stays in the queues."""
        await self._learner.close()
        if self._committing is not None:
            # It goes on when the learner is stopped in the middle; the store is closed after us.
            await asyncio.wait([self._committing])
        await self._embedding.close()
        if self._own_claims:
            await self._claims.close()

    async def run_until_empty(self, on_progress: Callable[[int], None] | None = None) -> int:
        """Work off both queues in the foreground; returns how many records were learned from.

        What other processes that live have in their hands is left to them. Where new records come
        all the time, it ends soon after what was there at first is done.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: what stopped it; it can be run again.
        """
        there = (await self._store.counts()).pending
        settled, caught_up = _Since(_SETTLED_S), _Since(_TRICKLE_S)
        done = worked = 0
        try:
            while True:
                learned = await self.learn_step()
                embedded = await self.embed_step()
                done, worked = done + learned, worked + learned + embedded
                if on_progress:
                    on_progress(done)
                is_idle = not learned and not embedded and not await self._is_kept_waiting()
                if worked < there and not is_idle:
                    continue  # counting takes a while on some stores, and cannot end it yet
                left = (await self._store.counts()).pending
                if caught_up.lasts(worked >= there and left < _TRICKLE):
                    return done
                if settled.lasts(is_idle) or (is_idle and not left):
                    return done
                if is_idle:
                    await asyncio.sleep(_PAUSE_S)
        finally:
            await self._claims.give_back_all()

    async def learn_step(self) -> int:
        """Learn from one batch of each workspace; returns how many records, 0 when there are none.

        Raises:
            StoreError: what went wrong in one of them; it can be done again.
        """
        return await self._learner.round()

    async def embed_step(self) -> int:
        """Bring one batch of documents of each workspace into the index, or out of it.

        Returns how many, 0 when all have their vectors and nothing else has one.

        Raises:
            StoreError, VectorIndexError, EmbeddingError: what went wrong in one of them; it can be
                done again.
        """
        return await self._embedding.round()

    async def _is_kept_waiting(self) -> bool:
        """Whether somebody has a workspace with work of whom it is not known yet that it lives."""
        for workspace in await self._store.queued_workspaces():
            is_ours = await self._claims.claim(workspace) is not None
            if not is_ours and not self._claims.is_in_living_hands(workspace):
                await asyncio.sleep(_PAUSE_S)
                return True
        return False

    async def _learn(self, workspace: str) -> int:
        async with self._claims.using(workspace) as lease:
            if lease is None:
                return 0
            try:
                with ExitStack() as measured:
                    return await self._learn_batch(workspace, lease, measured)
            except StoreFencedError as error:
                log.info("workspace %s is read anew: %s", workspace, error)
                self._claims.doubt(workspace)
                self._learner.wake()
                return 0
            except BaseException:
                # Whether a commit came through is not known: taking the lease anew settles it.
                self._claims.doubt(workspace)
                raise

    async def _learn_batch(self, workspace: str, lease: Lease, measured: ExitStack) -> int:
        store = self._store
        conditions = Conditions(await store.generation(), self._claims.held_since(workspace))
        marks = await store.pending_marks(workspace, BATCH)
        marked = await load_marked(marks, store)
        corrections = await store.pending_corrections(workspace, CORRECTED_BATCH)
        corrected = await load_corrected(corrections, store)
        executions = await store.pending(workspace, BATCH)
        # Outcomes come last: they speak of failures that must have been learned before.
        is_full = len(executions) >= BATCH
        outcomes = [] if is_full else await store.pending_outcomes(workspace, BATCH)
        changed = await store.changed_tools(workspace, REGISTERED_BATCH)
        promotions = await store.pending_promotions(workspace, REGISTERED_BATCH)
        queues = (executions, outcomes, marks, corrections, changed, promotions)
        records = sum(len(queue) for queue in queues)
        if not records:
            return 0
        # From here on, for it is looked at the queues far more often than there is anything.
        measured.enter_context(stage("indexer.learn")).note(
            records=records, executions=len(executions)
        )
        # Taken out while it is changed: when anything fails, it is read anew from the store.
        at_hand = self._hands.take(workspace, conditions)
        material = await load_batch(
            executions, outcomes, store=store, memory=self._memory, at_hand=at_hand.knowledge,
            learned_to=at_hand.learned_to,
        )  # fmt: skip
        said = await tie_corrections(corrections, corrected, executions, store)
        health = await load_health(
            executions, said.tied, material.readings, [tool for tool, _ in marked],
            store=store, at_hand=at_hand.health,
        )  # fmt: skip
        fitness = await load_fitness(
            executions, marks, marked, health, store=store, at_hand=at_hand.fitness
        )
        learned, fared, felt = await asyncio.to_thread(_learn, material, fitness, health)
        derived = await derive_documents(changed, promotions, store=store)
        await store.add_outcomes(learned.reported)
        commit = IndexCommit(
            workspace=workspace,
            generation=conditions.generation,
            lease=lease,
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
        knowledge = (material.knowledge | dict(at_hand.knowledge)).items()
        kept = AtHand(
            dict(islice(knowledge, MAX_TOOLS)),
            at_hand.fitness.after(fitness, fared.removed),
            at_hand.health.after(health),
            learned_to(executions, at_hand.learned_to),
        )
        self._hands.put(workspace, conditions, kept)
        for named in felt.named_axes:
            self._on_axes(named)
        return records

    async def _commit(self, commit: IndexCommit) -> None:
        await self._store.commit_index(commit)
        self._memory.forget_knowledge([row.tool for row in commit.knowledge])
        self._memory.forget_statistics([row.tool for row in commit.statistics])
        self._memory.forget_health([row.tool for row in commit.health])
        changed = [(row.workspace, row.document_id) for row in commit.documents]
        self._memory.forget_documents([*changed, *commit.removed])
        if commit.removed or any(row.is_new for row in commit.documents):
            self._embedding.wake()

    async def _after_learning(self, queued: Sequence[str]) -> None:
        if queued:
            self._embedding.wake()  # what another process learned may be left to us to embed
        try:
            await self._claims.tend(queued)
        except StoreError as error:
            log.warning("workspaces were not given back yet: %s", error)


class _Since:
    """Tells whether something has been so for some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def lasts(self, is_so: bool) -> bool:  # noqa: FBT001  # the only thing that it is told
        now = time.monotonic()
        if not is_so:
            self._since = None
        elif self._since is None:
            self._since = now
        return self._since is not None and now - self._since >= self._seconds


async def _nothing(_: Iterable[str]) -> None:
    """After a round of embedding: claims are looked after by learning."""


def _learn(
    material: BatchMaterial, fitness: FitnessMaterial, health: HealthMaterial
) -> tuple[LearnedBatch, LearnedFitness, LearnedHealth]:
    return learn_batch(material), learn_fitness(fitness), learn_health(health)
