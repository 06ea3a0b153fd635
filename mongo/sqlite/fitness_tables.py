"""The layout's third version: how tools have fared, what was marked, and what was promoted.

As in the first version, `server_name` is '' for a tool without a server, and times are microseconds
since 1970 in UTC.
"""

import sqlite3

from mongo.records import WITHOUT_STATISTICS
from mongo.sqlite.counting import counted

_A_TOOL_CHANGED = """
CREATE TRIGGER tools_{name} AFTER {event} ON tools BEGIN
    DELETE FROM changed_tools
    WHERE workspace = {row}.workspace AND tool_id = {row}.tool_id
    AND server_name = {row}.server_name AND tool_name = {row}.tool_name;
    INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
    VALUES ({row}.workspace, {row}.tool_id, {row}.server_name, {row}.tool_name);
END
"""
"""A new position each time: what was read at the old one is then out of date, and says so. Not
`INSERT OR REPLACE`, which would not tell the counting trigger of the row that it deletes."""

_STATEMENTS = (
    """
    CREATE TABLE statistics (
        workspace TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (workspace, server_name, tool_name)
    )
    """,
    """
    CREATE TABLE marks (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        mark_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        tool_id TEXT NOT NULL,
        version TEXT,
        scenario TEXT NOT NULL,
        error_message TEXT NOT NULL,
        severity TEXT NOT NULL,
        marked_at INTEGER NOT NULL,
        negative_tags TEXT NOT NULL,
        execution_id TEXT,
        UNIQUE (workspace, mark_id)
    )
    """,
    "CREATE INDEX marks_by_tool ON marks (workspace, server_name, tool_name, position)",
    """
    CREATE INDEX marks_by_execution ON marks (workspace, execution_id)
    WHERE execution_id IS NOT NULL
    """,
    # Marks that nothing was learned from yet.
    """
    CREATE TABLE pending_marks (
        position INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL
    )
    """,
    # Tools whose documents do not say yet what became of them. With their names, since the row in
    # `tools` is gone by then, or has another name.
    """
    CREATE TABLE changed_tools (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        tool_id TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        UNIQUE (workspace, tool_id, server_name, tool_name)
    )
    """,
    # What is gone from `documents` and may still have a vector.
    """
    CREATE TABLE removed_documents (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        document_id TEXT NOT NULL,
        UNIQUE (workspace, document_id)
    )
    """,
    """
    CREATE TABLE promotions (
        workspace TEXT NOT NULL,
        namespace TEXT NOT NULL,
        inherited_quality REAL NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (workspace, namespace)
    )
    """,
    # `data` and `inherited_quality` are those of what holds from then on, NULL if nothing does.
    """
    CREATE TABLE promotion_history (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        namespace TEXT NOT NULL,
        at INTEGER NOT NULL,
        action TEXT NOT NULL,
        inherited_quality REAL,
        data TEXT
    )
    """,
    """
    CREATE INDEX promotion_history_by_namespace
    ON promotion_history (workspace, namespace, position)
    """,
    # Promotions in the history that have no document yet.
    """
    CREATE TABLE pending_promotions (
        position INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL
    )
    """,
    *(
        statement
        for table in ("pending_marks", "changed_tools", "removed_documents", "pending_promotions")
        for statement in counted(table, "pending")
    ),
    """
    CREATE TRIGGER marks_are_queued AFTER INSERT ON marks BEGIN
        INSERT INTO pending_marks (position, workspace) VALUES (NEW.position, NEW.workspace);
    END
    """,
    """
    CREATE TRIGGER promotions_are_queued AFTER INSERT ON promotion_history
    WHEN NEW.data IS NOT NULL BEGIN
        INSERT INTO pending_promotions (position, workspace) VALUES (NEW.position, NEW.workspace);
    END
    """,
    _A_TOOL_CHANGED.format(name="are_queued", event="INSERT", row="NEW"),
    _A_TOOL_CHANGED.format(name="are_queued_when_deleted", event="DELETE", row="OLD"),
    """
    INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
    SELECT workspace, tool_id, server_name, tool_name FROM tools ORDER BY revision
    """,
    # What was learned from already is not in the queue, so no statistics will come of it.
    f"""
    INSERT INTO facts (name, value)
    SELECT '{WITHOUT_STATISTICS}', count(*) FROM executions
    WHERE position NOT IN (SELECT position FROM pending) HAVING count(*) > 0
    """,  # noqa: S608  # a constant of ours
)


def add_fitness(connection: sqlite3.Connection) -> None:
    """Add the tables and queue the tools that are registered already."""
    for statement in _STATEMENTS:
        connection.execute(statement)
