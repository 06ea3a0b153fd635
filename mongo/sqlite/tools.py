"""Statements about registered tools."""

import sqlite3
from collections.abc import Sequence

from aftercall.models import Tool
from mongo import codec
from mongo.records import ChangedTool, StoredTool, ToolKey
from mongo.sqlite import bulk, executions

_INSERT = """
INSERT INTO tools (workspace, tool_id, server_name, tool_name, data) VALUES (?, ?, ?, ?, ?)
"""

_DELETE = "DELETE FROM tools WHERE workspace = ? AND tool_id = ?"

_GET = "SELECT data FROM tools WHERE workspace = ? AND tool_id = ?"

_FIND = """
SELECT data FROM tools WHERE workspace = ? AND server_name = ? AND tool_name = ?
ORDER BY revision DESC LIMIT 1
"""

_LIST = "SELECT json_group_array(json_array(tool_id, data)) FROM tools WHERE workspace = ?"

_SEVERAL = """
SELECT json_group_array(json_array(wanted.key, t.data))
FROM json_each(?) AS wanted
CROSS JOIN tools AS t ON t.workspace = ? AND t.tool_id = wanted.value
"""

_CHANGED = """
SELECT position, workspace, server_name, tool_name, tool_id FROM changed_tools
WHERE workspace = ? ORDER BY position LIMIT ?
"""

_LEARNED = """
DELETE FROM changed_tools WHERE workspace = ? AND position IN (SELECT value FROM json_each(?))
"""


def put(connection: sqlite3.Connection, stored: StoredTool) -> None:
    """Register a tool or replace it, and keep its input schema; a trigger queues it."""
    workspace, tool = stored.workspace, stored.tool
    connection.execute(_DELETE, (workspace, tool.tool_id))
    connection.execute(
        _INSERT,
        (
            workspace,
            tool.tool_id,
            codec.server_column(tool.server_name),
            tool.name,
            tool.model_dump_json(),
        ),
    )
    executions.save_schemas(connection, [(workspace, tool.schema_hash, tool.input_schema)])


def delete(connection: sqlite3.Connection, workspace: str, tool_id: str) -> bool:
    """Remove a tool; False when there was none. A trigger queues it."""
    return connection.execute(_DELETE, (workspace, tool_id)).rowcount > 0


def get(connection: sqlite3.Connection, workspace: str, tool_id: str) -> StoredTool | None:
    """A tool by its id."""
    return _stored(workspace, connection.execute(_GET, (workspace, tool_id)).fetchone())


def get_several(
    connection: sqlite3.Connection, workspace: str, tool_ids: Sequence[str]
) -> list[StoredTool]:
    """Those that exist, in the order of the ids."""
    wanted = bulk.values(dict.fromkeys(tool_ids))
    rows = sorted(bulk.fetch(connection, _SEVERAL, (wanted, workspace)))
    return [StoredTool(workspace, codec.parse(Tool, data)) for _, data in rows]


def find(connection: sqlite3.Connection, tool: ToolKey) -> StoredTool | None:
    """The tool put last under this name."""
    server = codec.server_column(tool.server_name)
    row = connection.execute(_FIND, (tool.workspace, server, tool.tool_name)).fetchone()
    return _stored(tool.workspace, row)


def list_all(connection: sqlite3.Connection, workspace: str) -> list[StoredTool]:
    """All of a workspace, by id."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace,)))
    return [StoredTool(workspace, codec.parse(Tool, data)) for _, data in rows]


def changed(connection: sqlite3.Connection, workspace: str, limit: int) -> list[ChangedTool]:
    """The oldest changes that no document says yet, oldest first."""
    rows = connection.execute(_CHANGED, (workspace, max(limit, 0))).fetchall()
    return [
        ChangedTool(position, ToolKey(workspace, codec.server_name(server), name), tool_id)
        for position, workspace, server, name, tool_id in rows
    ]


def mark_learned(connection: sqlite3.Connection, workspace: str, positions: Sequence[int]) -> None:
    """Take changes off the queue; a tool that changed again is at a later position."""
    connection.execute(_LEARNED, (workspace, bulk.values(positions)))


def _stored(workspace: str, row: tuple[str] | None) -> StoredTool | None:
    return None if row is None else StoredTool(workspace, codec.parse(Tool, row[0]))
