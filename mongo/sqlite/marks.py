"""Statements about failures that somebody marked."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from mongo import codec
from mongo.records import FailureRecord, ToolKey
from mongo.sqlite import bulk

_ADD = """
INSERT INTO marks (
    workspace, mark_id, server_name, tool_name, tool_id, version, scenario, error_message,
    severity, marked_at, negative_tags, execution_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, mark_id) DO NOTHING
"""

_COLUMNS = """
m.position, m.workspace, m.mark_id, m.server_name, m.tool_name, m.tool_id, m.version, m.scenario,
m.error_message, m.severity, m.marked_at, m.negative_tags, m.execution_id
"""

_PENDING = f"""
SELECT json_group_array(json_array({_COLUMNS})) FROM (
    SELECT m.* FROM pending_marks AS p
    CROSS JOIN marks AS m ON m.workspace = p.workspace AND m.position = p.position
    WHERE p.workspace = ? ORDER BY p.position LIMIT ?
) AS m
"""  # noqa: S608  # the columns are those above

_LIST = f"""
SELECT json_group_array(json_array({_COLUMNS})) FROM (
    SELECT * FROM marks
    WHERE workspace = ? AND server_name = ? AND tool_name = ? ORDER BY position DESC LIMIT ?
) AS m
"""  # noqa: S608  # the columns are those above

_OF_EXECUTIONS = f"""
SELECT json_group_array(json_array({_COLUMNS}))
FROM json_each(?) AS wanted
CROSS JOIN marks AS m ON m.workspace = ? AND m.execution_id = wanted.value
WHERE NOT EXISTS (
    SELECT 1 FROM pending_marks AS p WHERE p.workspace = m.workspace AND p.position = m.position
)
AND m.id <= coalesce((SELECT id FROM seen WHERE name = 'marks'), m.id)
"""  # noqa: S608  # the columns are those above

_LEARNED = """
DELETE FROM pending_marks WHERE workspace = ? AND position IN (SELECT value FROM json_each(?))
"""


def add(connection: sqlite3.Connection, mark: FailureRecord) -> bool:
    """Keep a mark; False when its id is known. A trigger queues it."""
    tool = mark.tool
    values = (
        tool.workspace, mark.mark_id, codec.server_column(tool.server_name), tool.tool_name,
        mark.tool_id, mark.version, mark.scenario, mark.error_message, mark.severity,
        codec.to_microseconds(mark.marked_at), json.dumps(mark.negative_tags), mark.execution_id,
    )  # fmt: skip
    return connection.execute(_ADD, values).rowcount > 0


def pending(connection: sqlite3.Connection, workspace: str, limit: int) -> list[FailureRecord]:
    """The oldest that nothing was learned from yet, oldest first."""
    rows = bulk.fetch(connection, _PENDING, (workspace, max(limit, 0)))
    return [_mark(row) for row in sorted(rows)]


def learned_of(
    connection: sqlite3.Connection, workspace: str, execution_ids: Sequence[str]
) -> list[FailureRecord]:
    """Those that name one of these executions and were learned from, oldest first."""
    wanted = bulk.values(dict.fromkeys(execution_ids))
    return [
        _mark(row) for row in sorted(bulk.fetch(connection, _OF_EXECUTIONS, (wanted, workspace)))
    ]


def list_latest(connection: sqlite3.Connection, tool: ToolKey, limit: int) -> list[FailureRecord]:
    """The latest of one tool, newest first."""
    key = (tool.workspace, codec.server_column(tool.server_name), tool.tool_name)
    rows = bulk.fetch(connection, _LIST, (*key, max(limit, 0)))
    return [_mark(row) for row in sorted(rows, reverse=True)]


def mark_learned(connection: sqlite3.Connection, workspace: str, positions: Sequence[int]) -> None:
    """Take marks off the queue."""
    connection.execute(_LEARNED, (workspace, bulk.values(positions)))


def _mark(row: list[Any]) -> FailureRecord:
    (
        position, workspace, mark_id, server, tool_name, tool_id, version, scenario,
        error_message, severity, marked_at, negative_tags, execution_id,
    ) = row  # fmt: skip
    return FailureRecord(
        tool=ToolKey(workspace, codec.server_name(server), tool_name),
        tool_id=tool_id,
        mark_id=mark_id,
        version=version,
        scenario=scenario,
        error_message=error_message,
        severity=severity,
        marked_at=codec.from_microseconds(marked_at),
        negative_tags=tuple(json.loads(negative_tags)),
        execution_id=execution_id,
        position=position,
    )
