"""From the events after a cursor to the commit that learns them: here, or in another process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from aftercall.stages import stage
from aftercall.tables import keep_latest
from ingest import fold, pacing
from ingest.workspace import WorkspaceCache
from mongo.protocol import EventLog, Knowledge
from mongo.records import Commit, Cursor, Event, Lease
from retrieval.knowledge.memory import Memory

log = logging.getLogger("aftercall.learner")


class KnowledgePlace(NamedTuple):
    """What is learned into. Two generations of a workspace may have made as many commits."""

    generation: int
    workspace: str


@dataclass(frozen=True, slots=True)
class LearnedBatch:
    """What became of a batch that was learned and committed."""

    serial: int
    """Of its commit."""
    events: int
    changed: Sequence[tuple[str, str]]
    """Kind and key of each row that it wrote or removed."""


class BatchLearner(Protocol):
    """Learns batches of events, and keeps the rows that it has decoded for the next batch."""

    async def learn_batch(
        self, knowledge: Knowledge, workspace: str, cursor: Cursor, most: int, lease: Lease
    ) -> LearnedBatch | None:
        """Learn and commit the events after a cursor, at most so many; None if there are none.

        Rows are read again if the latest commit is neither its own nor known by `follow_commit`.

        Raises:
            StoreFencedError: another process has learned them, or has the lease.
            StoreError: the store cannot be used.
        """

    def follow_commit(self, place: KnowledgePlace, serial: int) -> None:
        """Note that a commit changed no row that learning reads."""

    def forget_rows(self) -> None:
        """Forget all rows."""


class LearnerEndedError(RuntimeError):
    """The process that learns has ended; what it was asked for is not learned."""


class LearnerProcess(BatchLearner, Protocol):
    """A process that learns; each call may raise a `LearnerEndedError`."""

    async def close(self) -> None:
        """End the process."""


StartProcess = Callable[[], Awaitable[LearnerProcess]]


class CachedLearner:
    """As `BatchLearner`, in this process."""

    def __init__(self, log_: EventLog) -> None:
        self._log = log_
        self._caches: dict[KnowledgePlace, WorkspaceCache] = {}

    async def learn_batch(
        self, knowledge: Knowledge, workspace: str, cursor: Cursor, most: int, lease: Lease
    ) -> LearnedBatch | None:
        place, position = KnowledgePlace(knowledge.generation, workspace), cursor.position
        # Taken out while it is learned into: when anything fails, it is read again.
        cache = self._caches.pop(place, None)
        if cache is None or cache.serial != cursor.serial:
            cache = WorkspaceCache(workspace, cursor.serial)
        events = await self._log.read_after(workspace, position, most)
        if not events:
            return None
        commit = await commit_events(self._log, knowledge, cache, events, position, lease)
        cache.shrink_cache()
        keep_latest(self._caches, place, cache, pacing.MAX_CACHES)
        changed = [(row.kind, row.key) for row in commit.put]
        changed += [(gone.kind, gone.key) for gone in commit.removed]
        return LearnedBatch(cache.serial, len(events), changed)

    def follow_commit(self, place: KnowledgePlace, serial: int) -> None:
        if (cache := self._caches.get(place)) is not None and cache.serial == serial - 1:
            cache.serial = serial

    def take_up(self, place: KnowledgePlace, serial: int | None) -> None:
        """Note that rows are as of this commit; None: that they may have changed."""
        cache = self._caches.pop(place, None)
        if cache is not None and serial is not None:
            cache.serial = serial
            self._caches[place] = cache

    def forget_rows(self) -> None:
        self._caches.clear()

    def hand_over_known(self, memory: Memory | None, generation: int) -> None:
        """Let go of what is known of tools; the answers get that of a generation."""
        for place, cache in self._caches.items():
            known = cache.give_knowledge()
            if memory is not None and place.generation == generation:
                memory.adopt_tools(place.workspace, known, cache.serial)

    async def forget_slowly(self) -> None:
        """Forget all rows, in a thread."""
        while self._caches:
            _, cache = self._caches.popitem()
            await asyncio.to_thread(cache.clear_cache)


class LearnerByLoad:
    """As `BatchLearner`: in this process, and under load in one of its own.

    Answers and recording have this process's interpreter lock to themselves then.
    """

    def __init__(self, log_: EventLog, start_process: StartProcess | None) -> None:
        self.here = CachedLearner(log_)
        self._start_process = start_process
        self._process: LearnerProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._quiet = 0
        """Looks since there was enough to learn for a process."""

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the other process learns now."""
        return self._process is not None

    async def learn_batch(
        self, knowledge: Knowledge, workspace: str, cursor: Cursor, most: int, lease: Lease
    ) -> LearnedBatch | None:
        if (process := self._process) is not None:
            try:
                return await process.learn_batch(knowledge, workspace, cursor, most, lease)
            except LearnerEndedError as error:
                log.warning("the process that learns has ended; it is learned here: %s", error)
                self._start_process = None  # what ended it may do so again
                await self._end_process()
                cursor = (await knowledge.read_cursors()).get(workspace, Cursor())
        return await self.here.learn_batch(knowledge, workspace, cursor, most, lease)

    def follow_commit(self, place: KnowledgePlace, serial: int) -> None:
        self._learner.follow_commit(place, serial)

    def forget_rows(self) -> None:
        self._learner.forget_rows()

    @property
    def _learner(self) -> BatchLearner:
        return self._process or self.here

    def tend_process(self, *, is_much: bool) -> None:
        """Start the process if much is learned; end it after a while in which little was."""
        self._quiet = 0 if is_much else self._quiet + 1
        if self._starting is not None and not self._starting.done():
            return
        if is_much and self._process is None and self._start_process is not None:
            self._starting = asyncio.create_task(self._begin_process(self._start_process))
        elif self._process is not None and self._quiet > pacing.QUIET_LOOKS:
            self._starting = asyncio.create_task(self._end_process())

    async def _begin_process(self, start: StartProcess) -> None:
        try:
            process = await start()
        except LearnerEndedError as error:
            log.warning("a process that learns cannot be started; it is learned here: %s", error)
            self._start_process = None
            return
        self._process = process
        self.here.forget_rows()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def close(self) -> None:
        """End the process, if there is one."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        await self._end_process()


async def commit_events(
    log_: EventLog,
    knowledge: Knowledge,
    cache: WorkspaceCache,
    events: Sequence[Event],
    position: int,
    lease: Lease | None = None,
) -> Commit:
    """Learn events into a cache, and commit what they taught and that the cursor moved.

    A cache that this fails with holds no more.
    """
    with stage("indexer.learn") as noted:
        noted.note(records=len(events))
        batch = await fold.load(cache, events, log_=log_, knowledge=knowledge)
        counters = await asyncio.to_thread(fold.learn_batch, cache, batch)
        put, removed = await asyncio.to_thread(cache.take_changes)
        commit = Commit(
            cache.workspace,
            put=put,
            removed=removed,
            counters=counters,
            moved=(position, events[-1].position),
            lease=lease,
        )
        cache.serial = await knowledge.commit(commit)
        return commit
