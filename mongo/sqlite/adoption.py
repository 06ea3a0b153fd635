"""The switch: what a shadow learned takes the place of what is known, in one transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from mongo.errors import StoreFencedError
from mongo.records import WITHOUT_STATISTICS, Change, Lease
from mongo.sqlite import bulk, changes, commits, facts, faults, files, leases
from mongo.sqlite.connection import attach, connect_writer
from mongo.sqlite.shadow import COUNT_QUEUES, condition
from mongo.sqlite.upkeep_tables import LEARNED, LOG_QUEUES, QUEUES

_TRIGGERS = """
SELECT name, sql FROM main.sqlite_master
WHERE type = 'trigger' AND tbl_name IN (SELECT value FROM json_each(?))
"""

_EMPTY = "DELETE FROM main.{table}"

# What has expired meanwhile is left out.
_QUEUED_THERE = """
INSERT INTO main.{queue} (workspace, position)
SELECT q.workspace, q.position FROM shadow.{queue} AS q
WHERE EXISTS (
    SELECT 1 FROM main.{table} AS t
    WHERE t.workspace = q.workspace AND t.position = q.position
)
"""

_ARRIVED_SINCE = """
INSERT INTO main.{queue} (workspace, position)
SELECT workspace, position FROM main.{table}
WHERE id > (SELECT id FROM shadow.seen WHERE name = '{table}') AND {condition}
ON CONFLICT (workspace, position) DO NOTHING
"""

_TOOLS_SEEN = """
DELETE FROM main.changed_tools WHERE id <= (SELECT id FROM shadow.seen WHERE name = 'changed_tools')
"""

_TOOLS_QUEUED_THERE = """
INSERT INTO main.changed_tools (id, workspace, tool_id, server_name, tool_name)
SELECT id, workspace, tool_id, server_name, tool_name FROM shadow.changed_tools WHERE TRUE
ON CONFLICT (workspace, tool_id, server_name, tool_name) DO NOTHING
"""

_RAISE_PLACES = """
UPDATE main.sqlite_sequence AS given SET seq = max(given.seq, there.seq)
FROM shadow.sqlite_sequence AS there WHERE there.name = given.name
"""

_MISSING_PLACES = """
INSERT INTO main.sqlite_sequence (name, seq) SELECT name, seq FROM shadow.sqlite_sequence
WHERE name NOT IN (SELECT name FROM main.sqlite_sequence)
"""


def adopt(
    path: Path, shadow: Path, mark: str, set_facts: Mapping[str, str], held: Sequence[Lease]
) -> int:
    """Put what a closed shadow learned into the store at `path`, and remove the shadow.

    Other connections see the old or the new, and nothing between. Returns the new generation.

    Raises:
        StoreFencedError: a lease is lost, or another shadow was adopted or made since.
        StoreError: when SQLite refuses; nothing was changed.
    """
    try:
        # Another connection than the store's writer: a file is attached between transactions only.
        with closing(connect_writer(path)) as connection:
            attach(connection, shadow, "shadow")
            connection.execute("BEGIN IMMEDIATE")
            try:
                generation = _switch(connection, mark, set_facts, held)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path) from error
    files.remove_file(shadow)
    return generation


def _switch(
    connection: sqlite3.Connection, mark: str, set_facts: Mapping[str, str], held: Sequence[Lease]
) -> int:
    generation = _check(connection, mark, held)
    triggers = _take_triggers_off(connection)
    for table in LEARNED:
        connection.execute(_EMPTY.format(table=table))
        _copy(connection, table)
    for queue, table in LOG_QUEUES.items():
        connection.execute(_EMPTY.format(table=queue))
        connection.execute(_QUEUED_THERE.format(queue=queue, table=table))
        connection.execute(
            _ARRIVED_SINCE.format(queue=queue, table=table, condition=condition(table))
        )
    for queue in ("pending_vectors", "removed_documents"):
        connection.execute(_EMPTY.format(table=queue))
        _copy(connection, queue)
    connection.execute(_TOOLS_SEEN)
    connection.execute(_TOOLS_QUEUED_THERE)
    connection.execute(_RAISE_PLACES)
    connection.execute(_MISSING_PLACES)
    connection.execute("DELETE FROM main.learned_counters")
    connection.execute(COUNT_QUEUES)
    for statement in triggers:
        connection.execute(statement)
    connection.execute("UPDATE main.generation SET number = ?", (generation,))
    connection.execute("DELETE FROM main.facts WHERE name = ?", (WITHOUT_STATISTICS,))
    for name, value in set_facts.items():
        facts.put(connection, name, value)
    told = [*changes.of_everything(connection), Change("", facts=tuple(set_facts))]
    changes.tell(connection, told)
    return generation


def _check(connection: sqlite3.Connection, mark: str, held: Sequence[Lease]) -> int:
    """The generation of the shadow, if it is what follows."""
    for lease in held:
        leases.check(connection, lease)
    marks = connection.execute("SELECT mark FROM shadow.shadow").fetchall()
    (generation,) = connection.execute("SELECT number FROM shadow.generation").fetchone()
    present = commits.generation(connection)
    if marks != [(mark,)] or generation != present + 1:
        raise StoreFencedError(
            "another rebuild was begun or has switched the store meanwhile: nothing was changed; "
            "rebuild again if it is still needed"
        )
    return int(generation)


def _take_triggers_off(connection: sqlite3.Connection) -> list[str]:
    """Drop those that count, since counting at the end is faster; what makes them again."""
    tables = bulk.values((*LEARNED, *QUEUES))
    found = connection.execute(_TRIGGERS, (tables,)).fetchall()
    for name, _ in found:
        connection.execute(f"DROP TRIGGER main.{name}")
    return [statement for _, statement in found]


def _copy(connection: sqlite3.Connection, table: str) -> None:
    """All rows of a table; what SQLite generates of a row is no column here."""
    names = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
    columns = ", ".join(names)
    connection.execute(
        f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM shadow.{table}"  # noqa: S608
    )
