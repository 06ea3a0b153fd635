"""Executions, tools and suggestions for the tests of log stores."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from aftercall.json_values import JsonObject, content_hash
from aftercall.wire import Evidence, Execution, ExecutionError, Suggestion, Tool
from mongo.records import IssuedSuggestion, NewExecution, StoredTool, ToolKey

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
