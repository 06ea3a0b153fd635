"""Rows go into SQLite by many in one statement (ADR 11): each gives the interpreter lock away."""

import sqlite3
from contextlib import closing

import pytest

from mongo.sqlite.files import insert_rows


@pytest.mark.parametrize("count", [0, 1, 7, 8, 63, 64, 65, 137])
def test_all_rows_are_there_once_and_in_few_statements(count: int) -> None:
    """By 64, then by 8, then one by one."""
    statements: list[str] = []
    rows = [(number, f"'{number}") for number in range(count)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, text TEXT)")
        connection.set_trace_callback(statements.append)
        insert_rows(connection, "t", rows)
        insert_rows(connection, "t", rows, "ON CONFLICT DO UPDATE SET text = excluded.text || '!'")
        connection.set_trace_callback(None)
        stored = connection.execute("SELECT * FROM t ORDER BY number").fetchall()
    assert stored == [(number, f"{text}!") for number, text in rows]
    assert len(statements) == 2 * (count // 64 + count % 64 // 8 + count % 8)
