"""Statements about registered tools."""

import sqlite3

from aftercall.wire import Tool
from mongo.records import StoredTool, ToolKey
from mongo.sqlite import bulk, codec, executions

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


def put(connection: sqlite3.Connection, stored: StoredTool) -> None:
    """Register a tool or replace it, and keep its input schema."""
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
    """Remove a tool; False when there was none."""
    return connection.execute(_DELETE, (workspace, tool_id)).rowcount > 0


def get(connection: sqlite3.Connection, workspace: str, tool_id: str) -> StoredTool | None:
    """A tool by its id."""
    return _stored(workspace, connection.execute(_GET, (workspace, tool_id)).fetchone())


def find(connection: sqlite3.Connection, tool: ToolKey) -> StoredTool | None:
    """The tool put last under this name."""
    server = codec.server_column(tool.server_name)
    row = connection.execute(_FIND, (tool.workspace, server, tool.tool_name)).fetchone()
    return _stored(tool.workspace, row)


def list_all(connection: sqlite3.Connection, workspace: str) -> list[StoredTool]:
    """All of a workspace, by id."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace,)))
    return [StoredTool(workspace, codec.parse(Tool, data)) for _, data in rows]


def _stored(workspace: str, row: tuple[str] | None) -> StoredTool | None:
    return None if row is None else StoredTool(workspace, codec.parse(Tool, row[0]))
