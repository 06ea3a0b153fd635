"""Reads beside the writer: a few threads, each with a read-only connection of its own."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from mongo.sqlite import faults
from mongo.sqlite.connection import connect_reader

T = TypeVar("T")

MAX_READERS = 4
"""Reads that run at once; SQLite reads in parallel, decoding shares the interpreter."""


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Several queries of a reader see the same moment inside."""
    if connection.in_transaction:  # it stands still already
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def connect_still_reader(path: Path) -> sqlite3.Connection:
    """A connection that sees the moment at which it was made, and no later commit.

    Raises:
        sqlite3.Error: when SQLite cannot open the file.
    """
    connection = connect_reader(path)
    connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # the moment is now
    return connection


class ReadPool:
    """Runs queries off the event loop; each sees all that was committed before it began.

    `connect` makes a thread's connection to `path`; `threads` is how many queries run at once.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[Path], sqlite3.Connection] = connect_reader,
        *,
        threads: int = MAX_READERS,
    ) -> None:
        self._path = path
        self._connect = connect
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="aftercall-reader")
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The answer of `query`, which must fetch all that it needs.

        Raises:
            StoreError: when SQLite refuses, or the pool is closed.
        """
        loop = asyncio.get_running_loop()
        try:
            answer = loop.run_in_executor(self._threads, partial(self._run, query))
        except RuntimeError as error:  # what an executor says after its shutdown
            raise faults.closed() from error
        return await answer

    def close(self) -> None:
        """Finish running queries and close the connections; blocks; twice does nothing."""
        self._threads.shutdown(wait=True)
        while self._connections:
            self._connections.pop().close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return query(self._connection())
        except sqlite3.Error as error:
            raise faults.from_sqlite(error, self._path) from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect(self._path)
            self._connections.append(connection)
        return connection
