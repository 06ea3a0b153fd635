"""Statements about what users said of executions."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from mongo import codec
from mongo.records import CorrectionRecord, ToolKey
from mongo.sqlite import bulk

_ADD = """
INSERT INTO corrections (
    workspace, correction_id, execution_id, kind, text, corrected_at, boundary_axes, agent
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, correction_id) DO NOTHING
"""

_COLUMNS = """
c.position, c.workspace, c.correction_id, c.execution_id, c.kind, c.text, c.corrected_at,
c.boundary_axes, c.agent, t.server_name, t.tool_name
"""

_WITH_TOOL = """
corrections AS c LEFT JOIN correction_tools AS t
ON t.workspace = c.workspace AND t.position = c.position
"""

_GET = f"""
SELECT {_COLUMNS} FROM {_WITH_TOOL} WHERE c.workspace = ? AND c.correction_id = ?
"""  # noqa: S608  # the columns are those above

_AT = f"""
SELECT json_group_array(json_array({_COLUMNS}))
FROM json_each(?) AS wanted
CROSS JOIN {_WITH_TOOL} WHERE c.workspace = ? AND c.position = wanted.value
"""  # noqa: S608  # the columns are those above

_PENDING = """
SELECT json_group_array(position) FROM (
    SELECT position FROM pending_corrections WHERE workspace = ? ORDER BY position LIMIT ?
)
"""

_UNTIED = """
SELECT json_group_array(c.position) FROM json_each(?) AS wanted
CROSS JOIN corrections AS c ON c.workspace = ? AND c.execution_id = wanted.value
WHERE NOT EXISTS (
    SELECT 1 FROM correction_tools AS t
    WHERE t.workspace = c.workspace AND t.position = c.position
)
AND NOT EXISTS (
    SELECT 1 FROM pending_corrections AS p
    WHERE p.workspace = c.workspace AND p.position = c.position
)
AND c.id <= coalesce((SELECT id FROM seen WHERE name = 'corrections'), c.id)
"""

_LATEST = """
SELECT json_group_array(position) FROM (
    SELECT position FROM corrections WHERE workspace = ? ORDER BY position DESC LIMIT ?
)
"""

_LATEST_OF_TOOL = """
SELECT json_group_array(position) FROM (
    SELECT position FROM correction_tools
    WHERE workspace = ? AND server_name = ? AND tool_name = ? ORDER BY position DESC LIMIT ?
)
"""

_TIE = """
INSERT INTO correction_tools (workspace, position, server_name, tool_name)
SELECT c.workspace, c.position, json_extract(tied.value, '$[1]'), json_extract(tied.value, '$[2]')
FROM json_each(?) AS tied
CROSS JOIN corrections AS c
    ON c.workspace = ? AND c.position = json_extract(tied.value, '$[0]')
WHERE TRUE
ON CONFLICT (workspace, position) DO UPDATE SET
    server_name = excluded.server_name, tool_name = excluded.tool_name
"""

_LOOKED_AT = """
DELETE FROM pending_corrections
WHERE workspace = ? AND position IN (SELECT value FROM json_each(?))
"""


def add(connection: sqlite3.Connection, correction: CorrectionRecord) -> bool:
    """Keep a correction, not tied yet; False when its id is known. A trigger queues it."""
    values = (
        correction.workspace,
        correction.correction_id,
        correction.execution_id,
        correction.kind,
        correction.text,
        codec.to_microseconds(correction.corrected_at),
        json.dumps(correction.boundary_axes),
        correction.agent,
    )
    return connection.execute(_ADD, values).rowcount > 0


def get(
    connection: sqlite3.Connection, workspace: str, correction_id: str
) -> CorrectionRecord | None:
    """A correction by its id."""
    row = connection.execute(_GET, (workspace, correction_id)).fetchone()
    return None if row is None else _correction(row)


def pending(connection: sqlite3.Connection, workspace: str, limit: int) -> list[CorrectionRecord]:
    """The oldest that were not looked at yet, oldest first."""
    return _found(connection, workspace, _PENDING, (workspace, max(limit, 0)))


def untied_of(
    connection: sqlite3.Connection, workspace: str, execution_ids: Sequence[str]
) -> list[CorrectionRecord]:
    """Those of these executions that were looked at and have no tool, oldest first."""
    wanted = bulk.values(dict.fromkeys(execution_ids))
    return _found(connection, workspace, _UNTIED, (wanted, workspace))


def list_latest(
    connection: sqlite3.Connection, workspace: str, limit: int, tool: ToolKey | None
) -> list[CorrectionRecord]:
    """The latest of a workspace, or those that are tied to one tool; newest first."""
    if tool is None:
        return _found(connection, workspace, _LATEST, (workspace, max(limit, 0)))[::-1]
    key = (workspace, codec.server_column(tool.server_name), tool.tool_name)
    return _found(connection, workspace, _LATEST_OF_TOOL, (*key, max(limit, 0)))[::-1]


def mark_learned(
    connection: sqlite3.Connection,
    workspace: str,
    corrections: Sequence[tuple[int, ToolKey | None]],
) -> None:
    """Take corrections off the queue, and tie those that come with a tool."""
    tied = bulk.values(
        (position, codec.server_column(tool.server_name), tool.tool_name)
        for position, tool in corrections
        if tool is not None
    )
    connection.execute(_TIE, (tied, workspace))
    looked_at = bulk.values(position for position, _ in corrections)
    connection.execute(_LOOKED_AT, (workspace, looked_at))


def _found(
    connection: sqlite3.Connection,
    workspace: str,
    query: str,
    parameters: tuple[bulk.SqlValue, ...],
) -> list[CorrectionRecord]:
    """Those at the positions that a query finds, oldest first."""
    (positions,) = connection.execute(query, parameters).fetchone()
    rows = bulk.fetch(connection, _AT, (positions, workspace))
    return [_correction(row) for row in sorted(rows)]


def _correction(row: Sequence[Any]) -> CorrectionRecord:
    (
        position, workspace, correction_id, execution_id, kind, text, corrected_at,
        boundary_axes, agent, server, tool_name,
    ) = row  # fmt: skip
    return CorrectionRecord(
        workspace=workspace,
        correction_id=correction_id,
        execution_id=execution_id,
        kind=kind,
        text=text,
        corrected_at=codec.from_microseconds(corrected_at),
        boundary_axes=tuple(json.loads(boundary_axes)),
        agent=agent,
        tool=None
        if tool_name is None
        else ToolKey(workspace, codec.server_name(server), tool_name),
        position=position,
    )
