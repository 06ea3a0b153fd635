"""Statements about what was answered, counted by day and kind."""

import sqlite3
from collections.abc import Sequence
from datetime import date

from mongo.records import AnswerCount
from mongo.sqlite import bulk

_ADD = """
ON CONFLICT (workspace, day, kind) DO UPDATE SET count = answers.count + excluded.count
"""

_LIST = """
SELECT json_group_array(json_array(day, kind, count)) FROM answers WHERE workspace = ? AND day >= ?
"""


def add(connection: sqlite3.Connection, workspace: str, counts: Sequence[AnswerCount]) -> None:
    """Add to what is counted already."""
    bulk.insert(
        connection,
        "answers (workspace, day, kind, count)",
        ((workspace, each.day.isoformat(), each.kind, each.count) for each in counts),
        _ADD,
    )


def list_since(connection: sqlite3.Connection, workspace: str, since: date) -> list[AnswerCount]:
    """From a day on, by day and then kind."""
    rows = sorted(bulk.fetch(connection, _LIST, (workspace, since.isoformat())))
    return [AnswerCount(date.fromisoformat(day), kind, count) for day, kind, count in rows]
