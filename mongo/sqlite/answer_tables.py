"""The layout's sixth version: what was answered, counted by day."""

import sqlite3

# Of the log, not of what is learned: a rebuild could not make it anew.
_ANSWERS = """
CREATE TABLE answers (
    workspace TEXT NOT NULL,
    day TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (workspace, day, kind)
) WITHOUT ROWID
"""


def add_answers(connection: sqlite3.Connection) -> None:
    """Add the table; nothing is known of what was answered before."""
    connection.execute(_ANSWERS)
