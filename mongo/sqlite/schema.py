"""The file's layout: its mark, its version, and the way from each version to the next."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from mongo.errors import StoreError, StoreTooNewError
from mongo.sqlite import faults
from mongo.sqlite.answer_tables import add_answers
from mongo.sqlite.counting import counted
from mongo.sqlite.fitness_tables import add_fitness
from mongo.sqlite.health_tables import add_health
from mongo.sqlite.upkeep_tables import add_upkeep

APPLICATION_ID = int.from_bytes(b"AftC")
"""Marks the file as ours in its header (`PRAGMA application_id`)."""

Migration = Callable[[sqlite3.Connection], None]
"""Takes a store one version further, inside a transaction that it neither begins nor ends."""


_VERSION_1 = (
    # `server_name` is '' for a tool without a server: NULL would not be unique in a key, and the
    # wire refuses empty names. Times are microseconds since 1970 in UTC.
    """
    CREATE TABLE executions (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        session_id TEXT,
        outcome TEXT NOT NULL,
        timestamp INTEGER NOT NULL,
        received_at INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        schema_hash TEXT,
        size INTEGER NOT NULL,
        data TEXT NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX executions_by_id ON executions (workspace, execution_id)",
    """
    CREATE INDEX executions_by_session
    ON executions (workspace, session_id, server_name, tool_name, position)
    WHERE session_id IS NOT NULL
    """,
    # The indexing queue. A table and not a flag on the execution: marking deletes a small row
    # instead of rewriting a large one, and a rebuild copies numbers, not a gigabyte.
    """
    CREATE TABLE pending (
        position INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE schemas (
        workspace TEXT NOT NULL,
        schema_hash TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (workspace, schema_hash)
    )
    """,
    """
    CREATE TABLE knowledge (
        workspace TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (workspace, server_name, tool_name)
    )
    """,
    """
    CREATE TABLE documents (
        workspace TEXT NOT NULL,
        document_id TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (workspace, document_id)
    )
    """,
    """
    CREATE TABLE repairs (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        failed_id TEXT NOT NULL,
        mended_id TEXT NOT NULL,
        signature TEXT NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (workspace, failed_id, mended_id)
    )
    """,
    "CREATE INDEX repairs_by_tool ON repairs (workspace, server_name, tool_name, position)",
    # `revision` grows with every put, so that the latest of several tools of one name is known.
    """
    CREATE TABLE tools (
        revision INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        tool_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        data TEXT NOT NULL,
        UNIQUE (workspace, tool_id)
    )
    """,
    "CREATE INDEX tools_by_name ON tools (workspace, server_name, tool_name, revision)",
    """
    CREATE TABLE suggestions (
        workspace TEXT NOT NULL,
        suggestion_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        signature TEXT NOT NULL,
        edit_key TEXT NOT NULL,
        issued_at INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (workspace, suggestion_id)
    )
    """,
    """
    CREATE TABLE outcomes (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        suggestion_id TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        outcome TEXT NOT NULL,
        UNIQUE (workspace, suggestion_id, execution_id)
    )
    """,
    # Outcomes that nothing was learned from yet: the queue's second half, counted with it.
    """
    CREATE TABLE pending_outcomes (
        position INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL
    )
    """,
    # Documents that have no vector yet: the queue's third part, counted with it.
    """
    CREATE TABLE pending_vectors (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        document_id TEXT NOT NULL,
        UNIQUE (workspace, document_id)
    )
    """,
    # Kept by the triggers below.
    """
    CREATE TABLE counters (
        workspace TEXT PRIMARY KEY,
        executions INTEGER NOT NULL DEFAULT 0,
        pending INTEGER NOT NULL DEFAULT 0,
        tools INTEGER NOT NULL DEFAULT 0,
        documents INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    *(
        statement
        for table in ("executions", "pending", "tools", "documents")
        for statement in counted(table)
    ),
    *counted("pending_outcomes", "pending"),
    *counted("pending_vectors", "pending"),
    """
    CREATE TRIGGER outcomes_are_queued AFTER INSERT ON outcomes BEGIN
        INSERT INTO pending_outcomes (position, workspace) VALUES (NEW.position, NEW.workspace);
    END
    """,
    """
    CREATE TRIGGER executions_are_queued AFTER INSERT ON executions BEGIN
        INSERT INTO pending (position, workspace) VALUES (NEW.position, NEW.workspace);
    END
    """,
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in _VERSION_1:
        connection.execute(statement)


def _add_estimates(connection: sqlite3.Connection) -> None:
    """What a suggestion's confidence was before the workspace's own calibration."""
    connection.execute("ALTER TABLE suggestions ADD COLUMN estimate REAL")


MIGRATIONS: tuple[Migration, ...] = (
    _create, _add_estimates, add_fitness, add_health, add_upkeep, add_answers,
)  # fmt: skip
"""The n-th takes a store from version n - 1 to n. Only ever add to the end."""


def check_file(path: Path, newest: int) -> None:
    """Look at an existing file without changing it (missing or empty is fine).

    Raises:
        StoreTooNewError: it is ours, but of a version above `newest`.
        StoreDamagedError: it is not a database, corrupt, or another program's.
        StoreError: it cannot be read.
    """
    if not path.exists():
        return
    # A killed process left a log that belongs to the content: a read-only connection reads it too,
    # yet never folds it into the file. Without one, even the empty log of such a connection would
    # be a change.
    log = path.with_name(f"{path.name}-wal")
    _check(path, "mode=ro" if log.exists() and log.stat().st_size else "immutable=1", newest)


def check_beside(path: Path, layout: int) -> None:
    """Look at a file that another process may have open: it has to be a store of this layout.

    Raises:
        StoreTooNewError: it is ours, but of a version above `layout`.
        StoreDamagedError: it is not a database, corrupt, or another program's.
        StoreError: there is none, it is of an older version, or it cannot be read.
    """
    version = _check(path, "mode=ro", layout) if path.exists() else None
    if not version:
        raise StoreError(
            f"there is no store in {path.parent}: start the service on this folder once, which "
            "makes it, or name another data folder (--data-dir)"
        )
    if version < layout:
        raise StoreError(
            f"{path} was written by an older version of Aftercall (layout {version}, this one's is "
            f"{layout}) and was left as it is: stop the service, if it runs, and start this "
            "version of it once, which brings the store forward"
        )


def _check(path: Path, access: str, newest: int) -> int:
    """The version of a file's layout; 0 when it is empty."""
    uri = f"{path.absolute().as_uri()}?{access}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path) from error
    is_empty = not (mark or version or tables)
    if not is_empty and mark != APPLICATION_ID:
        raise faults.damaged(path, "it is the database of another program")
    if version > newest:
        raise StoreTooNewError(
            f"{path} was written by a newer version of Aftercall (layout {version}, this one "
            f"knows up to {newest}); it was left as it is. Upgrade Aftercall, or choose another "
            "data folder (--data-dir)"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the store to the version `len(migrations)`, each step in a transaction of its own.

    A step that fails leaves the store at the version before it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, migration in enumerate(migrations[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            migration(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
