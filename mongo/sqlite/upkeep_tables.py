"""The layout's fifth version: queues per workspace, several processes, and what a rebuild needs.

What is learned stands in tables of its own, so that a second file with the same tables can take
their place (`mongo.sqlite.shadow`): `LEARNED` and the queues. As in the first version,
`server_name` is '' for a tool without a server, and times are microseconds since 1970 in UTC.
"""

import sqlite3

from mongo.sqlite.counting import counted

LOG_QUEUES = {
    "pending": "executions",
    "pending_outcomes": "outcomes",
    "pending_marks": "marks",
    "pending_corrections": "corrections",
    "pending_promotions": "promotion_history",
}
"""Queues of what nothing was learned from yet, each with the table that fills it."""

QUEUES = (*LOG_QUEUES, "changed_tools", "pending_vectors", "removed_documents")
"""All queues: their rows count as pending."""

LEARNED = ("knowledge", "statistics", "health", "documents", "repairs", "correction_tools")
"""What was learned; a rebuild makes all of it anew."""

_DROPPED_TRIGGERS = """
executions_are_queued outcomes_are_queued marks_are_queued corrections_are_queued
promotions_are_queued tools_are_queued
"""

_DROPPED_INDEXES = """
executions_by_session tools_by_name repairs_by_tool marks_by_tool promotion_history_by_namespace
corrections_by_arrival corrections_by_tool untied_corrections
"""

_PLACED = {
    "executions": "position",
    "outcomes": "position",
    "marks": "position",
    "corrections": "position",
    "promotion_history": "position",
    "changed_tools": "position",
    "repairs": "position",
    "tools": "revision",
}
"""Tables whose rows have a place that is their `id`, the order of arrival over all workspaces; but
one that was restored keeps the place that it had in the store it comes from, where another
workspace may have had the same."""

_KEEP_PLACES = (
    "ALTER TABLE {table} RENAME COLUMN {place} TO id",
    "ALTER TABLE {table} ADD COLUMN kept_{place} INTEGER",
    """
    ALTER TABLE {table} ADD COLUMN {place} INTEGER
    GENERATED ALWAYS AS (coalesce(kept_{place}, id)) VIRTUAL
    """,
    "CREATE UNIQUE INDEX {table}_by_{place} ON {table} (workspace, {place})",
)

_PER_WORKSPACE = (
    """
    CREATE TABLE {queue}_by_workspace (
        workspace TEXT NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (workspace, position)
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO {queue}_by_workspace (workspace, position)
    SELECT workspace, position FROM {queue} ORDER BY workspace, position
    """,
    "DROP TABLE {queue}",
    "ALTER TABLE {queue}_by_workspace RENAME TO {queue}",
)

# A row that keeps its place was restored, and with it whether it waits.
_ARE_QUEUED = """
CREATE TRIGGER {table}_are_queued AFTER INSERT ON {table} {when} BEGIN
    INSERT INTO {queue} (workspace, position) VALUES (NEW.workspace, NEW.position);
END
"""

_TOOLS_ARE_QUEUED = """
CREATE TRIGGER tools_are_queued AFTER INSERT ON tools WHEN NEW.kept_revision IS NULL BEGIN
    DELETE FROM changed_tools
    WHERE workspace = NEW.workspace AND tool_id = NEW.tool_id
    AND server_name = NEW.server_name AND tool_name = NEW.tool_name;
    INSERT INTO changed_tools (workspace, tool_id, server_name, tool_name)
    VALUES (NEW.workspace, NEW.tool_id, NEW.server_name, NEW.tool_name);
END
"""

_INDEXES = (
    """
    CREATE INDEX executions_by_session
    ON executions (workspace, session_id, server_name, tool_name, position)
    WHERE session_id IS NOT NULL
    """,
    "CREATE INDEX tools_by_name ON tools (workspace, server_name, tool_name, revision)",
    "CREATE INDEX repairs_by_tool ON repairs (workspace, server_name, tool_name, position)",
    "CREATE INDEX marks_by_tool ON marks (workspace, server_name, tool_name, position)",
    """
    CREATE INDEX promotion_history_by_namespace
    ON promotion_history (workspace, namespace, position)
    """,
    "CREATE INDEX corrections_by_execution ON corrections (workspace, execution_id)",
    "CREATE INDEX pending_vectors_by_workspace ON pending_vectors (workspace, position)",
    "CREATE INDEX removed_documents_by_workspace ON removed_documents (workspace, position)",
)

