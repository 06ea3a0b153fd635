"""Connections and their settings: one that writes, some that only read."""

import sqlite3
from pathlib import Path

from mongo.errors import StoreError

_BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process that writes: `aftercall rebuild` holds up all others for
seconds when it switches, a nightly run for milliseconds; a foreign program (a backup, a database
browser) as long as it likes."""

_WRITER_CACHE_KIB = 32 * 1024
_READER_CACHE_KIB = 8 * 1024

_CHECKPOINT_PAGES = 4096
"""Pages of 4 KiB in the log before it is folded into the file: 16 MiB. Ids are random, so the
same index pages come again and again, and a longer log writes each of them less often."""

_LOG_LIMIT_BYTES = 64 << 20
"""What the log shrinks back to after a burst."""


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes; it may be handed to another thread.

    Raises:
        sqlite3.Error: when SQLite cannot open the file.
        StoreError: when the file system cannot carry a write-ahead log.
    """
    connection = sqlite3.connect(
        path.absolute().as_uri(),
        uri=True,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _set_up_writer(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that sees every commit and cannot write; it may be closed by another thread.

    Raises:
        sqlite3.Error: when SQLite cannot open the file.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
    return connection


def connect_shadow(path: Path, log_path: Path) -> sqlite3.Connection:
    """The one connection that writes a shadow; the log is attached to it, read-only, as `log`.

    Raises:
        sqlite3.Error: when SQLite cannot open the files.
    """
    connection = sqlite3.connect(
        path.absolute().as_uri(),
        uri=True,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for setting in (
            "journal_mode = WAL",
            "synchronous = OFF",  # after a power loss it is made anew
            "temp_store = MEMORY",
            f"cache_size = -{_WRITER_CACHE_KIB}",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
            f"journal_size_limit = {_LOG_LIMIT_BYTES}",
        ):
            connection.execute(f"PRAGMA {setting}")
        attach(connection, log_path, "log")
    except BaseException:
        connection.close()
        raise
    return connection


def attach(connection: sqlite3.Connection, path: Path, name: str) -> None:
    """Make another file's tables readable under a schema of that name.

    Read-only, so that a transaction of this connection takes no lock on that file.

    Raises:
        sqlite3.Error: when SQLite cannot open the file.
    """
    connection.execute(f"ATTACH ? AS {name}", (f"{path.absolute().as_uri()}?mode=ro",))


def _set_up_writer(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(
            f"the file system of {path} cannot carry a write-ahead log (SQLite offers '{mode}'): "
            "put the data folder on a local disk (--data-dir)"
        )
    for setting in (
        "synchronous = FULL",  # COMMIT returns after the log is on the disk
        "fullfsync = ON",  # macOS: fsync alone leaves the data in the drive's cache
        "checkpoint_fullfsync = ON",
        "temp_store = MEMORY",  # savepoints need no second volume that could be full
        f"cache_size = -{_WRITER_CACHE_KIB}",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_LOG_LIMIT_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}")
