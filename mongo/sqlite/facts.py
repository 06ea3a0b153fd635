"""Statements about the store as a whole: small facts, and how much there is."""

import sqlite3

from mongo.records import StoreCounts


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
    of_all = (
        "SELECT coalesce(sum(executions), 0), coalesce(sum(pending), 0), coalesce(sum(tools), 0), "
        "coalesce(sum(documents), 0) FROM counters"
    )
    if workspace is None:
        row = connection.execute(of_all).fetchone()
    else:
        row = connection.execute(f"{of_all} WHERE workspace = ?", (workspace,)).fetchone()
    return StoreCounts(*row)