_CORRECTION_TOOLS = (
    # The tool that a correction is about is learned; what the user said is not.
    """
    CREATE TABLE correction_tools (
        workspace TEXT NOT NULL,
        position INTEGER NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        PRIMARY KEY (workspace, position)
    ) WITHOUT ROWID
    """,
    """
    CREATE INDEX correction_tools_by_tool
    ON correction_tools (workspace, server_name, tool_name, position)
    """,
    """
    INSERT INTO correction_tools (workspace, position, server_name, tool_name)
    SELECT workspace, position, server_name, tool_name FROM corrections
    WHERE tool_name IS NOT NULL
    """,
    "ALTER TABLE corrections DROP COLUMN server_name",
    "ALTER TABLE corrections DROP COLUMN tool_name",
)

_COUNTERS = (
    # Kept by triggers, as `counters`, which is the log's own from now on.
    """
    CREATE TABLE learned_counters (
        workspace TEXT PRIMARY KEY,
        pending INTEGER NOT NULL DEFAULT 0,
        documents INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    """
    INSERT INTO learned_counters (workspace, pending, documents)
    SELECT workspace, pending, documents FROM counters WHERE pending > 0 OR documents > 0
    """,
    "ALTER TABLE counters DROP COLUMN pending",
    "ALTER TABLE counters DROP COLUMN documents",
    *counted("documents", into="learned_counters"),
    *(
        statement
        for queue in QUEUES
        for statement in counted(queue, "pending", into="learned_counters")
    ),
)

_NEW_TABLES = (
    "ALTER TABLE executions ADD COLUMN stands_for INTEGER NOT NULL DEFAULT 1",
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        token INTEGER NOT NULL,
        beat INTEGER NOT NULL,
        held INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    # Told to other processes; `data` is JSON.
    """
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        data TEXT NOT NULL
    )
    """,
    "CREATE TABLE generation (number INTEGER NOT NULL)",
    "INSERT INTO generation (number) VALUES (1)",
    # How far a shadow has looked into the tables of the log, by `id`. Empty in the log itself,
    # whose queues are filled by triggers.
    "CREATE TABLE seen (name TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE usage (
        workspace TEXT NOT NULL,
        day TEXT NOT NULL,
        server_name TEXT NOT NULL,
        tool_name TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (workspace, day, server_name, tool_name)
    )
    """,
    """
    CREATE TABLE patterns (
        workspace TEXT NOT NULL,
        pattern_id TEXT NOT NULL,
        data BLOB NOT NULL,
        last_seen INTEGER NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (workspace, pattern_id)
    )
    """,
    """
    CREATE INDEX patterns_by_count
    ON patterns (workspace, count DESC, last_seen DESC, pattern_id)
    """,
    # Schemas that an expired execution named, and perhaps nothing else.
    """
    CREATE TABLE doubtful_schemas (
        workspace TEXT NOT NULL,
        schema_hash TEXT NOT NULL,
        PRIMARY KEY (workspace, schema_hash)
    ) WITHOUT ROWID
    """,
)


def add_upkeep(connection: sqlite3.Connection) -> None:
    """Give each workspace queues of its own, rows places of their own, and add the new tables."""
    for name in _DROPPED_TRIGGERS.split():
        connection.execute(f"DROP TRIGGER {name}")
    for table in (*QUEUES, "documents"):
        for event in ("up", "down"):
            connection.execute(f"DROP TRIGGER {table}_count_{event}")
    for name in _DROPPED_INDEXES.split():
        connection.execute(f"DROP INDEX {name}")
    for table, place in _PLACED.items():
        for statement in _KEEP_PLACES:
            connection.execute(statement.format(table=table, place=place))
    for queue, table in LOG_QUEUES.items():
        for statement in _PER_WORKSPACE:
            connection.execute(statement.format(queue=queue))
        when = "WHEN NEW.kept_position IS NULL"
        if table == "promotion_history":
            when += " AND NEW.data IS NOT NULL"
        name = "promotions" if table == "promotion_history" else table
        trigger = _ARE_QUEUED.format(table=table, queue=queue, when=when)
        connection.execute(trigger.replace(f"{table}_are", f"{name}_are", 1))
    connection.execute(_TOOLS_ARE_QUEUED)
    for statement in (*_CORRECTION_TOOLS, *_INDEXES, *_COUNTERS, *_NEW_TABLES):
        connection.execute(statement)
