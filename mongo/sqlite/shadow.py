"""A shadow: a second file that holds what a rebuild learns, beside the log that it learns from.

Its main schema has the tables of what is learned and of the queues, and the log's file is attached
read-only. A name that both have means the shadow's table, any other the log's, so the same
statements work. Nothing in it needs to survive a power loss: what is not adopted is thrown away.
"""

import secrets
import sqlite3
from contextlib import ExitStack
from pathlib import Path

from mongo.sqlite import faults, files
from mongo.sqlite.connection import attach, connect_reader, connect_shadow
from mongo.sqlite.readers import ReadPool
from mongo.sqlite.upkeep_tables import LEARNED, LOG_QUEUES, QUEUES
from mongo.sqlite.writer import GroupCommitWriter

SHADOW_NAME = "aftercall-rebuild.sqlite3"

_OWN_TABLES = (*LEARNED, *QUEUES, "learned_counters", "generation", "seen")

_GAP = 1_000_000_000
"""How far above the log's the places in the queues of documents and tools begin: whatever is queued
there while the shadow works, no place in them ever means two documents."""

_PLACED_BY_THE_SHADOW = ("pending_vectors", "removed_documents", "changed_tools")

_DDL = """
SELECT sql FROM log.sqlite_master
WHERE tbl_name = ? AND sql IS NOT NULL AND (type = 'trigger') = ?
ORDER BY type = 'table' DESC, rowid
"""

_FILL = """
INSERT INTO {queue} (workspace, position)
SELECT workspace, position FROM log.{table} WHERE {condition} ORDER BY workspace, position
"""

_FILL_TOOLS = """
INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
SELECT workspace, tool_id, server_name, tool_name FROM log.tools ORDER BY id
"""

_START_PLACES = """
INSERT INTO sqlite_sequence (name, seq)
SELECT :name, :gap + coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = :name), 0)
"""

_SEE = """
INSERT INTO seen (name, id)
SELECT :name, coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = :name), 0)
ON CONFLICT (name) DO UPDATE SET id = excluded.id
"""

_IS_BEHIND = """
SELECT EXISTS (
    SELECT 1 FROM seen CROSS JOIN log.sqlite_sequence AS given ON given.name = seen.name
    WHERE given.seq > seen.id
)
"""

_TOP_UP = """
INSERT INTO {queue} (workspace, position)
SELECT workspace, position FROM log.{table}
WHERE id > (SELECT id FROM seen WHERE name = '{table}') AND {condition}
ON CONFLICT (workspace, position) DO NOTHING
"""

_CHANGED_AGAIN = """
DELETE FROM changed_tools WHERE (workspace, tool_id, server_name, tool_name) IN (
    SELECT workspace, tool_id, server_name, tool_name FROM log.changed_tools
    WHERE id > (SELECT id FROM seen WHERE name = 'changed_tools')
)
"""

_TOP_UP_TOOLS = """
INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
SELECT workspace, tool_id, server_name, tool_name FROM log.changed_tools
WHERE id > (SELECT id FROM seen WHERE name = 'changed_tools') ORDER BY id
"""

_DROP_EXPIRED = """
DELETE FROM pending WHERE workspace = ? AND NOT EXISTS (
    SELECT 1 FROM log.executions AS e
    WHERE e.workspace = pending.workspace AND e.position = pending.position
)
"""

_IN_QUEUES = " UNION ALL ".join(
    f"SELECT workspace, count(*) AS pending, 0 AS documents FROM {queue} GROUP BY workspace"  # noqa: S608  # the tables are those of the layout
    for queue in QUEUES
)

COUNT_QUEUES = f"""
INSERT INTO learned_counters (workspace, pending, documents)
SELECT workspace, sum(pending), sum(documents) FROM (
    {_IN_QUEUES}
    UNION ALL
    SELECT workspace, 0, count(*) FROM documents GROUP BY workspace
)
GROUP BY workspace
"""  # noqa: S608  # the tables are those of the layout
"""Fills the empty `learned_counters`, where rows came while the triggers were away."""


def condition(table: str) -> str:
    """Which rows of a table of the log are queued: of promotions not the removals."""
    return "data IS NOT NULL" if table == "promotion_history" else "TRUE"


class Shadow:
    """The shadow of a log, made anew; `resources` closes what it opened."""

    def __init__(self, log_path: Path) -> None:
        self.path = shadow_path(log_path)
        self.mark = secrets.token_hex(16)
        """Tells this shadow from another in a file of the same name."""
        files.remove_file(self.path)
        files.make_file(self.path)
        with ExitStack() as resources:
            try:
                connection = connect_shadow(self.path, log_path)
                resources.callback(connection.close)
                _lay_out(connection, self.mark)
            except sqlite3.Error as error:
                raise faults.from_sqlite(error, self.path) from error
            self.writer = GroupCommitWriter(connection, self.path)
            resources.callback(self.writer.close)
            self.readers = ReadPool(self.path, lambda path: _connect_reader(path, log_path))
            resources.callback(self.readers.close)
            self.resources = resources.pop_all()


def shadow_path(log_path: Path) -> Path:
    """Where the shadow of a log is."""
    return log_path.with_name(SHADOW_NAME)


def is_behind(connection: sqlite3.Connection) -> bool:
    """Whether anything came into the log that the shadow has not queued."""
    (behind,) = connection.execute(_IS_BEHIND).fetchone()
    return bool(behind)


def catch_up(connection: sqlite3.Connection) -> None:
    """Queue what came into the log since the shadow looked last."""
    for queue, table in LOG_QUEUES.items():
        connection.execute(_TOP_UP.format(queue=queue, table=table, condition=condition(table)))
    connection.execute(_CHANGED_AGAIN)
    connection.execute(_TOP_UP_TOOLS)
    _see(connection)


def drop_expired(connection: sqlite3.Connection, workspace: str) -> None:
    """Take executions off the queue that are gone from the log."""
    connection.execute(_DROP_EXPIRED, (workspace,))


def _lay_out(connection: sqlite3.Connection, mark: str) -> None:
    """Make the tables, fill the queues with all there is, and let the triggers count from then."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE shadow (mark TEXT NOT NULL)")
    connection.execute("INSERT INTO shadow (mark) VALUES (?)", (mark,))
    _copy_layout(connection, triggers=False)
    connection.execute("INSERT INTO generation (number) SELECT number + 1 FROM log.generation")
    for name in _PLACED_BY_THE_SHADOW:
        connection.execute(_START_PLACES, {"name": name, "gap": _GAP})
    for queue, table in LOG_QUEUES.items():
        connection.execute(_FILL.format(queue=queue, table=table, condition=condition(table)))
    connection.execute(_FILL_TOOLS)
    connection.execute(COUNT_QUEUES)
    _copy_layout(connection, triggers=True)
    _see(connection)
    connection.execute("COMMIT")


def _copy_layout(connection: sqlite3.Connection, *, triggers: bool) -> None:
    for table in _OWN_TABLES:
        for (statement,) in connection.execute(_DDL, (table, triggers)).fetchall():
            connection.execute(statement)


def _see(connection: sqlite3.Connection) -> None:
    for name in (*LOG_QUEUES.values(), "changed_tools"):
        connection.execute(_SEE, {"name": name})


def _connect_reader(path: Path, log_path: Path) -> sqlite3.Connection:
    connection = connect_reader(path)
    attach(connection, log_path, "log")
    return connection
