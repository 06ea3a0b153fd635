"""Statements about what tools were asked for, day by day."""

import sqlite3
from collections.abc import Sequence
from datetime import date

from mongo import codec
from mongo.records import ToolKey, UsageRow
from mongo.sqlite import bulk

_REPLACE = """
ON CONFLICT (workspace, day, server_name, tool_name) DO UPDATE SET data = excluded.data
"""

# With a place each, since JSON groups come in any order; JSON cannot carry bytes.
_GET = """
SELECT json_group_array(json_array(wanted.key, hex(u.data)))
FROM json_each(?) AS wanted
CROSS JOIN usage AS u
    ON u.workspace = ?
    AND u.day = json_extract(wanted.value, '$[0]')
    AND u.server_name = json_extract(wanted.value, '$[1]')
    AND u.tool_name = json_extract(wanted.value, '$[2]')
"""

_SCAN = """
SELECT json_group_array(json_array(day, server_name, tool_name, hex(data))) FROM (
    SELECT * FROM usage
    WHERE workspace = ? AND day >= ? AND (day, server_name, tool_name) > (?, ?, ?)
    ORDER BY day, server_name, tool_name LIMIT ?
)
"""


def put(connection: sqlite3.Connection, rows: Sequence[UsageRow]) -> None:
    """Keep what was counted, in the place of what was known of the same tool and day."""
    bulk.insert(
        connection,
        "usage (workspace, day, server_name, tool_name, data)",
        ((row.tool.workspace, *_key(row.tool, row.day), row.data) for row in rows),
        _REPLACE,
    )


def get(
    connection: sqlite3.Connection, workspace: str, tools: Sequence[tuple[ToolKey, date]]
) -> list[UsageRow]:
    """Of those tools and days of which any is known, in their order; each once."""
    distinct = list(dict.fromkeys(tools))
    wanted = bulk.values(_key(tool, day) for tool, day in distinct)
    rows = sorted(bulk.fetch(connection, _GET, (wanted, workspace)))
    found = [(*distinct[place], bytes.fromhex(data)) for place, data in rows]
    return [UsageRow(tool, day, data) for tool, day, data in found]


def scan(
    connection: sqlite3.Connection,
    workspace: str,
    since: date,
    after: tuple[date, ToolKey] | None,
    limit: int,
) -> list[UsageRow]:
    """From a day on, by day and then tool; those behind `after`."""
    behind = ("", "", "") if after is None else _key(after[1], after[0])
    bounds = (workspace, since.isoformat(), *behind, max(limit, 0))
    return [
        UsageRow(
            ToolKey(workspace, codec.server_name(server), tool_name),
            date.fromisoformat(day),
            bytes.fromhex(data),
        )
        for day, server, tool_name, data in sorted(bulk.fetch(connection, _SCAN, bounds))
    ]


def _key(tool: ToolKey, day: date) -> tuple[str, str, str]:
    return day.isoformat(), codec.server_column(tool.server_name), tool.tool_name
