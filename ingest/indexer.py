"""The learner: what is durable becomes usable, each event exactly once.

It reads the log of each workspace from its cursor on, a batch at a time, and commits what the batch
taught together with the cursor's new place. A crash repeats at most a batch that was not committed.
Vectors follow: documents that are new get theirs, those that are gone lose them (idempotent, ids
come from content). Work without vectors never waits for the model.

Several processes may do so on one store: one learner a workspace, by a lease. The store refuses
what a former holder still commits.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aftercall.stages import stage
from embeddings.protocol import Embedder, EmbeddingError
from ingest import pacing
from ingest.batches import KnowledgePlace, LearnerByLoad, StartProcess
from ingest.leases import LeaseKeeper, holder_id, retire_holder
from mongo.errors import StoreError, StoreFencedError
from mongo.protocol import Knowledge, Store
from mongo.records import Commit, Cursor, Head, Lease, Removal, Row, decode_json
from retrieval.index.protocol import IndexPoint, VectorIndex, VectorIndexError
from retrieval.knowledge.memory import DOCUMENT, VECTOR, Memory
from retrieval.knowledge.rows.documents import Document

log = logging.getLogger("aftercall.learner")


class Indexer:
    """Learns and embeds what the log holds; one per process and store.

    After `lease_s` seconds without a sign of life other processes may go on; `is_shared` states
    whether there may be any. `knowledge` is another generation than the current one, for a rebuild.
    """

    def __init__(
        self,
        *,
        store: Store,
        memory: Memory,
        index: VectorIndex,
        embedder: Embedder,
        lease_s: float = 15.0,
        is_shared: bool = False,
        knowledge: Knowledge | None = None,
        batch: int = pacing.BATCH,
        start_process: StartProcess | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._embedder = embedder
        self._own = knowledge
        self._indexed = self._knowledge.generation
        """Whose vectors the index holds; that of a generation just switched to is opened first."""
        self._at_log = asyncio.Lock()
        """Held for a step of learning: another goes on where it ended, and is not refused."""
        self._at_index = asyncio.Lock()
        """Held while the index is written to, and while another is put in its place."""
        self._batch = batch
        self._leases = WorkspaceLeases(
            store, lease_s, lambda: self._knowledge.generation, is_shared=is_shared
        )
        self._learner = LearnerByLoad(store.events, start_process)
        poll_s = pacing.POLL_S if is_shared else pacing.OWN_POLL_S
        self._learning = _Loop("learning", self._paced_learn_step, poll_s)
        self._embedding = _Loop("embedding", self._paced_embed_step, pacing.OWN_POLL_S)
        self._pacing = pacing.Pacing(self._count_waiting)
        self._learned = 0
        """Events since `rest` was called last."""

    @property
    def problem(self) -> str | None:
        """Why learning, or making vectors, stands still; None while all is well."""
        return self.learning_problem or self._embedding.problem

    @property
    def learning_problem(self) -> str | None:
        """Why learning stands still; without vectors, rules and profiles still answer."""
        return self._learning.problem

    @property
    def _knowledge(self) -> Knowledge:
        return self._own or self._store.knowledge

    def start(self) -> None:
        """Begin to work in the background."""
        self._learning.start()
        self._embedding.start()

    def wake_learner(self) -> None:
        """Say that something new was stored."""
        self._learning.wake_loop()

    @asynccontextmanager
    async def switch_current(self) -> AsyncIterator[None]:
        """Yield another generation is current; in the block the index gets its vectors.

        What is just being learned or embedded of the former one goes no further.
        """
        async with self._at_index:
            yield
            self._indexed = self._knowledge.generation
        self._learner.forget_rows()
        await self._leases.give_back()
        self._learning.wake_loop()
        self._embedding.wake_loop()

    async def close(self) -> None:
        """Stop after the batch that is under way; what is left stays in the log."""
        await self._learning.close()
        await self._learner.close()
        self._pacing.is_behind = False
        await self._embedding.close()
        await self._leases.close()

    async def hand_over_known(self) -> bool:
        """Leave what is known of tools to the answers, unless much was learned since the last call.

        So a row is neither decoded nor kept in memory twice. While much is learned, the learner
        keeps its own rows; when nothing is, it drops all of them, and True is returned.
        """
        is_behind = self._pacing.is_behind
        if self._learned < pacing.MUCH and not is_behind:
            memory = self._memory if self._own is None else None
            self._learner.here.hand_over_known(memory, self._knowledge.generation)
            if not self._learned:
                await self._learner.here.forget_slowly()
        self._learner.tend_process(is_much=is_behind or self._learned >= pacing.MUCH_FOR_A_PROCESS)
        is_idle, self._learned = not self._learned, 0
        return is_idle

    async def catch_up(self, on_progress: Callable[[int], None] = lambda _: None) -> int:
        """Learn and embed what is in the log now, but for what others are at; how many events."""
        done, heads = 0, await self._store.events.read_heads()
        while await count_waiting(self._store, self._knowledge, heads) and (
            learned := await self.learn_step()
        ):
            done += learned
            on_progress(done)
        while await self.embed_step():
            pass
        await self._leases.give_back()
        return done

    async def _paced_learn_step(self) -> int:
        if await self._pacing.let_burst_pass(lambda: self._learner.is_elsewhere):
            return await self.learn_step()
        await self._leases.tend_leases()
        return 0

    async def _paced_embed_step(self) -> int:
        await self._pacing.let_learning_pass()
        return await self.embed_step()

    async def _count_waiting(self) -> int:
        return (await count_waiting(self._store, self._knowledge)).total()

    async def learn_step(self) -> int:
        """Learn from one batch of each workspace; how many events, 0 when there are none."""
        async with self._at_log:
            knowledge = self._knowledge
            done, heads = 0, await self._store.events.read_heads()
            for workspace in await count_waiting(self._store, knowledge, heads):
                done += await self._learn_workspace(knowledge, workspace, heads[workspace].position)
            await self._leases.tend_leases()
            return done

    async def embed_step(self) -> int:
        """Bring a batch of documents a workspace into the index, or out; how many, 0 when done."""
        knowledge = self._knowledge
        done = 0
        if knowledge.generation != self._indexed:
            return done
        for workspace in await knowledge.read_cursors():
            rows = await knowledge.scan_rows(workspace, VECTOR.name, pacing.EMBED_BATCH, by="rank")
            if rows:
                done += await self._embed_workspace(knowledge, workspace, rows)
        return done

    async def _learn_workspace(self, knowledge: Knowledge, workspace: str, head: int) -> int:
        lease = await self._leases.take_lease(workspace)
        if lease is None:
            return 0
        try:
            cursor = (await knowledge.read_cursors()).get(workspace, Cursor())
            learned = await self._learner.learn_batch(
                knowledge, workspace, cursor, self._batch, lease
            )
            if learned is None:
                if cursor.position < head:  # the last ones were forgotten
                    moved = cursor.position, head
                    await knowledge.commit(Commit(workspace, moved=moved, lease=lease))
                return 0
        except StoreFencedError as error:
            log.info("workspace %s is read anew: %s", workspace, error)
            await self._leases.drop_lease(workspace)
            return 0
        self._learned += learned.events
        if self._own is None:
            self._memory.forget_rows(workspace, learned.changed, learned.serial)
        if any(kind == VECTOR.name for kind, _ in learned.changed):
            self._embedding.wake_loop()
        return learned.events

    async def _embed_workspace(
        self, knowledge: Knowledge, workspace: str, rows: Sequence[Row]
    ) -> int:
        lease = await self._leases.take_lease(workspace)
        if lease is None:
            return 0
        gone = [row.key for row in rows if row.data]
        if gone:
            async with self._at_index:
                if knowledge.generation != self._indexed:
                    return 0
                await self._index.delete(gone)
        wanted = [row.key for row in rows if not row.data]
        found = await knowledge.get(workspace, DOCUMENT.name, wanted)
        if found:
            documents = [decode_json(Document, row.data) for row in found]
            with stage("indexer.embed") as noted:
                noted.note(documents=len(documents))
                vectors = await self._embedder.embed([each.text for each in documents], "document")
                points = [
                    IndexPoint(
                        document_id=each.document_id,
                        workspace=workspace,
                        kind=each.kind,
                        server_name=each.server_name,
                        tool_name=each.tool_name,
                        vector=vector,
                        terms=each.terms,
                        version=each.version,
                    )
                    for each, vector in zip(documents, vectors, strict=True)
                ]
                for start in range(0, len(points), pacing.POINTS):
                    async with self._at_index:
                        if knowledge.generation != self._indexed:
                            return 0
                        await self._index.upsert_points(points[start : start + pacing.POINTS])
        # One that was asked for again meanwhile has another rank, and stays.
        done = [Removal(VECTOR.name, row.key, row.rank) for row in rows]
        try:
            serial = await knowledge.commit(Commit(workspace, removed=done, lease=lease))
        except StoreFencedError:
            await self._leases.drop_lease(workspace)
            return len(rows)
        # Neither learner nor answers keep rows of vectors: all that they keep holds still.
        self._learner.follow_commit(KnowledgePlace(knowledge.generation, workspace), serial)
        if self._own is None:
            self._memory.forget_rows(workspace, (), serial)
        return len(rows)


async def count_waiting(
    store: Store, knowledge: Knowledge, heads: Mapping[str, Head] | None = None
) -> Counter[str]:
    """Return how many events each workspace has to learn yet.

    Of the log now, or as of these heads.
    """
    cursors = await knowledge.read_cursors()
    heads = await store.events.read_heads() if heads is None else heads
    left = Counter({name: head.position for name, head in heads.items()})
    left.subtract({name: cursor.position for name, cursor in cursors.items()})
    return +left


class WorkspaceLeases:
    """The leases of the workspaces that this process learns; idle ones go back where others may.

    After `ttl` seconds without a sign of life others go on, perhaps with another generation.
    """

    def __init__(
        self, store: Store, ttl: float, generation: Callable[[], int], *, is_shared: bool
    ) -> None:
        self._store = store
        self._ttl = ttl
        self._generation = generation
        self._is_shared = is_shared
        self._holder = holder_id()
        self._keepers: dict[str, LeaseKeeper] = {}
        self._used_at: dict[str, float] = {}

    async def take_lease(self, workspace: str) -> Lease | None:
        """Return the lease of a workspace; None while another process has it."""
        name = self._lease_name(workspace)
        keeper = self._keepers.get(name)
        if keeper is None:
            keeper = LeaseKeeper(self._store.leases, name, ttl=self._ttl, holder=self._holder)
            self._keepers[name] = keeper
        self._used_at[name] = time.monotonic()
        await keeper.try_take()
        return keeper.lease

    async def drop_lease(self, workspace: str) -> None:
        """Give one back, to be taken again."""
        await self._drop_keeper(self._lease_name(workspace))

    def _lease_name(self, workspace: str) -> str:
        return f"learning:{self._generation()}:{workspace}"

    async def _drop_keeper(self, name: str) -> None:
        keeper = self._keepers.pop(name, None)
        if keeper is not None:
            await keeper.give_back()

    async def tend_leases(self) -> None:
        """Give back those that were not used for a while."""
        if self._is_shared:
            now = time.monotonic()
            for name in [
                each for each in self._keepers if now - self._used_at[each] > pacing.IDLE_S
            ]:
                await self._drop_keeper(name)

    async def give_back(self) -> None:
        """Give all back."""
        for name in list(self._keepers):
            await self._drop_keeper(name)

    async def close(self) -> None:
        """Give everything back, as far as the store can be asked."""
        for keeper in self._keepers.values():
            await keeper.close()
        self._keepers.clear()
        retire_holder(self._holder)


class _Loop:
    """Does a step again and again while there is work; then waits to be woken, or for the poll."""

    def __init__(self, name: str, step: Callable[[], Awaitable[int]], poll_s: float) -> None:
        self._name = name
        self._step = step
        self._poll_s = poll_s
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self.problem: str | None = None

    def start(self) -> None:
        self._work.set()
        self._task = asyncio.create_task(self._run_loop(), name=self._name)

    def wake_loop(self) -> None:
        self._work.set()

    async def close(self) -> None:
        self._is_closing = True
        self._work.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run_loop(self) -> None:
        while not self._is_closing:
            self._work.clear()
            if not await self._try_step():
                await self._wait_for_work()

    async def _try_step(self) -> int:
        try:
            done = await self._step()
        except (StoreError, VectorIndexError, EmbeddingError) as error:  # an operator's matter
            if self.problem != str(error):
                log.error(  # noqa: TRY400
                    "%s stands still and will be tried again: %s", self._name, error
                )
            self.problem = str(error)
        except Exception:
            log.exception("%s failed and will be tried again", self._name)
            self.problem = "an internal error; see the log"
        else:
            self.problem = None
            return done
        return 0

    async def _wait_for_work(self) -> None:
        pause = pacing.RETRY_S if self.problem else self._poll_s
        try:
            async with asyncio.timeout(pause):
                await self._work.wait()
                if not self._is_closing:
                    await asyncio.sleep(pacing.TOGETHER_S)
        except TimeoutError:
            pass
