"""Statements about the health of tools."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mongo import codec
from mongo.records import HealthRow, ToolKey
from mongo.sqlite import bulk

_INTO = "health (workspace, server_name, tool_name, data, used_at, troubled_at)"

_REPLACE = """
ON CONFLICT (workspace, server_name, tool_name) DO UPDATE SET
    data = excluded.data, used_at = excluded.used_at, troubled_at = excluded.troubled_at
"""

# With a place each, since JSON groups come in any order; JSON cannot carry bytes.
_GET = """
SELECT json_group_array(json_array(wanted.key, hex(h.data), h.used_at, h.troubled_at))
FROM json_each(?) AS wanted
CROSS JOIN health AS h
    ON h.workspace = json_extract(wanted.value, '$[0]')
    AND h.server_name = json_extract(wanted.value, '$[1]')
    AND h.tool_name = json_extract(wanted.value, '$[2]')
"""

_LATEST = """
SELECT json_group_array(json_array(-{moment}, server_name, tool_name)) FROM (
    SELECT {moment}, server_name, tool_name FROM health
    WHERE workspace = ? AND tool_name <> '' AND {moment} IS NOT NULL
    ORDER BY {moment} DESC, server_name, tool_name LIMIT ?
)
"""
_LATEST_USED = _LATEST.format(moment="used_at")
_LATEST_TROUBLED = _LATEST.format(moment="troubled_at")

_ROWS_AT_ONCE = 64
"""Rows that come out as one text: 5 MB of it where each has 40 kB, which are twice that in
hexadecimal digits. Reading more holds up the event loop, for the interpreter is locked meanwhile.
"""


def put(connection: sqlite3.Connection, rows: Sequence[HealthRow]) -> None:
    """Keep what was counted, in the place of what was counted before."""
    bulk.insert(
        connection,
        _INTO,
        (
            (
                row.tool.workspace,
                codec.server_column(row.tool.server_name),
                row.tool.tool_name,
                row.data,
                codec.to_microseconds(row.used_at),
                None if row.troubled_at is None else codec.to_microseconds(row.troubled_at),
            )
            for row in rows
        ),
        _REPLACE,
    )


def get(connection: sqlite3.Connection, tools: Sequence[ToolKey]) -> list[HealthRow]:
    """Of those tools of which any is known, in their order; each once."""
    distinct = list(dict.fromkeys(tools))
    return [
        row
        for start in range(0, len(distinct), _ROWS_AT_ONCE)
        for row in _get(connection, distinct[start : start + _ROWS_AT_ONCE])
    ]


def list_latest(
    connection: sqlite3.Connection, workspace: str, limit: int, *, troubled: bool
) -> list[HealthRow]:
    """The latest used tools of a workspace, or the latest troubled ones; the latest first."""
    return get(connection, list_names(connection, workspace, limit, troubled=troubled))


def list_names(
    connection: sqlite3.Connection, workspace: str, limit: int, *, troubled: bool = False
) -> list[ToolKey]:
    """As `list_latest`, without reading what is known of them."""
    query = _LATEST_TROUBLED if troubled else _LATEST_USED
    return [
        ToolKey(workspace, codec.server_name(server), tool_name)
        for _, server, tool_name in sorted(
            bulk.fetch(connection, query, (workspace, max(limit, 0)))
        )
    ]


def workspaces(connection: sqlite3.Connection) -> list[str]:
    """Workspaces of which any health is known, in order."""
    rows = connection.execute("SELECT DISTINCT workspace FROM health ORDER BY workspace")
    return [workspace for (workspace,) in rows]


def _get(connection: sqlite3.Connection, tools: Sequence[ToolKey]) -> list[HealthRow]:
    wanted = bulk.values(
        (tool.workspace, codec.server_column(tool.server_name), tool.tool_name) for tool in tools
    )
    return [
        _row(tools[place], *values)
        for place, *values in sorted(bulk.fetch(connection, _GET, (wanted,)))
    ]


def _row(tool: ToolKey, data: str, used_at: int, troubled_at: int | None) -> HealthRow:
    troubled: datetime | None = None
    if troubled_at is not None:
        troubled = codec.from_microseconds(troubled_at)
    return HealthRow(tool, bytes.fromhex(data), codec.from_microseconds(used_at), troubled)
