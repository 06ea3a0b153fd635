"""Executions, tools and suggestions for the tests of log stores."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from aftercall.json_values import JsonObject, content_hash
from aftercall.models import Evidence, Execution, ExecutionError, Promotion, Suggestion, Tool
from mongo.protocol import LogStore
from mongo.records import (
    CorrectionRecord,
    FailureRecord,
    IssuedSuggestion,
    NewExecution,
    PromotionEvent,
    StoredPromotion,
    StoredTool,
    ToolKey,
)

WORKSPACE = "default"
SEARCH = ToolKey(WORKSPACE, "rag-server", "search")
SCHEMA: JsonObject = {"type": "object", "properties": {"topK": {"maximum": 10}, "a": {}}}
SCHEMA_HASH = content_hash(SCHEMA)
START = datetime(2026, 2, 20, 14, 30, tzinfo=UTC)

_IDS = UUID("5f0c6a7e-4a3e-4a52-8a3f-0d3c1f9e7b21")


def make_id(number: int) -> str:
    """The same UUID for the same number."""
    return str(uuid5(_IDS, str(number)))


def make_execution(
    number: int,
    *,
    tool: ToolKey = SEARCH,
    session_id: str | None = "s-1",
    parameters: JsonObject | None = None,
    has_failed: bool = True,
    schema: JsonObject | None = None,
    agent: str = "librarian",
) -> NewExecution:
    """An execution whose id follows from `number` and whose content from all arguments."""
    execution = Execution(
        execution_id=make_id(number),
        timestamp=START + timedelta(seconds=number),
        agent=agent,
        server_name=tool.server_name,
        tool_name=tool.tool_name,
        parameters={"topK": number} if parameters is None else parameters,
        outcome="failure" if has_failed else "success",
        error=ExecutionError(message="topK must be <= 10") if has_failed else None,
        session_id=session_id,
        sequence=number,
    )
    return NewExecution(
        execution,
        content_hash(execution.model_dump(mode="json")),
        schema_hash=content_hash(schema) if schema is not None else None,
        input_schema=schema,
    )


def make_executions(count: int, *, first: int = 0) -> list[NewExecution]:
    return [make_execution(number) for number in range(first, first + count)]


def make_tool(
    tool_id: str, *, tool: ToolKey = SEARCH, description: str = "finds", schema: bool = False
) -> StoredTool:
    return StoredTool(
        tool.workspace,
        Tool(
            tool_id=tool_id,
            name=tool.tool_name,
            server_name=tool.server_name,
            description=description,
            input_schema=SCHEMA if schema else None,
            schema_hash=SCHEMA_HASH if schema else None,
            updated_at=START,
        ),
    )


def make_suggestion(
    number: int,
    *,
    lesson: str = "topK is at most 10",
    estimate: float | None = 0.875,
    workspace: str = WORKSPACE,
) -> IssuedSuggestion:
    return IssuedSuggestion(
        workspace=workspace,
        suggestion=Suggestion.model_validate(
            {
                "suggestionId": make_id(number),
                "action": "change_parameters",
                "changes": [
                    {"op": "replace", "path": "/topK", "from": 50, "value": 10, "reason": "limit"},
                    {"op": "add", "path": "/page", "value": 1, "reason": "required"},
                    {"op": "remove", "path": "/offset", "from": None, "reason": "unknown"},
                ],
                "correctedParameters": {"topK": 10, "page": 1},
                "confidence": 0.9,
                "evidence": Evidence(repairs=2),
                "lesson": lesson,
            }
        ),
        tool=ToolKey(workspace, None, "search"),
        signature="topK must be <= <n>",
        edit_key="replace /topK",
        issued_at=START + timedelta(microseconds=7),
        estimate=estimate,
    )


def make_mark(
    number: int, workspace: str = WORKSPACE, *, tool: ToolKey = SEARCH, scenario: str = "find notes"
) -> FailureRecord:
    """A mark whose id follows from `number`; odd ones name a version and an execution."""
    is_odd = number % 2 == 1
    return FailureRecord(
        tool=tool._replace(workspace=workspace),
        tool_id="rag/search",
        mark_id=make_id(number),
        version="1.1.0" if is_odd else None,
        scenario=scenario,
        error_message="nothing found",
        severity="high",
        marked_at=START + timedelta(seconds=number, microseconds=7),
        negative_tags=("not-for-notes", "not-für-\u2603") if is_odd else (),
        execution_id=make_id(1000 + number) if is_odd else None,
    )


def make_correction(
    number: int, workspace: str = WORKSPACE, *, text: str = "that is no list of films"
) -> CorrectionRecord:
    """A correction whose ids follow from `number`; odd ones name axes and an agent."""
    is_odd = number % 2 == 1
    return CorrectionRecord(
        workspace=workspace,
        correction_id=make_id(number),
        execution_id=make_id(1000 + number),
        kind="wrong_tool_boundary" if is_odd else "low_utility",
        text=text,
        corrected_at=START + timedelta(seconds=number, microseconds=7),
        boundary_axes=("transport", "HTML-\u2603") if is_odd else (),
        agent="librarian" if is_odd else None,
    )


def make_promotion_event(
    namespace: str,
    version: str = "1.1.0",
    *,
    workspace: str = WORKSPACE,
    is_promoted: bool = True,
) -> PromotionEvent:
    """A promotion, or the removal of one."""
    promoted = StoredPromotion(
        workspace,
        namespace,
        Promotion(
            evolved_version=version,
            evolved_file="tools/search_v1_1.py",
            original_version="1.0.0",
            reason="Evolved to fix: timeout on large files",
            mutation="add streaming output",
            promoted_at=START,
        ),
        inherited_quality=0.65,
    )
    return PromotionEvent(
        workspace=workspace,
        namespace=namespace,
        at=START + timedelta(microseconds=7),
        action="promoted" if is_promoted else "removed",
        promoted=promoted if is_promoted else None,
    )


async def learn_anew(store: LogStore) -> int:
    """Forget what was learned and queue all there is, as a rebuild that learns nothing would.

    Returns the new generation.
    """
    return await store.adopt(await store.open_shadow(), {})
