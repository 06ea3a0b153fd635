"""The embedded log store: the protocol over one writer and a pool of readers."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import date
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.models import Execution
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
from mongo.sqlite import (
    answers,
    changes,
    commits,
    corrections,
    facts,
    health,
    knowledge,
    marks,
    mended,
    patterns,
    promotions,
    recommendations,
    sessions,
    shadow,
    tools,
    usage,
    vectors,
)
from mongo.sqlite import executions as execution_log
from mongo.sqlite import suggestions as suggestion_log
from mongo.sqlite.leases import fenced
from mongo.sqlite.readers import ReadPool, connect_still_reader
from mongo.sqlite.shadow import Shadow
from mongo.sqlite.upkeep import SqliteUpkeep

Result = TypeVar("Result")


class SqliteLogStore(SqliteUpkeep):
    """A `mongo.protocol.LogStore` in one SQLite file; made by `open_sqlite_store`."""

    name = "sqlite"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def still(self) -> AsyncIterator["SqliteLogStore"]:
        """The store as it is at this moment, to be read until the block ends.

        Writers go on; the log file beside the store grows by what they write meanwhile.
        """
        readers = ReadPool(self._path, connect_still_reader, threads=1)
        try:
            yield SqliteLogStore(
                self._path, self._writer, readers, resources=ExitStack(), is_beside=self._is_beside
            )
        finally:
            await asyncio.to_thread(readers.close)

    # Switching

    async def open_shadow(self) -> "SqliteLogStore":
        """A store over the same log that has learned nothing: its queues hold all there is."""
        made = await asyncio.to_thread(Shadow, self._path)
        return SqliteLogStore(
            self._path,
            self._writer,
            made.readers,
            resources=made.resources,
            shadow=made,
            is_beside=self._is_beside,
        )

    async def adopt(
        self, shadow: "SqliteLogStore", facts: Mapping[str, str], leases: Sequence[Lease] = ()
    ) -> int:
        """What the shadow learned takes the place of what is known here; at once or not at all."""
        return await self._adopt(shadow, facts, leases)

    # Executions

    async def append(self, workspace: str, executions: Sequence[NewExecution]) -> list[Appended]:
        """Store executions; durable when this returns. One verdict each, in order."""
        if not executions:
            return []
        # A copy: a caller that is cancelled may empty its list while the writer is at it.
        arrivals = [(workspace, new) for new in executions]
        return await self._writer.run_together(execution_log.append, arrivals)

    async def get_execution(self, workspace: str, execution_id: str) -> Execution | None:
        """The execution as stored, with its input schema put back; None when there is none."""
        return await self._readers.run(
            partial(execution_log.get, workspace=workspace, execution_id=execution_id)
        )

    async def get_executions(
        self, workspace: str, execution_ids: Sequence[str], *, learned: bool = False
    ) -> list[StoredExecution]:
        """Those of the executions that exist, in the order of the ids; without input schemas."""
        return await self._readers.run(
            partial(
                execution_log.get_several,
                workspace=workspace,
                execution_ids=tuple(execution_ids),
                learned=learned,
            )
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
        return await self._readers.run(
            partial(
                sessions.latest_call,
                workspace=workspace,
                session_id=session_id,
                server_name=server_name,
                tool_name=tool_name,
            )
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
        return await self._readers.run(
            partial(
                execution_log.session_calls,
                sessions=tuple(sessions),
                limit=limit,
                before=before,
                learned=learned,
            )
        )

    # The indexing queues

    async def queued_workspaces(self) -> list[str]:
        """Workspaces with anything in one of the queues below, in order."""
        await self._catch_up()
        return await self._readers.run(facts.queued_workspaces)

    async def has_arrivals(self) -> bool:
        """Whether an execution waits in any workspace."""
        await self._catch_up()
        return await self._readers.run(facts.has_arrivals)

    async def pending(self, workspace: str, limit: int) -> list[StoredExecution]:
        """The oldest executions that are not indexed yet, oldest first.

        Fewer than `limit` when they are large (`executions.MAX_PENDING_BYTES`); none only when none
        is left.
        """
        found = await self._queued(execution_log.pending, workspace, limit)
        if not found and limit > 0 and self._shadow is not None:
            # What has expired since it was queued here would wait for ever.
            await self._learner.run(partial(shadow.drop_expired, workspace=workspace))
        return found

    async def commit_index(self, commit: IndexCommit) -> None:
        """Apply what an indexing batch learned and empty its queues, in one transaction."""
        operation = partial(commits.commit_index, commit=commit)
        if self._shadow is None:
            await self._write(operation, lambda: changes.of_commit(commit))
        else:
            await self._learner.run(operation)

    async def pending_vectors(self, workspace: str, limit: int) -> list[DocumentRow]:
        """The oldest documents that have no vector yet, oldest first."""
        return await self._readers.run(partial(vectors.pending, workspace=workspace, limit=limit))

    async def mark_embedded(self, documents: Sequence[DocumentRow]) -> None:
        """Say that these documents have their vectors."""
        kept = tuple(documents)
        await self._learner.run(partial(vectors.mark_embedded, documents=kept))

    async def removed_documents(self, workspace: str, limit: int) -> list[RemovedDocument]:
        """The oldest documents that are gone and may still have a vector, oldest first."""
        return await self._readers.run(partial(vectors.removed, workspace=workspace, limit=limit))

    async def mark_removed(self, documents: Sequence[RemovedDocument]) -> None:
        """Say that these documents have no vectors any more."""
        kept = tuple(documents)
        await self._learner.run(partial(vectors.mark_removed, documents=kept))

    async def changed_tools(self, workspace: str, limit: int) -> list[ChangedTool]:
        """The oldest puts and deletions of tools that no document says yet, oldest first."""
        return await self._queued(tools.changed, workspace, limit)

    async def counts(self, workspace: str | None = None) -> StoreCounts:
        """How much there is, in one workspace or over all; reads one small table."""
        return await self._readers.run(partial(facts.counts, workspace=workspace))

    # What was learned

    async def get_knowledge(self, tool: ToolKey) -> KnowledgeRow | None:
        """What is known of one tool."""
        return await self._readers.run(partial(knowledge.get_knowledge, tool=tool))

    async def get_documents(self, workspace: str, document_ids: Sequence[str]) -> list[DocumentRow]:
        """Those of the documents that exist, in the order of the ids."""
        return await self._readers.run(
            partial(knowledge.get_documents, workspace=workspace, document_ids=tuple(document_ids))
        )

    async def list_repairs(self, tool: ToolKey, limit: int) -> list[RepairRow]:
        """The latest repairs of one tool, newest first."""
        return await self._readers.run(partial(knowledge.list_repairs, tool=tool, limit=limit))

    async def get_statistics(self, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
        """How these tools have fared, in their order; the unknown are left out."""
        return await self._readers.run(partial(knowledge.get_statistics, tools=tuple(tools)))

    async def get_health(self, tools: Sequence[ToolKey]) -> list[HealthRow]:
        """The health of these tools, in their order; the unknown are left out."""
        return await self._readers.run(partial(health.get, tools=tuple(tools)))

    async def list_health(
        self, workspace: str, limit: int, *, troubled: bool = False
    ) -> list[HealthRow]:
        """The tools of a workspace, the latest used first, or the latest troubled ones."""
        return await self._readers.run(
            partial(health.list_latest, workspace=workspace, limit=limit, troubled=troubled)
        )

    async def tools_with_health(self, workspace: str, limit: int) -> list[ToolKey]:
        """The tools of a workspace, the latest used first, without what is known of them."""
        return await self._readers.run(partial(health.list_names, workspace=workspace, limit=limit))

    async def workspaces_with_health(self) -> list[str]:
        """Workspaces of which any health is known, in order."""
        return await self._readers.run(health.workspaces)

    # Corrections by users

    async def add_correction(self, correction: CorrectionRecord) -> bool:
        """Keep a correction and queue it; False when its id is known in the workspace."""
        return await self._writer.run(partial(corrections.add, correction=correction))

    async def pending_corrections(self, workspace: str, limit: int) -> list[CorrectionRecord]:
        """The oldest corrections that were not looked at yet, oldest first."""
        return await self._queued(corrections.pending, workspace, limit)

    async def untied_corrections(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[CorrectionRecord]:
        """Corrections of these executions that were looked at before the execution was stored."""
        return await self._readers.run(
            partial(corrections.untied_of, workspace=workspace, execution_ids=tuple(execution_ids))
        )

    async def get_correction(self, workspace: str, correction_id: str) -> CorrectionRecord | None:
        """A correction by its id."""
        return await self._readers.run(
            partial(corrections.get, workspace=workspace, correction_id=correction_id)
        )

    async def list_corrections(
        self, workspace: str, limit: int, *, tool: ToolKey | None = None
    ) -> list[CorrectionRecord]:
        """The latest corrections, newest first; of one tool, when given."""
        return await self._readers.run(
            partial(corrections.list_latest, workspace=workspace, limit=limit, tool=tool)
        )

    # Recommendations that somebody took up

    async def put_recommendation(self, recommendation: StoredRecommendation) -> None:
        """Keep what was done about a recommendation, in the place of what was done before."""
        await self._writer.run(partial(recommendations.put, recommendation=recommendation))

    async def list_recommendations(self, workspace: str) -> list[StoredRecommendation]:
        """All that were touched in a workspace, the latest touched first."""
        return await self._readers.run(partial(recommendations.list_all, workspace=workspace))

    # Marked failures

    async def add_mark(self, mark: FailureRecord) -> bool:
        """Keep a marked failure and queue it; False when its id is known in the workspace."""
        return await self._writer.run(partial(marks.add, mark=mark))

    async def pending_marks(self, workspace: str, limit: int) -> list[FailureRecord]:
        """The oldest marks that nothing was learned from yet, oldest first."""
        return await self._queued(marks.pending, workspace, limit)

    async def learned_marks(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[FailureRecord]:
        """The marks that name one of these executions and were learned from, oldest first."""
        return await self._readers.run(
            partial(marks.learned_of, workspace=workspace, execution_ids=tuple(execution_ids))
        )

    async def list_marks(self, tool: ToolKey, limit: int) -> list[FailureRecord]:
        """The latest marked failures of one tool, newest first."""
        return await self._readers.run(partial(marks.list_latest, tool=tool, limit=limit))

    # Promotions

    async def get_promotion(self, workspace: str, namespace: str) -> StoredPromotion | None:
        """What was promoted in a namespace."""
        return await self._readers.run(
            partial(promotions.get, workspace=workspace, namespace=namespace)
        )

    async def list_promotions(self, workspace: str) -> list[StoredPromotion]:
        """All that hold in a workspace, by namespace."""
        return await self._readers.run(partial(promotions.list_all, workspace=workspace))

    async def change_promotions(self, events: Sequence[PromotionEvent]) -> None:
        """Apply changes, all or none of them, and add them to the histories."""
        if events:
            kept = tuple(events)
            told = dict.fromkeys(event.workspace for event in kept)
            await self._write(
                partial(promotions.change, events=kept),
                *(partial(Change, workspace, registry=True) for workspace in told),
            )

    async def promotion_history(
        self, workspace: str, namespace: str, limit: int
    ) -> list[PromotionEvent]:
        """The latest changes in a namespace, newest first."""
        return await self._readers.run(
            partial(promotions.history, workspace=workspace, namespace=namespace, limit=limit)
        )

    async def pending_promotions(self, workspace: str, limit: int) -> list[QueuedPromotion]:
        """The oldest promotions that have no document yet, oldest first."""
        return await self._queued(promotions.pending, workspace, limit)

    # Tools and schemas

    async def put_tool(self, tool: StoredTool) -> None:
        """Register a tool, or replace the one of the same id in the same workspace."""
        await self._write(
            partial(tools.put, stored=tool), partial(Change, tool.workspace, registry=True)
        )

    async def get_tool(self, workspace: str, tool_id: str) -> StoredTool | None:
        """A tool by its id."""
        return await self._readers.run(partial(tools.get, workspace=workspace, tool_id=tool_id))

    async def get_tools(self, workspace: str, tool_ids: Sequence[str]) -> list[StoredTool]:
        """Those of the tools that exist, in the order of the ids, each once."""
        return await self._readers.run(
            partial(tools.get_several, workspace=workspace, tool_ids=tuple(tool_ids))
        )

    async def find_tool(self, tool: ToolKey) -> StoredTool | None:
        """The tool that executions name so; the latest put, when several ids share the name."""
        return await self._readers.run(partial(tools.find, tool=tool))

    async def list_tools(self, workspace: str) -> list[StoredTool]:
        """All tools of a workspace, by id."""
        return await self._readers.run(partial(tools.list_all, workspace=workspace))

    async def delete_tool(self, workspace: str, tool_id: str) -> bool:
        """Remove a tool; False when there was none."""
        return await self._write(
            partial(tools.delete, workspace=workspace, tool_id=tool_id),
            partial(Change, workspace, registry=True),
        )

    async def get_schema(self, workspace: str, schema_hash: str) -> JsonObject | None:
        """An input schema by its hash."""
        return await self._readers.run(
            partial(execution_log.get_schema, workspace=workspace, schema_hash=schema_hash)
        )

    # Suggestions

    async def save_suggestions(self, suggestions: Sequence[IssuedSuggestion]) -> None:
        """Keep suggestions that were answered; the same id again changes nothing."""
        if suggestions:
            await self._writer.run_together(suggestion_log.save, tuple(suggestions))

    async def get_suggestion(self, workspace: str, suggestion_id: str) -> IssuedSuggestion | None:
        """A suggestion that was answered earlier."""
        return await self._readers.run(
            partial(suggestion_log.get, workspace=workspace, suggestion_id=suggestion_id)
        )

    async def add_outcomes(self, outcomes: Sequence[SuggestionOutcome]) -> int:
        """Keep outcomes; how many were new. A suggestion has one per execution, the first."""
        if not outcomes:
            return 0
        kept = tuple(outcomes)
        return await self._writer.run(partial(suggestion_log.add_outcomes, outcomes=kept))

    async def pending_outcomes(self, workspace: str, limit: int) -> list[SuggestionOutcome]:
        """The oldest outcomes that nothing was learned from yet, oldest first."""
        return await self._queued(suggestion_log.pending_outcomes, workspace, limit)

    async def judged_suggestions(self, workspace: str, limit: int) -> list[JudgedSuggestion]:
        """The latest outcomes of suggestions with an estimate, latest first."""
        return await self._readers.run(
            partial(suggestion_log.judged, workspace=workspace, limit=limit)
        )

    async def workspaces_with_outcomes(self) -> list[str]:
        """Workspaces in which an outcome was said, in order."""
        return await self._readers.run(suggestion_log.workspaces)

    async def latest_mended(self, workspace: str, limit: int) -> list[MendedFailure]:
        """The latest repairs of which both executions are there, latest first."""
        return await self._readers.run(partial(mended.latest, workspace=workspace, limit=limit))

    async def latest_followed(self, workspace: str, limit: int) -> list[MendedFailure]:
        """Of the latest outcomes the successes that name a failure which is there."""
        return await self._readers.run(
            partial(mended.latest_followed, workspace=workspace, limit=limit)
        )

    async def add_answers(self, workspace: str, counts: Sequence[AnswerCount]) -> None:
        """Add to what is counted of answers by day and kind; all of them or none."""
        if counts:
            added = tuple(counts)
            await self._writer.run(partial(answers.add, workspace=workspace, counts=added))

    async def list_answers(self, workspace: str, since: date) -> list[AnswerCount]:
        """What was counted from a day on, by day and then kind."""
        return await self._readers.run(
            partial(answers.list_since, workspace=workspace, since=since)
        )

    # Usage and consolidated patterns

    async def get_usage(
        self, workspace: str, tools: Sequence[tuple[ToolKey, date]]
    ) -> list[UsageRow]:
        """The usage of these tools on these days, in their order; the unknown are left out."""
        return await self._readers.run(partial(usage.get, workspace=workspace, tools=tuple(tools)))

    async def put_usage(self, rows: Sequence[UsageRow], lease: Lease | None = None) -> None:
        """Keep the usage of tools on days, in the place of what was known of the same day."""
        if rows:
            await self._writer.run(fenced(lease, partial(usage.put, rows=tuple(rows))))

    async def scan_usage(
        self, workspace: str, since: date, after: tuple[date, ToolKey] | None, limit: int
    ) -> list[UsageRow]:
        """Usage from a day on, by day and then tool; those behind `after`, at most `limit`."""
        return await self._readers.run(
            partial(usage.scan, workspace=workspace, since=since, after=after, limit=limit)
        )

    async def get_patterns(self, workspace: str, pattern_ids: Sequence[str]) -> list[PatternRow]:
        """Those of the patterns that exist, in the order of the ids."""
        return await self._readers.run(
            partial(patterns.get, workspace=workspace, pattern_ids=tuple(pattern_ids))
        )

    async def put_patterns(
        self,
        workspace: str,
        rows: Sequence[PatternRow],
        removed: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> None:
        """Keep patterns in the place of those of the same id, and drop the removed; at once."""
        put = partial(patterns.put, workspace=workspace, rows=tuple(rows), removed=tuple(removed))
        await self._writer.run(fenced(lease, put))

    async def list_patterns(self, workspace: str, limit: int) -> list[PatternRow]:
        """The patterns of most failures, most first; of equals the latest seen, then by id."""
        return await self._readers.run(
            partial(patterns.list_latest, workspace=workspace, limit=limit)
        )

    # Facts

    async def get_fact(self, name: str) -> str | None:
        """A fact about the store as a whole."""
        return await self._readers.run(partial(facts.get, name=name))

    async def put_fact(self, name: str, value: str, lease: Lease | None = None) -> None:
        """Set a fact about the store as a whole."""

        def put(connection: sqlite3.Connection) -> None:
            facts.put(connection, name, value)
            changes.tell(connection, [Change("", facts=(name,))])

        await self._writer.run(fenced(lease, put))

    async def _queued(
        self,
        query: Callable[[sqlite3.Connection, str, int], Result],
        workspace: str,
        limit: int,
    ) -> Result:
        """What waits in a queue that the log fills."""
        await self._catch_up()
        return await self._readers.run(lambda connection: query(connection, workspace, limit))

    async def _write(
        self,
        operation: Callable[[sqlite3.Connection], Result],
        *told: Callable[[], Change],
    ) -> Result:
        """Write to the log, and tell the service that this process stands beside."""
        if not self._is_beside:
            return await self._writer.run(operation)

        def write_and_tell(connection: sqlite3.Connection) -> Result:
            result = operation(connection)
            changes.tell(connection, [change() for change in told])
            return result

        return await self._writer.run(write_and_tell)
