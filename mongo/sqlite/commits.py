"""What an indexing batch learned, written at once or not at all."""

import sqlite3

from mongo import codec
from mongo.errors import StoreFencedError
from mongo.records import IndexCommit, ToolKey
from mongo.sqlite import (
    bulk,
    corrections,
    health,
    leases,
    marks,
    promotions,
    suggestions,
    tools,
    vectors,
)

_MARK = "DELETE FROM pending WHERE workspace = ? AND position IN (SELECT value FROM json_each(?))"

_REPLACE = """
ON CONFLICT (workspace, server_name, tool_name) DO UPDATE SET data = excluded.data
"""

_INTO_REPAIRS = """
repairs (workspace, server_name, tool_name, failed_id, mended_id, signature, data)
"""

_REPLACE_REPAIR = """
ON CONFLICT (workspace, failed_id, mended_id) DO UPDATE SET
    server_name = excluded.server_name, tool_name = excluded.tool_name,
    signature = excluded.signature, data = excluded.data
"""


def commit_index(connection: sqlite3.Connection, commit: IndexCommit) -> None:
    """Keep what a batch learned and take what it learned from off the queues.

    Raises:
        StoreFencedError: it rests on another generation, or its lease is another's.
    """
    _check(connection, commit)
    workspace = commit.workspace
    connection.execute(_MARK, (workspace, bulk.values(commit.positions)))
    suggestions.mark_learned(connection, workspace, commit.outcomes)
    marks.mark_learned(connection, workspace, commit.marks)
    corrections.mark_learned(connection, workspace, commit.corrections)
    tools.mark_learned(connection, workspace, commit.changed_tools)
    promotions.mark_learned(connection, workspace, commit.promotions)
    for table, rows in (("knowledge", commit.knowledge), ("statistics", commit.statistics)):
        bulk.insert(
            connection,
            f"{table} (workspace, server_name, tool_name, data)",
            ((*_key(row.tool), row.data) for row in rows),
            _REPLACE,
        )
    health.put(connection, commit.health)
    vectors.remove_documents(connection, commit.removed)
    vectors.keep_documents(connection, commit.documents)
    bulk.insert(
        connection,
        _INTO_REPAIRS,
        (
            (*_key(row.tool), row.failed_id, row.mended_id, row.signature, row.data)
            for row in commit.repairs
        ),
        _REPLACE_REPAIR,
    )


def generation(connection: sqlite3.Connection) -> int:
    """The generation that holds."""
    (number,) = connection.execute("SELECT number FROM generation").fetchone()
    return int(number)


def _check(connection: sqlite3.Connection, commit: IndexCommit) -> None:
    present = generation(connection)
    if commit.generation != present:
        raise StoreFencedError(
            f"what was learned belongs to generation {commit.generation}, and the store is at "
            f"{present}: read anew and learn again"
        )
    if commit.lease is not None:
        leases.check(connection, commit.lease)


def _key(tool: ToolKey) -> tuple[str, str, str]:
    return tool.workspace, codec.server_column(tool.server_name), tool.tool_name
