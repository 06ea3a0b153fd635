"""The layout's fourth version: the health of tools, users' corrections, recommendations taken up.

As in the first version, `server_name` is '' for a tool without a server, and times are microseconds
since 1970 in UTC.
"""

import sqlite3

from mongo.records import WITHOUT_STATISTICS
from mongo.sqlite.counting import counted

_STATEMENTS = (
    """
    CREATE TABLE health (
        workspace TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        data BLOB NOT NULL,
        used_at INTEGER NOT NULL,
        troubled_at INTEGER,
        PRIMARY KEY (workspace, server_name, tool_name)
    )
    """,
    # What concerns a whole workspace has an empty name and is no tool to be listed.
    "CREATE INDEX health_by_use ON health (workspace, used_at) WHERE tool_name <> ''",
    """
    CREATE INDEX health_by_trouble ON health (workspace, troubled_at)
    WHERE tool_name <> '' AND troubled_at IS NOT NULL
    """,
    # Server and tool are NULL until the execution is known, which may be stored later.
    """
    CREATE TABLE corrections (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        correction_id TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        corrected_at INTEGER NOT NULL,
        boundary_axes TEXT NOT NULL,
        agent TEXT,
        server_name TEXT,
        tool_name TEXT,
        UNIQUE (workspace, correction_id)
    )
    """,
    "CREATE INDEX corrections_by_arrival ON corrections (workspace, position)",
    """
    CREATE INDEX corrections_by_tool ON corrections (workspace, server_name, tool_name, position)
    WHERE tool_name IS NOT NULL
    """,
    """
    CREATE INDEX untied_corrections ON corrections (workspace, execution_id)
    WHERE tool_name IS NULL
    """,
    # Corrections that were not looked at yet.
    """
    CREATE TABLE pending_corrections (
        position INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL
    )
    """,
    *counted("pending_corrections", "pending"),
    """
    CREATE TRIGGER corrections_are_queued AFTER INSERT ON corrections BEGIN
        INSERT INTO pending_corrections (position, workspace)
        VALUES (NEW.position, NEW.workspace);
    END
    """,
    """
    CREATE TABLE recommendations (
        workspace TEXT NOT NULL,
        recommendation_id TEXT NOT NULL,
        state TEXT NOT NULL,
        changed_at INTEGER NOT NULL,
        data BLOB NOT NULL,
        reason TEXT,
        changed_by TEXT,
        PRIMARY KEY (workspace, recommendation_id)
    )
    """,
    # What was learned from already is not in the queue, so no health will come of it. Those that
    # were without statistics before are among them.
    f"""
    INSERT INTO facts (name, value)
    SELECT '{WITHOUT_STATISTICS}', count(*) FROM executions
    WHERE position NOT IN (SELECT position FROM pending) HAVING count(*) > 0
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    """,  # noqa: S608  # a constant of ours
)


def add_health(connection: sqlite3.Connection) -> None:
    """Add the tables; what was learned already stays as it is, without health."""
    for statement in _STATEMENTS:
        connection.execute(statement)
