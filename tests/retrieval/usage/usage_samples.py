"""Stored executions for the tests of usage."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from aftercall.wire import Execution
from mongo.records import StoredExecution, ToolKey

TOOL = ToolKey("default", "rag-server", "rag_query")
NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def stored(position: int, *, stands_for: int = 1, **fields: Any) -> StoredExecution:
    """A success of the tool at noon, unless the fields say otherwise."""
    given = {
        "execution_id": str(UUID(int=position)),
        "timestamp": NOON,
        "agent": "ada",
        "server_name": TOOL.server_name,
        "tool_name": TOOL.tool_name,
        "parameters": {},
        "outcome": "success",
        "duration_ms": 100.0,
        **fields,
    }
    return StoredExecution(
        position, TOOL.workspace, Execution.model_validate(given), None, NOON, stands_for
    )


def failed(position: int, **fields: Any) -> StoredExecution:
    """A failure, of whatever kind the caller says it is."""
    return stored(position, outcome="failure", error={"message": "no"}, **fields)
