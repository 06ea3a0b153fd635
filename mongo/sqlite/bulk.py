"""Many rows in few statements, written and read.

Python gives up the interpreter lock around every step of a SQLite statement and has to win it back
from the event loop. That takes up to `sys.getswitchinterval` (5 ms), and much longer while the loop
runs many short callbacks, each of which restarts the wait. With a statement for every row
(`executemany`), a busy loop brought appends down to 50 rows a second. So rows go in by the hundred
and come out as one JSON text. `bench/log_store.py` measures appends beside a busy loop.
"""

import json
import sqlite3
from collections.abc import Iterable
from functools import cache
from itertools import chain, islice
from typing import Any, TypeAlias

SqlValue: TypeAlias = str | int | float | bytes | None

_MAX_ROWS = 256
"""Most rows in one statement: 15 columns stay far below SQLite's 32,766 parameters."""


def insert(
    connection: sqlite3.Connection,
    into: str,
    rows: Iterable[tuple[SqlValue, ...]],
    on_conflict: str = "",
) -> int:
    """Run `INSERT INTO {into} VALUES ... {on_conflict}` for all rows, which are equally long.

    Rows are taken as they are written, so a generator need not hold them all. Returns how many were
    inserted or replaced; those that a `DO NOTHING` passed over do not count.
    """
    written = 0
    remaining = iter(rows)
    while chunk := list(islice(remaining, _MAX_ROWS)):
        while chunk:
            # Powers of two: nine statements to prepare and cache, whatever the number of rows.
            size = 1 << (len(chunk).bit_length() - 1)
            written += connection.execute(
                _statement(into, len(chunk[0]), size, on_conflict),
                tuple(chain.from_iterable(chunk[:size])),
            ).rowcount
            del chunk[:size]
    return written


def fetch(
    connection: sqlite3.Connection, query: str, parameters: tuple[SqlValue, ...]
) -> list[list[Any]]:
    """The rows of a query that selects one `json_group_array(json_array(...))`, in any order.

    `Any` as in `sqlite3`: what a column holds is the query's business.
    """
    (text,) = connection.execute(query, parameters).fetchone()
    rows: list[list[Any]] = json.loads(text)
    return rows


def values(items: Iterable[object]) -> str:
    """A list for `json_each(?)`: one statement, prepared once, for lists of every length."""
    return json.dumps(list(items))


@cache
def _statement(into: str, columns: int, rows: int, on_conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return " ".join(("INSERT INTO", into, "VALUES", ", ".join([row] * rows), on_conflict))
