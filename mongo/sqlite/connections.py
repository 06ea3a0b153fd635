"""Connections to one file: one that writes, and a few threads that only read beside it."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from mongo.errors import StoreError
from mongo.sqlite import faults

T = TypeVar("T")

MAX_READERS = 4
"""Reads that run at once; SQLite reads in parallel, decoding shares the interpreter."""

_BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process that writes: a nightly run for milliseconds; a foreign
program (a backup, a database browser) as long as it likes."""

_WRITER_CACHE_KIB = 32 * 1024
_READER_CACHE_KIB = 8 * 1024

_CHECKPOINT_PAGES = 4096
"""Pages of 4 KiB in the write-ahead log before it is folded into the file: 16 MiB. Ids are random,
so the same index pages come again and again, and a longer log writes each of them less often."""

_LOG_LIMIT_BYTES = 64 << 20
"""What the write-ahead log shrinks back to after a burst."""


def connect_writer(path: Path, synchronous: Literal["FULL", "NORMAL"]) -> sqlite3.Connection:
    """The one connection that writes; it may be handed to another thread.

    Args:
        path: the file.
        synchronous: FULL, so that COMMIT returns after the write-ahead log is on the disk; NORMAL
            where it is enough that a power loss leaves the file as of an earlier commit.

    Raises:
        sqlite3.Error: SQLite cannot open the file.
        StoreError: the file system cannot carry a write-ahead log.
    """
    connection = _connect(path.absolute().as_uri())
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        _refuse_without_wal(path, mode)
        for setting in (
            f"synchronous = {synchronous}",
            "fullfsync = ON",  # macOS: fsync alone leaves the data in the drive's cache
            "checkpoint_fullfsync = ON",
            "temp_store = MEMORY",  # savepoints need no second volume that could be full
            f"cache_size = -{_WRITER_CACHE_KIB}",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
            f"journal_size_limit = {_LOG_LIMIT_BYTES}",
        ):
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_without_wal(path: Path, mode: str) -> None:
    if mode != "wal":
        raise StoreError(
            f"the file system of {path} cannot carry a write-ahead log (SQLite offers '{mode}'): "
            "put the data folder on a local disk (--data-dir)"
        )


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


class ReadPool:
    """Runs queries off the event loop; each sees all that was committed before it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(MAX_READERS, thread_name_prefix="aftercall-reader")
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The answer of `query`, which must fetch all that it needs.

        Raises:
            StoreError: SQLite refuses, or the pool is closed.
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
            connection = _connect(f"{self._path.absolute().as_uri()}?mode=ro")
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
            self._own.connection = connection
            self._connections.append(connection)
        return connection
