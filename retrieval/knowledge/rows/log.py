"""Reading a store as what it holds: executions, marks, histories of promotions, and how much."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from aftercall.models import Execution
from mongo.contents import (
    FailureRecord,
    IssuedSuggestion,
    PromotionEvent,
    StoredExecution,
    execution_of,
)
from mongo.protocol import EventLog, Store
from mongo.records import Event, ToolKey, decode_json
from retrieval.knowledge.memory import DOCUMENT, REPAIR, TROUBLE, VECTOR, MendedFailure, tool_of_row
from retrieval.knowledge.session.session_calls import EarlierCall, extract_values, session_call


async def read_executions(
    log: EventLog, workspace: str, ids: Sequence[str]
) -> list[StoredExecution]:
    """Return those of the executions that exist, in the order of the ids; without input schemas."""
    return [execution_of(each) for each in await log.find_events(workspace, "execution", ids)]


async def read_marks(log: EventLog, tool: ToolKey, limit: int) -> list[FailureRecord]:
    """Return the latest marked failures of one tool, newest first."""
    found = await log.latest_events(tool.workspace, "mark", limit, tool=tool)
    return [replace(decode_json(FailureRecord, e.data), principal=e.principal) for e in found]


async def read_promotion_history(
    log: EventLog, workspace: str, namespace: str, limit: int
) -> list[PromotionEvent]:
    """Return the latest changes of a namespace's promotion, newest first."""
    about = ToolKey(workspace, None, namespace)
    found = await log.latest_events(workspace, "promotion", limit, tool=about)
    return [decode_json(PromotionEvent, each.data) for each in found]


async def read_suggestion(
    log: EventLog, workspace: str, suggestion_id: str
) -> IssuedSuggestion | None:
    """Return a suggestion that was answered earlier."""
    found = await log.find_events(workspace, "suggestion", [suggestion_id])
    if found:
        return decode_json(IssuedSuggestion, found[0].data)
    return None


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How much a store holds, over all workspaces or in one."""

    executions: int
    pending: int
    """Events that nothing was learned from yet, and vectors that are to be made or removed."""
    documents: int
    pending_vectors: int = 0
    """The vectors among `pending`: of what is learned, but not found by its likeness yet."""


async def count_rows(store: Store, workspace: str | None = None) -> StoreCounts:
    """Return how much there is; cheap enough for a health page."""
    # The cursors first: the log only grows, so none of them is beyond what is read after it.
    cursors = await store.knowledge.read_cursors()
    heads = await store.events.read_heads()
    asked = [each for each in heads if workspace in (None, each)]
    behind = sum(
        heads[each].position - (cursors[each].position if each in cursors else 0) for each in asked
    )
    vectors = await store.knowledge.count_rows(VECTOR.name, workspace)
    return StoreCounts(
        executions=sum(heads[each].counts.get("execution", 0) for each in asked),
        pending=behind + vectors,
        documents=await store.knowledge.count_rows(DOCUMENT.name, workspace),
        pending_vectors=vectors,
    )


async def troubled_tools(store: Store, workspace: str, limit: int) -> list[ToolKey]:
    """Tools that have trouble, the latest troubled first."""
    rows = await store.knowledge.scan_rows(workspace, TROUBLE.name, limit, by="rank")
    return [tool_of_row(workspace, row.key) for row in rows]


async def lag_s(store: Store, workspace: str) -> float:
    """Seconds that the oldest event has waited to be learned, by the log's clock."""
    cursor = (await store.knowledge.read_cursors()).get(workspace)
    waiting = await store.events.read_after(workspace, cursor.position if cursor else 0, 1)
    if not waiting:
        return 0.0
    return max(0.0, (datetime.now(UTC) - waiting[0].received_at).total_seconds())


async def load_execution(log: EventLog, workspace: str, execution_id: str) -> Execution | None:
    """Return an execution with its input schema; None for an unknown id."""
    found = await log.find_events(workspace, "execution", [execution_id])
    if not found:
        return None
    stored = execution_of(found[0])
    if stored.schema_hash is None:
        return stored.execution
    schemas = await log.read_schemas(workspace, [stored.schema_hash])
    return stored.execution.model_copy(update={"input_schema": schemas.get(stored.schema_hash)})


async def read_latest_repairs(store: Store, tool: ToolKey, limit: int) -> list[MendedFailure]:
    """Return the latest repairs of one tool, by agents and by suggestions, newest first."""
    rows = await store.knowledge.scan_rows(tool.workspace, REPAIR.name, limit, by="rank", tool=tool)
    return [REPAIR.decode_row(row) for row in rows]


_MAX_WHOLE = 300_000
"""Bytes of a session's latest events whose results are looked at as a whole: some 5 ms."""


def session_calls(earlier: Sequence[Event]) -> tuple[EarlierCall, ...]:
    """Return the successes of a session, each with its plain values by place, the latest last.

    Results are kept as a whole for the latest calls, as far as they are small enough together.
    """
    found: list[EarlierCall] = []
    size = 0
    for event in reversed(earlier):
        call = execution_of(event).execution
        if call.outcome == "success":
            size += len(event.data)
            whole = call.result if size <= _MAX_WHOLE else None
            values = extract_values(call.result)
            found.append(session_call(call.tool_name, call.parameters, values, whole))
    return tuple(reversed(found))
