"""Statements about consolidated patterns of failures."""

import sqlite3
from collections.abc import Sequence

from mongo import codec
from mongo.records import PatternRow
from mongo.sqlite import bulk

_REPLACE = """
ON CONFLICT (workspace, pattern_id) DO UPDATE SET
    data = excluded.data, last_seen = excluded.last_seen, count = excluded.count
"""

_DELETE = """
DELETE FROM patterns WHERE workspace = ? AND pattern_id IN (SELECT value FROM json_each(?))
"""

# JSON cannot carry bytes, so they travel in hexadecimal.
_COLUMNS = "hex(p.data), p.last_seen, p.count"

_GET = f"""
SELECT json_group_array(json_array(p.pattern_id, {_COLUMNS}))
FROM json_each(?) AS wanted
CROSS JOIN patterns AS p ON p.workspace = ? AND p.pattern_id = wanted.value
"""  # noqa: S608  # the columns are those above

_LIST = f"""
SELECT json_group_array(json_array(-p.count, -p.last_seen, p.pattern_id, {_COLUMNS})) FROM (
    SELECT * FROM patterns WHERE workspace = ?
    ORDER BY count DESC, last_seen DESC, pattern_id LIMIT ?
) AS p
"""  # noqa: S608  # the columns are those above


def put(
    connection: sqlite3.Connection,
    workspace: str,
    rows: Sequence[PatternRow],
    removed: Sequence[str],
) -> None:
    """Keep patterns in the place of those of the same id, and drop the removed."""
    connection.execute(_DELETE, (workspace, bulk.values(removed)))
    bulk.insert(
        connection,
        "patterns (workspace, pattern_id, data, last_seen, count)",
        (
            (workspace, row.pattern_id, row.data, codec.to_microseconds(row.last_seen), row.count)
            for row in rows
        ),
        _REPLACE,
    )


def get(
    connection: sqlite3.Connection, workspace: str, pattern_ids: Sequence[str]
) -> list[PatternRow]:
    """Those that exist, in the order of the ids."""
    distinct = dict.fromkeys(pattern_ids)
    rows = bulk.fetch(connection, _GET, (bulk.values(distinct), workspace))
    found = {pattern_id: _row(workspace, pattern_id, *values) for pattern_id, *values in rows}
    return [found[pattern_id] for pattern_id in distinct if pattern_id in found]


def list_latest(connection: sqlite3.Connection, workspace: str, limit: int) -> list[PatternRow]:
    """Those of most failures, most first; of equals the latest seen, then by id."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace, max(limit, 0))))
    return [_row(workspace, pattern_id, *values) for _, _, pattern_id, *values in rows]


def _row(workspace: str, pattern_id: str, data: str, last_seen: int, count: int) -> PatternRow:
    return PatternRow(
        workspace, pattern_id, bytes.fromhex(data), codec.from_microseconds(last_seen), count
    )
