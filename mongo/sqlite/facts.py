"""Statements about the store as a whole: small facts, and how much there is."""

import sqlite3

from mongo.records import StoreCounts

_COUNTS = """
SELECT coalesce(sum(executions), 0), coalesce(sum(tools), 0) FROM counters
UNION ALL
SELECT coalesce(sum(pending), 0), coalesce(sum(documents), 0) FROM learned_counters
"""

_COUNTS_OF_ONE = """
SELECT coalesce(sum(executions), 0), coalesce(sum(tools), 0) FROM counters WHERE workspace = ?
UNION ALL
SELECT coalesce(sum(pending), 0), coalesce(sum(documents), 0) FROM learned_counters
WHERE workspace = ?
"""

_QUEUED = "SELECT workspace FROM learned_counters WHERE pending > 0 ORDER BY workspace"

# The counters say which workspaces there ever were; few are left of which only the rest tells.
_WORKSPACES = """
SELECT workspace FROM (
    SELECT workspace, executions + tools > 0 AS has_any FROM counters
    UNION ALL
    SELECT workspace, FALSE FROM learned_counters
) AS known
GROUP BY workspace
HAVING max(has_any)
OR EXISTS (SELECT 1 FROM outcomes AS o WHERE o.workspace = known.workspace)
OR EXISTS (SELECT 1 FROM marks AS m WHERE m.workspace = known.workspace)
OR EXISTS (SELECT 1 FROM corrections AS c WHERE c.workspace = known.workspace)
OR EXISTS (SELECT 1 FROM promotion_history AS h WHERE h.workspace = known.workspace)
ORDER BY workspace
"""


def get(connection: sqlite3.Connection, name: str) -> str | None:
    """A fact by its name."""
    row: tuple[str] | None = connection.execute(
        "SELECT value FROM facts WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else row[0]


def put(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Set a fact."""
    connection.execute(
        "INSERT INTO facts (name, value) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def counts(connection: sqlite3.Connection, workspace: str | None) -> StoreCounts:
    """How much there is in one workspace, or in all together."""
    if workspace is None:
        rows = connection.execute(_COUNTS)
    else:
        rows = connection.execute(_COUNTS_OF_ONE, (workspace, workspace))
    (executions, tools), (pending, documents) = rows.fetchall()
    return StoreCounts(executions=executions, pending=pending, tools=tools, documents=documents)


def queued_workspaces(connection: sqlite3.Connection) -> list[str]:
    """Workspaces with anything in a queue, in order."""
    rows = connection.execute(_QUEUED)
    return [workspace for (workspace,) in rows.fetchall()]


def has_arrivals(connection: sqlite3.Connection) -> bool:
    """Whether an execution waits in its queue."""
    (found,) = connection.execute("SELECT EXISTS (SELECT 1 FROM pending)").fetchone()
    return bool(found)


def workspaces(connection: sqlite3.Connection) -> list[str]:
    """Workspaces that have anything in the log, or a tool, in order."""
    rows = connection.execute(_WORKSPACES)
    return [workspace for (workspace,) in rows.fetchall()]
