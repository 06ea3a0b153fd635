"""The embedded log store: the protocol over one writer and a pool of readers."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.wire import Execution
from mongo.records import (
    Appended,
    ChangedTool,
    CorrectionRecord,
    DocumentRow,
    FailureRecord,
    HealthRow,
    IndexCommit,
    IssuedSuggestion,
    JudgedSuggestion,
    KnowledgeRow,
    NewExecution,
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
)
from mongo.sqlite import (
    corrections,
    facts,
    health,
    knowledge,
    marks,
    promotions,
    recommendations,
    sessions,
    tools,
)
from mongo.sqlite import executions as execution_log
from mongo.sqlite import suggestions as suggestion_log
from mongo.sqlite.readers import ReadPool
from mongo.sqlite.writer import GroupCommitWriter


class SqliteLogStore:
    """A `mongo.protocol.LogStore` in one SQLite file; made by `open_sqlite_store`.

    `resources` is closed last to first by `close`; it holds the writer and the readers too.
    """

    name = "sqlite"

    def __init__(
        self, writer: GroupCommitWriter, readers: ReadPool, *, resources: ExitStack
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._resources = resources
        self._closing = asyncio.Lock()

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
        async with self._closing:
            await asyncio.to_thread(self._resources.close)

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
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[StoredExecution]:
        """Those of the executions that exist, in the order of the ids; without input schemas."""
        return await self._readers.run(
            partial(
                execution_log.get_several, workspace=workspace, execution_ids=tuple(execution_ids)
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
        self, sessions: Sequence[tuple[ToolKey, str]], limit: int, before: int = MAX_INTEGER
    ) -> list[StoredExecution]:
        """The latest `limit` calls of each tool in each session, oldest arrival first."""
        return await self._readers.run(
            partial(
                execution_log.session_calls, sessions=tuple(sessions), limit=limit, before=before
            )
        )

    # The indexing queue

    async def pending(self, limit: int) -> list[StoredExecution]:
        """The oldest executions that are not indexed yet, over all workspaces, oldest first.

        Fewer than `limit` when they are large (`executions.MAX_PENDING_BYTES`); none only when none
        is left.
        """
        return await self._readers.run(partial(execution_log.pending, limit=limit))

    async def commit_index(self, commit: IndexCommit) -> None:
        """Apply what an indexing batch learned and empty its queues, in one transaction."""
        await self._writer.run(partial(knowledge.commit_index, commit=commit))

    async def pending_vectors(self, limit: int) -> list[DocumentRow]:
        """The oldest documents that have no vector yet, oldest first."""
        return await self._readers.run(partial(knowledge.pending_vectors, limit=limit))

    async def mark_embedded(self, documents: Sequence[DocumentRow]) -> None:
        """Say that these documents have their vectors."""
        kept = tuple(documents)
        await self._writer.run(partial(knowledge.mark_embedded, documents=kept))

    async def removed_documents(self, limit: int) -> list[RemovedDocument]:
        """The oldest documents that are gone and may still have a vector, oldest first."""
        return await self._readers.run(partial(knowledge.removed_documents, limit=limit))

    async def mark_removed(self, documents: Sequence[RemovedDocument]) -> None:
        """Say that these documents have no vectors any more."""
        kept = tuple(documents)
        await self._writer.run(partial(knowledge.mark_removed, documents=kept))

    async def changed_tools(self, limit: int) -> list[ChangedTool]:
        """The oldest puts and deletions of tools that no document says yet, oldest first."""
        return await self._readers.run(partial(tools.changed, limit=limit))

    async def reset_index(self) -> None:
        """Forget all that was learned; queue all that it was learned from (for `rebuild`)."""
        await self._writer.run(knowledge.reset_index)

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

    async def pending_corrections(self, limit: int) -> list[CorrectionRecord]:
        """The oldest corrections that were not looked at yet, oldest first."""
        return await self._readers.run(partial(corrections.pending, limit=limit))

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

    async def pending_marks(self, limit: int) -> list[FailureRecord]:
        """The oldest marks that nothing was learned from yet, oldest first."""
        return await self._readers.run(partial(marks.pending, limit=limit))

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
            await self._writer.run(partial(promotions.change, events=tuple(events)))

    async def promotion_history(
        self, workspace: str, namespace: str, limit: int
    ) -> list[PromotionEvent]:
        """The latest changes in a namespace, newest first."""
        return await self._readers.run(
            partial(promotions.history, workspace=workspace, namespace=namespace, limit=limit)
        )

    async def pending_promotions(self, limit: int) -> list[QueuedPromotion]:
        """The oldest promotions that have no document yet, oldest first."""
        return await self._readers.run(partial(promotions.pending, limit=limit))

    # Tools and schemas

    async def put_tool(self, tool: StoredTool) -> None:
        """Register a tool, or replace the one of the same id in the same workspace."""
        await self._writer.run(partial(tools.put, stored=tool))

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
        return await self._writer.run(partial(tools.delete, workspace=workspace, tool_id=tool_id))

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

    async def pending_outcomes(self, limit: int) -> list[SuggestionOutcome]:
        """The oldest outcomes that nothing was learned from yet, oldest first."""
        return await self._readers.run(partial(suggestion_log.pending_outcomes, limit=limit))

    async def judged_suggestions(self, workspace: str, limit: int) -> list[JudgedSuggestion]:
        """The latest outcomes of suggestions with an estimate, latest first."""
        return await self._readers.run(
            partial(suggestion_log.judged, workspace=workspace, limit=limit)
        )

    async def workspaces_with_outcomes(self) -> list[str]:
        """Workspaces in which an outcome was said, in order."""
        return await self._readers.run(suggestion_log.workspaces)

    # Facts

    async def get_fact(self, name: str) -> str | None:
        """A fact about the store as a whole."""
        return await self._readers.run(partial(facts.get, name=name))

    async def put_fact(self, name: str, value: str) -> None:
        """Set a fact about the store as a whole."""
        await self._writer.run(partial(facts.put, name=name, value=value))
