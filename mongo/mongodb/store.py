"""The log store on MongoDB: the protocol over one module per kind of record."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import date, datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

from pymongo import AsyncMongoClient

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.models import Execution
from mongo.errors import StoreError, StoreFencedError
from mongo.mongodb import (
    answers,
    archive,
    changes,
    commit,
    corrections,
    counting,
    facts,
    faults,
    generations,
    health,
    journal,
    layout,
    learned,
    leases,
    marks,
    mended,
    patterns,
    promotions,
    queues,
    recommendations,
    together,
    tools,
    usage,
    vectors,
)
from mongo.mongodb import executions as execution_log
from mongo.mongodb import suggestions as suggestion_log
from mongo.mongodb.collections import Collections, Record
from mongo.mongodb.feed import MongoChangeFeed
from mongo.records import (
    AnswerCount,
    Appended,
    Change,
    ChangedTool,
    CorrectionRecord,
    DocumentRow,
    FailureRecord,
    HealthRow,
    IndexCommit,
    IssuedSuggestion,
    JudgedSuggestion,
    KnowledgeRow,
    Lease,
    MendedFailure,
    NewExecution,
    PatternRow,
    PromotionEvent,
    QueuedPromotion,
    RemovedDocument,
    RepairRow,
    StatisticsRow,
    StoreCounts,
    StoredExecution,
    StoredPromotion,
    StoredRecommendation,
    StoredTool,
    SuggestionOutcome,
    ToolKey,
    UsageRow,
)
from mongo.upkeep import ArchiveRow, ChangeFeed

Answer = TypeVar("Answer")


class MongoLogStore:
    """A `mongo.protocol.LogStore` in one MongoDB database; made by `open_mongo_store`.

    Args:
        db: the collections as the generation sees them that this store reads and writes.
        where: servers and database, for messages.
        client: closed with the store; None for a shadow, which another store's client serves.
    """

    name = "mongodb"

    def __init__(
        self, db: Collections, where: str, client: AsyncMongoClient[Record] | None
    ) -> None:
        self._db = db
        self._where = where
        self._client = client
        self._source = uuid4().hex
        self._unsettled: set[str] = set()
        """Workspaces with a commit of which is not known whether all of it was applied."""
        self._is_closed = False
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"MongoLogStore({self._where!r}, generation {self._db.generation})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was accepted and release everything; closing twice does nothing."""
        self._is_closed = True
        await self._idle.wait()
        if self._client is not None:
            await self._client.close()

    async def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do it, unless the store is closed; what goes wrong is one of the store's own errors."""
        if self._is_closed:
            work.close()
            raise faults.closed()
        self._running += 1
        self._idle.clear()
        try:
            with faults.translated(self._where):
                return await work
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _run_settled(
        self, workspaces: Iterable[str], work: Coroutine[Any, Any, Answer]
    ) -> Answer:
        """As `_run`, behind what a commit of this store that was cut short has still to do.

        Else whoever failed to commit would read what it learned from once more.
        """
        try:
            for workspace in self._unsettled.intersection(workspaces):
                await self._run(journal.settle(self._db, f"{leases.LEARNING}{workspace}"))
                self._unsettled.discard(workspace)
            return await self._run(work)
        finally:
            work.close()  # does nothing when it was awaited

    async def _run_announced(
        self, announced: Iterable[Change], work: Coroutine[Any, Any, Answer]
    ) -> Answer:
        """As `_run`, and let those who follow know."""

        async def telling() -> Answer:
            async with AsyncExitStack() as stack:
                for change in announced:
                    await stack.enter_async_context(changes.announced(self._db, change))
                return await work

        try:
            return await self._run(telling())
        finally:
            work.close()

    # Executions

    async def append(self, workspace: str, executions: Sequence[NewExecution]) -> list[Appended]:
        """Store executions; durable on a majority when this returns. One verdict each, in order."""
        if not executions:
            return []
        # A copy: a caller that is cancelled may empty its list meanwhile.
        arrivals = tuple(executions)
        return await self._run(execution_log.append(self._db, workspace, arrivals))

    async def get_execution(self, workspace: str, execution_id: str) -> Execution | None:
        """The execution as stored, with its input schema put back; None when there is none."""
        return await self._run(execution_log.get(self._db, workspace, execution_id))

    async def get_executions(
        self, workspace: str, execution_ids: Sequence[str], *, learned: bool = False
    ) -> list[StoredExecution]:
        """Those of the executions that exist, in the order of the ids; without input schemas."""
        return await self._run(
            execution_log.get_several(self._db, workspace, execution_ids, learned=learned)
        )

    async def latest_call(
        self,
        workspace: str,
        session_id: str,
        *,
        server_name: str | None = None,
        tool_name: str | None = None,
    ) -> StoredExecution | None:
        """The latest call of a session, by its own time and sequence; None when there is none."""
        return await self._run(
            execution_log.latest_call(self._db, workspace, session_id, server_name, tool_name)
        )

    async def session_calls(
        self,
        sessions: Sequence[tuple[ToolKey, str]],
        limit: int,
        before: int = MAX_INTEGER,
        *,
        learned: bool = False,
    ) -> list[StoredExecution]:
        """The latest `limit` calls of each tool in each session, oldest arrival first."""
        return await self._run(
            execution_log.session_calls(self._db, sessions, limit, before, learned=learned)
        )

    # The indexing queues

    async def queued_workspaces(self) -> list[str]:
        """Workspaces with anything in one of the queues below, in order."""
        return await self._run_settled(self._unsettled, queues.workspaces(self._db))

    async def has_arrivals(self) -> bool:
        """Whether an execution waits in any workspace."""
        return await self._run_settled(self._unsettled, queues.has_waiting(self._db, "executions"))

    async def pending(self, workspace: str, limit: int) -> list[StoredExecution]:
        """The oldest executions that are not indexed yet, oldest first.

        Fewer than `limit` when they are large (`executions.MAX_BYTES`); none only when none is
        left.
        """
        return await self._run_settled(
            [workspace], execution_log.pending(self._db, workspace, limit)
        )

    async def commit_index(self, commit: IndexCommit) -> None:
        """Apply what an indexing batch learned and empty its queues: whole or not at all."""
        try:
            await self._run_settled([commit.workspace], self._commit(commit))
        except StoreFencedError:
            raise
        except BaseException:
            self._unsettled.add(commit.workspace)
            raise

    async def _commit(self, index_commit: IndexCommit) -> None:
        await commit.commit_index(self._db, index_commit, self._source, is_shadow=self._is_shadow)

    async def pending_vectors(self, workspace: str, limit: int) -> list[DocumentRow]:
        """The oldest documents that have no vector yet, oldest first."""
        return await self._run_settled([workspace], vectors.pending(self._db, workspace, limit))

    async def mark_embedded(self, documents: Sequence[DocumentRow]) -> None:
        """Say that these documents have their vectors."""
        await self._run(vectors.mark_embedded(self._db, documents))

    async def removed_documents(self, workspace: str, limit: int) -> list[RemovedDocument]:
        """The oldest documents that are gone and may still have a vector, oldest first."""
        return await self._run_settled([workspace], vectors.removed(self._db, workspace, limit))

    async def mark_removed(self, documents: Sequence[RemovedDocument]) -> None:
        """Say that these documents have no vectors any more."""
        await self._run(vectors.mark_removed(self._db, documents))

    async def changed_tools(self, workspace: str, limit: int) -> list[ChangedTool]:
        """The oldest puts and deletions of tools that no document says yet, oldest first."""
        return await self._run_settled([workspace], tools.changed(self._db, workspace, limit))

    async def counts(self, workspace: str | None = None) -> StoreCounts:
        """How much there is, in one workspace or over all; reads indexes only."""
        return await self._run(counting.counts(self._db, workspace))

    # What was learned

    async def get_knowledge(self, tool: ToolKey) -> KnowledgeRow | None:
        """What is known of one tool."""
        return await self._run_settled([tool.workspace], learned.get_knowledge(self._db, tool))

    async def get_documents(self, workspace: str, document_ids: Sequence[str]) -> list[DocumentRow]:
        """Those of the documents that exist, in the order of the ids."""
        return await self._run_settled(
            [workspace], learned.get_documents(self._db, workspace, document_ids)
        )

    async def list_repairs(self, tool: ToolKey, limit: int) -> list[RepairRow]:
        """The latest repairs of one tool, newest first."""
        return await self._run(learned.list_repairs(self._db, tool, limit))

    async def get_statistics(self, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
        """How these tools have fared, in their order; the unknown are left out."""
        return await self._run_settled(
            {tool.workspace for tool in tools}, learned.get_statistics(self._db, tools)
        )

    async def get_health(self, tools: Sequence[ToolKey]) -> list[HealthRow]:
        """The health of these tools, in their order; the unknown are left out."""
        return await self._run_settled(
            {tool.workspace for tool in tools}, health.get(self._db, tools)
        )

    async def list_health(
        self, workspace: str, limit: int, *, troubled: bool = False
    ) -> list[HealthRow]:
        """The tools of a workspace, the latest used first, or the latest troubled ones."""
        return await self._run(health.list_latest(self._db, workspace, limit, troubled=troubled))

    async def tools_with_health(self, workspace: str, limit: int) -> list[ToolKey]:
        """The tools of a workspace, the latest used first, without what is known of them."""
        return await self._run(health.list_names(self._db, workspace, limit))

    async def workspaces_with_health(self) -> list[str]:
        """Workspaces of which any health is known, in order."""
        return await self._run(health.workspaces(self._db))

    # Corrections by users

    async def add_correction(self, correction: CorrectionRecord) -> bool:
        """Keep a correction and queue it; False when its id is known in the workspace."""
        return await self._run(corrections.add(self._db, correction))

    async def pending_corrections(self, workspace: str, limit: int) -> list[CorrectionRecord]:
        """The oldest corrections that were not looked at yet, oldest first."""
        return await self._run_settled([workspace], corrections.pending(self._db, workspace, limit))

    async def untied_corrections(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[CorrectionRecord]:
        """Corrections of these executions that were looked at before the execution was stored."""
        return await self._run_settled(
            [workspace], corrections.untied_of(self._db, workspace, execution_ids)
        )

    async def get_correction(self, workspace: str, correction_id: str) -> CorrectionRecord | None:
        """A correction by its id."""
        return await self._run(corrections.get(self._db, workspace, correction_id))

    async def list_corrections(
        self, workspace: str, limit: int, *, tool: ToolKey | None = None
    ) -> list[CorrectionRecord]:
        """The latest corrections, newest first; of one tool, when given."""
        return await self._run(corrections.list_latest(self._db, workspace, limit, tool))

    # Recommendations that somebody took up

    async def put_recommendation(self, recommendation: StoredRecommendation) -> None:
        """Keep what was done about a recommendation, in the place of what was done before."""
        await self._run(recommendations.put(self._db, recommendation))

    async def list_recommendations(self, workspace: str) -> list[StoredRecommendation]:
        """All that were touched in a workspace, the latest touched first."""
        return await self._run(recommendations.list_all(self._db, workspace))

    # Marked failures

    async def add_mark(self, mark: FailureRecord) -> bool:
        """Keep a marked failure and queue it; False when its id is known in the workspace."""
        return await self._run(marks.add(self._db, mark))

    async def pending_marks(self, workspace: str, limit: int) -> list[FailureRecord]:
        """The oldest marks that nothing was learned from yet, oldest first."""
        return await self._run_settled([workspace], marks.pending(self._db, workspace, limit))

    async def learned_marks(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[FailureRecord]:
        """The marks that name one of these executions and were learned from, oldest first."""
        return await self._run_settled(
            [workspace], marks.learned_of(self._db, workspace, execution_ids)
        )

    async def list_marks(self, tool: ToolKey, limit: int) -> list[FailureRecord]:
        """The latest marked failures of one tool, newest first."""
        return await self._run(marks.list_latest(self._db, tool, limit))

    # Promotions

    async def get_promotion(self, workspace: str, namespace: str) -> StoredPromotion | None:
        """What was promoted in a namespace."""
        return await self._run(promotions.get(self._db, workspace, namespace))

    async def list_promotions(self, workspace: str) -> list[StoredPromotion]:
        """All that hold in a workspace, by namespace."""
        return await self._run(promotions.list_all(self._db, workspace))

    async def change_promotions(self, events: Sequence[PromotionEvent]) -> None:
        """Apply changes, all or none of them, and add them to the histories."""
        if events:
            workspaces = dict.fromkeys(event.workspace for event in events)
            await self._run_announced(
                [Change(workspace, registry=True) for workspace in workspaces],
                promotions.change(self._db, tuple(events)),
            )

    async def promotion_history(
        self, workspace: str, namespace: str, limit: int
    ) -> list[PromotionEvent]:
        """The latest changes in a namespace, newest first."""
        return await self._run(promotions.history(self._db, workspace, namespace, limit))

    async def pending_promotions(self, workspace: str, limit: int) -> list[QueuedPromotion]:
        """The oldest promotions that have no document yet, oldest first."""
        return await self._run_settled([workspace], promotions.pending(self._db, workspace, limit))

    # Tools and schemas

    async def put_tool(self, tool: StoredTool) -> None:
        """Register a tool, or replace the one of the same id in the same workspace."""
        await self._run_announced(
            [Change(tool.workspace, registry=True)], tools.put(self._db, tool)
        )

    async def get_tool(self, workspace: str, tool_id: str) -> StoredTool | None:
        """A tool by its id."""
        return await self._run(tools.get(self._db, workspace, tool_id))

    async def get_tools(self, workspace: str, tool_ids: Sequence[str]) -> list[StoredTool]:
        """Those of the tools that exist, in the order of the ids, each once."""
        return await self._run(tools.get_several(self._db, workspace, tool_ids))

    async def find_tool(self, tool: ToolKey) -> StoredTool | None:
        """The tool that executions name so; the latest put, when several ids share the name."""
        return await self._run(tools.find(self._db, tool))

    async def list_tools(self, workspace: str) -> list[StoredTool]:
        """All tools of a workspace, by id."""
        return await self._run(tools.list_all(self._db, workspace))

    async def delete_tool(self, workspace: str, tool_id: str) -> bool:
        """Remove a tool; False when there was none."""
        return await self._run_announced(
            [Change(workspace, registry=True)], tools.delete(self._db, workspace, tool_id)
        )

    async def get_schema(self, workspace: str, schema_hash: str) -> JsonObject | None:
        """An input schema by its hash."""
        return await self._run(execution_log.get_schema(self._db, workspace, schema_hash))

    # Suggestions

    async def save_suggestions(self, suggestions: Sequence[IssuedSuggestion]) -> None:
        """Keep suggestions that were answered; the same id again changes nothing."""
        if suggestions:
            await self._run(suggestion_log.save(self._db, tuple(suggestions)))

    async def get_suggestion(self, workspace: str, suggestion_id: str) -> IssuedSuggestion | None:
        """A suggestion that was answered earlier."""
        return await self._run(suggestion_log.get(self._db, workspace, suggestion_id))

    async def add_outcomes(self, outcomes: Sequence[SuggestionOutcome]) -> int:
        """Keep outcomes; how many were new. A suggestion has one per execution, the first."""
        if not outcomes:
            return 0
        return await self._run(suggestion_log.add_outcomes(self._db, tuple(outcomes)))

    async def pending_outcomes(self, workspace: str, limit: int) -> list[SuggestionOutcome]:
        """The oldest outcomes that nothing was learned from yet, oldest first."""
        return await self._run_settled(
            [workspace], suggestion_log.pending_outcomes(self._db, workspace, limit)
        )

    async def judged_suggestions(self, workspace: str, limit: int) -> list[JudgedSuggestion]:
        """The latest outcomes of suggestions with an estimate, latest first."""
        return await self._run(suggestion_log.judged(self._db, workspace, limit))

    async def workspaces_with_outcomes(self) -> list[str]:
        """Workspaces in which an outcome was said, in order."""
        return await self._run(suggestion_log.workspaces(self._db))

    async def latest_mended(self, workspace: str, limit: int) -> list[MendedFailure]:
        """The latest repairs of which both executions are there, latest first."""
        return await self._run(mended.latest(self._db, workspace, limit))

    async def latest_followed(self, workspace: str, limit: int) -> list[MendedFailure]:
        """Of the latest outcomes the successes that name a failure which is there."""
        return await self._run(mended.latest_followed(self._db, workspace, limit))

    async def add_answers(self, workspace: str, counts: Sequence[AnswerCount]) -> None:
        """Add to what is counted of answers by day and kind; all of them or none."""
        await self._run(answers.add(self._db, workspace, tuple(counts)))

    async def list_answers(self, workspace: str, since: date) -> list[AnswerCount]:
        """What was counted from a day on, by day and then kind."""
        return await self._run(answers.list_since(self._db, workspace, since))

    # Usage and consolidated patterns

    async def get_usage(
        self, workspace: str, tools: Sequence[tuple[ToolKey, date]]
    ) -> list[UsageRow]:
        """The usage of these tools on these days, in their order; the unknown are left out."""
        return await self._run(usage.get(self._db, workspace, tools))

    async def put_usage(self, rows: Sequence[UsageRow], lease: Lease | None = None) -> None:
        """Keep the usage of tools on days, in the place of what was known of the same day.

        Each day is fenced by the lease's token, so that what a former holder still writes changes
        none that a later one has written.
        """
        await self._run(usage.put(self._db, tuple(rows), lease))

    async def scan_usage(
        self, workspace: str, since: date, after: tuple[date, ToolKey] | None, limit: int
    ) -> list[UsageRow]:
        """Usage from a day on, by day and then tool; those behind `after`, at most `limit`."""
        return await self._run(usage.scan(self._db, workspace, since, after, limit))

    async def get_patterns(self, workspace: str, pattern_ids: Sequence[str]) -> list[PatternRow]:
        """Those of the patterns that exist, in the order of the ids."""
        return await self._run(patterns.get(self._db, workspace, pattern_ids))

    async def put_patterns(
        self,
        workspace: str,
        rows: Sequence[PatternRow],
        removed: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> None:
        """Keep patterns in the place of those of the same id, and drop the removed; at once.

        The lease is looked at just before: they are made anew from all failures each night.
        """
        await self._run(patterns.put(self._db, workspace, tuple(rows), tuple(removed), lease))

    async def list_patterns(self, workspace: str, limit: int) -> list[PatternRow]:
        """The patterns of most failures, most first; of equals the latest seen, then by id."""
        return await self._run(patterns.list_all(self._db, workspace, limit))

    # Facts

    async def get_fact(self, name: str) -> str | None:
        """A fact about the store as a whole."""
        return await self._run(facts.get(self._db, name))

    async def put_fact(self, name: str, value: str, lease: Lease | None = None) -> None:
        """Set a fact about the store as a whole; fenced by the lease's token, as usage is."""
        put = facts.put(self._db, name, value, lease)
        await self._run_announced([Change("", facts=(name,))], put)

    # Leases

    async def read_lease(self, name: str) -> Lease | None:
        """The lease as it is now, held or given back; None when nobody ever held it."""
        return await self._run(leases.read(self._db, name))

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        """Take a lease if it is still as it was seen; None when somebody was faster.

        What its former holder had begun to change is changed before this returns.
        """
        return await self._run(self._take(name, holder, seen))

    async def _take(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        lease = await leases.take(self._db, name, holder, seen)
        if lease is not None:
            workspace = leases.workspace_of(name)
            await journal.all_of(
                journal.settle(self._db, name),
                together.complete(self._db, workspace or None),
            )
            if name.startswith(leases.LEARNING):
                await journal.clear_unnamed(self._db, workspace)
            self._unsettled.discard(workspace)
        return lease

    async def beat_lease(self, lease: Lease) -> Lease | None:
        """Say that its holder lives; None when it is not the holder's any more."""
        return await self._run(leases.beat(self._db, lease))

    async def give_back_lease(self, lease: Lease) -> None:
        """Let others have it at once; one that was lost is left alone."""
        await self._run(leases.give_back(self._db, lease))

    # What other processes do

    async def follow(self) -> ChangeFeed:
        """A feed of what happens from now on; without what this store itself has learned."""
        feed = changes.Feed(self._db, self._source)
        await self._run(feed.begin())

        async def read() -> tuple[layout.State, list[Change]]:
            return await self._run(feed.read())

        return MongoChangeFeed(read, self._notice)

    async def generation(self) -> int:
        """The generation that holds; a shadow says its own."""
        if self._is_shadow:
            return self._db.generation
        state = await self._run(layout.read_state(self._db))
        self._notice(state.generation)
        return state.generation

    @property
    def _is_shadow(self) -> bool:
        return self._client is None

    def _notice(self, generation: int) -> None:
        """Read and write what another process has switched to."""
        if not self._is_shadow and generation != self._db.generation:
            self._db = self._db.of_generation(generation)

    # Streams

    async def workspaces(self) -> list[str]:
        """All workspaces that have anything in the log, or a tool, in order."""
        return await self._run(counting.workspaces(self._db))

    async def scan_executions(
        self, workspace: str, after: int, limit: int, before: datetime | None = None
    ) -> list[StoredExecution]:
        """Executions of positions above `after`, in that order; without input schemas."""
        return await self._run(execution_log.scan(self._db, workspace, after, limit, before))

    async def scan_documents(self, workspace: str, after: str, limit: int) -> list[DocumentRow]:
        """Documents of ids above `after` ('' for the first), in that order."""
        return await self._run(learned.scan_documents(self._db, workspace, after, limit))

    async def expire_executions(self, workspace: str, before: datetime, limit: int) -> int:
        """Delete at most `limit` executions that arrived before a moment; how many that were."""
        return await self._run(execution_log.expire(self._db, workspace, before, limit))

    # Switching

    async def open_shadow(self) -> Self:
        """A store over the same log that has learned nothing: its queues hold all there is."""
        shadow = await self._run(generations.open_shadow(self._db))
        return type(self)(shadow, self._where, None)

    async def adopt(
        self, shadow: Self, facts: Mapping[str, str], leases: Sequence[Lease] = ()
    ) -> int:
        """What the shadow learned takes the place of what is known here; at once or not at all."""
        if not shadow._is_shadow or shadow._where != self._where:
            raise StoreError("only a shadow of this store can be adopted: open one first")
        await shadow.close()
        generation = await self._run(generations.adopt(self._db, shadow._db, facts, leases))
        self._notice(generation)
        return generation

    async def drop_shadow(self) -> None:
        """Throw away what a shadow left, if anything; none may be open."""
        await self._run(generations.drop_shadow(self._db))

    # Archives

    @asynccontextmanager
    async def still(self) -> AsyncIterator["MongoLogStore"]:
        """Itself: a snapshot needs a replica set, which keeps one for minutes only."""
        yield self

    async def scan_archive(
        self, kind: str, after: JsonObject | None, limit: int
    ) -> list[ArchiveRow]:
        """Records of a kind in the order of their keys; those behind the key fields of `after`."""
        return await self._run(archive.scan(self._db, kind, after, limit))

    async def restore(self, rows: Sequence[ArchiveRow]) -> int:
        """Put records of one kind where they were in another store; how many were new."""
        workspaces = dict.fromkeys(str(row.fields.get("workspace", "")) for row in rows)
        return await self._run_announced(
            [Change(workspace, everything=True) for workspace in workspaces],
            archive.restore(self._db, tuple(rows)),
        )
