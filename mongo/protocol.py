"""The log store's protocol: the durable truth from which all else can be rebuilt.

Every method may be called concurrently. Every method raises `mongo.errors.StoreError` (a subclass
that says which) and nothing else when the store cannot do it.
"""

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from aftercall.json_values import MAX_INTEGER, JsonObject
from aftercall.models import Execution
from mongo.records import (
    AnswerCount,
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
from mongo.upkeep import Upkeep


class LogStore(Upkeep, Protocol):
    """Executions, indexing queues, what was learned, tools and suggestions, and their upkeep."""

    @property
    def name(self) -> str:
        """What `/status` calls this store, such as `sqlite`."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and release everything; closing twice does nothing."""
        ...

    # Executions

    async def append(self, workspace: str, executions: Sequence[NewExecution]) -> list[Appended]:
        """Store executions; durable (survives `kill -9` and power loss) when this returns.

        Returns one verdict per execution, in order. The same id twice within one call counts
        like two calls.
        """
        ...

    async def get_execution(self, workspace: str, execution_id: str) -> Execution | None:
        """The execution as stored, with its input schema put back; None when there is none."""
        ...

    async def get_executions(
        self, workspace: str, execution_ids: Sequence[str], *, learned: bool = False
    ) -> list[StoredExecution]:
        """Those of the executions that exist, in the order of the ids; without input schemas.

        With `learned`, only those learned from.
        """
        ...

    async def latest_call(
        self,
        workspace: str,
        session_id: str,
        *,
        server_name: str | None = None,
        tool_name: str | None = None,
    ) -> StoredExecution | None:
        """The latest call of a session, by its own time and sequence; None when there is none.

        A store may bound its work: the latest of those that arrived last will do.

        Args:
            workspace: the tenant.
            session_id: the session.
            server_name: only calls of tools of this server, when given.
            tool_name: only calls of tools of this name, when given.
        """
        ...

    async def session_calls(
        self,
        sessions: Sequence[tuple[ToolKey, str]],
        limit: int,
        before: int = MAX_INTEGER,
        *,
        learned: bool = False,
    ) -> list[StoredExecution]:
        """The latest `limit` calls of each tool in each session, oldest arrival first.

        Only those of a position below `before`; with `learned`, only those learned from.
        """
        ...

    # The indexing queues: a state on the record, not memory. One set per workspace

    async def queued_workspaces(self) -> list[str]:
        """Workspaces with anything in one of the queues below, in order.

        A store may leave out one whose queue has been filled within the last half second.
        """
        ...

    async def has_arrivals(self) -> bool:
        """Whether an execution waits in any workspace: cheap enough to be asked all the time."""
        ...

    async def pending(self, workspace: str, limit: int) -> list[StoredExecution]:
        """The oldest executions that are not indexed yet, oldest first.

        A store may return fewer than `limit` to bound its memory, but none only when none is left.
        """
        ...

    async def commit_index(self, commit: IndexCommit) -> None:
        """Apply what an indexing batch learned and empty its queues: whole or not at all.

        Raises:
            StoreFencedError: when its lease is not held any more, or its generation has passed;
                nothing was written.
        """
        ...

    async def pending_vectors(self, workspace: str, limit: int) -> list[DocumentRow]:
        """The oldest documents that have no vector yet, oldest first."""
        ...

    async def mark_embedded(self, documents: Sequence[DocumentRow]) -> None:
        """Say that these documents, as `pending_vectors` gave them, have their vectors.

        One that was queued again since then waits on, also one that a rebuild queued.
        """
        ...

    async def removed_documents(self, workspace: str, limit: int) -> list[RemovedDocument]:
        """The oldest documents that are gone and may still have a vector, oldest first."""
        ...

    async def mark_removed(self, documents: Sequence[RemovedDocument]) -> None:
        """Say that these documents have no vectors any more."""
        ...

    async def changed_tools(self, workspace: str, limit: int) -> list[ChangedTool]:
        """The oldest puts and deletions of tools that no document says yet, oldest first.

        Each id and name once: one that changes again, also while it is worked on, is queued at a
        later position instead.
        """
        ...

    async def counts(self, workspace: str | None = None) -> StoreCounts:
        """How much there is, in one workspace or over all; cheap enough for a health page."""
        ...

    # What was learned

    async def get_knowledge(self, tool: ToolKey) -> KnowledgeRow | None:
        """What is known of one tool."""
        ...

    async def get_documents(self, workspace: str, document_ids: Sequence[str]) -> list[DocumentRow]:
        """Those of the documents that exist, in the order of the ids."""
        ...

    async def list_repairs(self, tool: ToolKey, limit: int) -> list[RepairRow]:
        """The latest repairs of one tool, newest first."""
        ...

    async def get_statistics(self, tools: Sequence[ToolKey]) -> list[StatisticsRow]:
        """How these tools have fared, in their order; those of which nothing is known are left out.

        One round to the store, however many.
        """
        ...

    async def get_health(self, tools: Sequence[ToolKey]) -> list[HealthRow]:
        """The health of these tools, in their order; those of which nothing is known are left out.

        One round to the store, however many.
        """
        ...

    async def list_health(
        self, workspace: str, limit: int, *, troubled: bool = False
    ) -> list[HealthRow]:
        """The tools of a workspace, the latest used first; rows of an empty name are left out.

        With `troubled` only those that have trouble, the latest troubled first.
        """
        ...

    async def tools_with_health(self, workspace: str, limit: int) -> list[ToolKey]:
        """As `list_health`, the names only: however much is known of them, it is not read."""
        ...

    async def workspaces_with_health(self) -> list[str]:
        """Workspaces of which any health is known, in order."""
        ...

    # Corrections by users

    async def add_correction(self, correction: CorrectionRecord) -> bool:
        """Keep a correction and queue it; False when its id is known in the workspace."""
        ...

    async def pending_corrections(self, workspace: str, limit: int) -> list[CorrectionRecord]:
        """The oldest corrections that were not looked at yet, oldest first."""
        ...

    async def untied_corrections(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[CorrectionRecord]:
        """Corrections of these executions that were looked at before the execution was stored."""
        ...

    async def get_correction(self, workspace: str, correction_id: str) -> CorrectionRecord | None:
        """A correction by its id."""
        ...

    async def list_corrections(
        self, workspace: str, limit: int, *, tool: ToolKey | None = None
    ) -> list[CorrectionRecord]:
        """The latest corrections, newest first; of one tool, when given."""
        ...

    # Recommendations that somebody took up

    async def put_recommendation(self, recommendation: StoredRecommendation) -> None:
        """Keep what was done about a recommendation, in the place of what was done before."""
        ...

    async def list_recommendations(self, workspace: str) -> list[StoredRecommendation]:
        """All that were touched in a workspace, the latest touched first."""
        ...

    # Marked failures

    async def add_mark(self, mark: FailureRecord) -> bool:
        """Keep a marked failure and queue it; False when its id is known in the workspace."""
        ...

    async def pending_marks(self, workspace: str, limit: int) -> list[FailureRecord]:
        """The oldest marks that nothing was learned from yet, oldest first."""
        ...

    async def learned_marks(
        self, workspace: str, execution_ids: Sequence[str]
    ) -> list[FailureRecord]:
        """The marks that name one of these executions and were learned from, oldest first."""
        ...

    async def list_marks(self, tool: ToolKey, limit: int) -> list[FailureRecord]:
        """The latest marked failures of one tool, newest first."""
        ...

    # Promotions

    async def get_promotion(self, workspace: str, namespace: str) -> StoredPromotion | None:
        """What was promoted in a namespace."""
        ...

    async def list_promotions(self, workspace: str) -> list[StoredPromotion]:
        """All that hold in a workspace, by namespace."""
        ...

    async def change_promotions(self, events: Sequence[PromotionEvent]) -> None:
        """Apply changes, all or none of them, and add them to the histories."""
        ...

    async def promotion_history(
        self, workspace: str, namespace: str, limit: int
    ) -> list[PromotionEvent]:
        """The latest changes in a namespace, newest first."""
        ...

    async def pending_promotions(self, workspace: str, limit: int) -> list[QueuedPromotion]:
        """The oldest promotions that have no document yet, oldest first."""
        ...

    # Tools and schemas

    async def put_tool(self, tool: StoredTool) -> None:
        """Register a tool, or replace the one of the same id in the same workspace."""
        ...

    async def get_tool(self, workspace: str, tool_id: str) -> StoredTool | None:
        """A tool by its id."""
        ...

    async def get_tools(self, workspace: str, tool_ids: Sequence[str]) -> list[StoredTool]:
        """Those of the tools that exist, in the order of the ids, each once."""
        ...

    async def find_tool(self, tool: ToolKey) -> StoredTool | None:
        """The tool that executions name so; the latest put, when several ids share the name."""
        ...

    async def list_tools(self, workspace: str) -> list[StoredTool]:
        """All tools of a workspace, by id."""
        ...

    async def delete_tool(self, workspace: str, tool_id: str) -> bool:
        """Remove a tool; False when there was none."""
        ...

    async def get_schema(self, workspace: str, schema_hash: str) -> JsonObject | None:
        """An input schema by its hash."""
        ...

    # Suggestions

    async def save_suggestions(self, suggestions: Sequence[IssuedSuggestion]) -> None:
        """Keep suggestions that were answered; the same id again changes nothing."""
        ...

    async def get_suggestion(self, workspace: str, suggestion_id: str) -> IssuedSuggestion | None:
        """A suggestion that was answered earlier."""
        ...

    async def add_outcomes(self, outcomes: Sequence[SuggestionOutcome]) -> int:
        """Keep outcomes; how many were new.

        A suggestion has one outcome per execution, the first that was said; it waits in the queue
        until `commit_index` says that it was learned from.
        """
        ...

    async def pending_outcomes(self, workspace: str, limit: int) -> list[SuggestionOutcome]:
        """The oldest outcomes that nothing was learned from yet, oldest first."""
        ...

    async def judged_suggestions(self, workspace: str, limit: int) -> list[JudgedSuggestion]:
        """The latest outcomes of suggestions with an estimate, latest first."""
        ...

    async def workspaces_with_outcomes(self) -> list[str]:
        """Workspaces in which an outcome was said, in order."""
        ...

    async def latest_mended(self, workspace: str, limit: int) -> list[MendedFailure]:
        """The latest repairs of which both executions are there, latest first.

        Of the latest `limit` repairs of the workspace, whatever their tool.
        """
        ...

    async def latest_followed(self, workspace: str, limit: int) -> list[MendedFailure]:
        """The latest successes that followed a suggestion and name what they mend, latest first.

        A success that followed a suggestion teaches by its outcome and is no repair. Of the latest
        `limit` outcomes; those count whose execution and the failure that it names are there.
        """
        ...

    async def add_answers(self, workspace: str, counts: Sequence[AnswerCount]) -> None:
        """Add to what is counted of answers by day and kind; all of them or none."""
        ...

    async def list_answers(self, workspace: str, since: date) -> list[AnswerCount]:
        """What was counted from a day on, by day and then kind."""
        ...

    # Usage and consolidated patterns, which the nightly run makes

    async def get_usage(
        self, workspace: str, tools: Sequence[tuple[ToolKey, date]]
    ) -> list[UsageRow]:
        """The usage of these tools on these days, in their order; the unknown are left out."""
        ...

    async def put_usage(self, rows: Sequence[UsageRow], lease: Lease | None = None) -> None:
        """Keep the usage of tools on days, in the place of what was known of the same day.

        Raises:
            StoreFencedError: the lease, where one is given, is held no more, and somebody who took
                it since may have written the same days; nothing of theirs was changed.
        """
        ...

    async def scan_usage(
        self, workspace: str, since: date, after: tuple[date, ToolKey] | None, limit: int
    ) -> list[UsageRow]:
        """Usage from a day on, by day and then tool; those behind `after`, at most `limit`."""
        ...

    async def get_patterns(self, workspace: str, pattern_ids: Sequence[str]) -> list[PatternRow]:
        """Those of the patterns that exist, in the order of the ids."""
        ...

    async def put_patterns(
        self,
        workspace: str,
        rows: Sequence[PatternRow],
        removed: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> None:
        """Keep patterns in the place of those of the same id, and drop the removed; at once.

        Raises:
            StoreFencedError: the lease, where one is given, is held no more.
        """
        ...

    async def list_patterns(self, workspace: str, limit: int) -> list[PatternRow]:
        """The patterns of most failures, most first; of equals the latest seen, then by id."""
        ...

    # Small facts, such as which model made the vectors

    async def get_fact(self, name: str) -> str | None:
        """A fact about the store as a whole."""
        ...

    async def put_fact(self, name: str, value: str, lease: Lease | None = None) -> None:
        """Set a fact about the store as a whole.

        Raises:
            StoreFencedError: the lease, where one is given, is held no more.
        """
        ...
