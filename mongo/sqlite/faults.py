"""What SQLite and the file system say, in the store's own errors, each with its cure."""

import errno
import shutil
import sqlite3
import tempfile
from pathlib import Path

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

_ANOTHER_FOLDER = "or choose another data folder (--data-dir)"

_NO_SPACE_BYTES = 1 << 20
"""Free bytes under which a failed write counts as a full disk. SQLite's Python binding does not
pass errno on, and some calls report ENOSPC as a plain I/O error (growing the WAL's shared memory,
fsync on delayed allocation)."""

_FULL_CODES = frozenset((errno.ENOSPC, errno.EDQUOT))


def from_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    """The store's error for one of SQLite's; the caller raises it `from` the original."""
    extended = getattr(error, "sqlite_errorcode", None)  # absent when the binding itself complains
    code = None if extended is None else extended & 0xFF
    if code == sqlite3.SQLITE_FULL or (
        code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path.parent)
    ):
        return full(path)
    if code == sqlite3.SQLITE_READONLY or (
        code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_read_only(path.parent)
    ):
        return read_only(path, str(error))
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return damaged(path, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailableError(
            f"{path} is locked by another program, such as a database browser or a backup, or by "
            "an Aftercall rebuild that is just switching: close it and try again"
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(
            f"{path} cannot be opened for writing ({error}): give this user read and write "
            f"permission on the file and its folder, {_ANOTHER_FOLDER}"
        )
    return StoreError(f"{path}: {error}; if this repeats, check the disk and the service's log")


def from_os(error: OSError, where: Path) -> StoreError:
    """The store's error for what the operating system said about the folder or a file in it."""
    if error.errno in _FULL_CODES:
        return full(where)
    if error.errno == errno.EROFS or (error.errno == errno.EACCES and where.is_file()):
        return read_only(where, error.strerror or "no permission")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StoreError(
            f"{where} cannot be written ({error.strerror}): give this user read and write "
            f"permission there, {_ANOTHER_FOLDER}"
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return StoreError(
            f"{where} is not a folder: move the file of that name away, {_ANOTHER_FOLDER}"
        )
    return StoreError(f"{where} cannot be used ({error.strerror}): mend that, {_ANOTHER_FOLDER}")


def full(where: Path) -> StoreFullError:
    """No space: nothing of the call was stored."""
    return StoreFullError(
        f"no space left for {where}: nothing of this call was stored, reading goes on. "
        "Free space on its volume and send the call again"
    )


def read_only(where: Path, what: str) -> StoreReadOnlyError:
    """It can be read, and takes no writes: nothing of the call was stored."""
    return StoreReadOnlyError(
        f"{where} cannot be written ({what}): nothing of this call was stored, reading goes on. "
        "Mount its volume for writing and give this user read and write permission on the file "
        f"and its folder, {_ANOTHER_FOLDER}"
    )


def full_when_opening(where: Path) -> StoreFullError:
    """No space to open the store; nobody's call was lost."""
    return StoreFullError(
        f"no space left for {where}: the store cannot be opened; what it holds is as it was. Free "
        f"space on its volume and start again, {_ANOTHER_FOLDER}"
    )


def read_only_when_opening(where: Path) -> StoreReadOnlyError:
    """The store takes no writes, so it cannot be opened; nobody's call was lost."""
    return StoreReadOnlyError(
        f"{where} cannot be written: the store cannot be opened; what it holds is as it was. Mount "
        "its volume for writing and give this user read and write permission on the folder and the "
        f"files in it, {_ANOTHER_FOLDER}"
    )


def damaged(path: Path, what: str) -> StoreDamagedError:
    """Not ours, or corrupt; the file was left as it is."""
    return StoreDamagedError(
        f"{path} is not a usable Aftercall store ({what}); it was left as it is. Restore a backup "
        f"of it, move it away to start with an empty store, {_ANOTHER_FOLDER}"
    )


def closed() -> StoreUnavailableError:
    """The store was closed before this call."""
    return StoreUnavailableError("the log store is closed: open it again before calling it")


def _is_read_only(folder: Path) -> bool:
    # Tried, since ext4 that has met a failing disk refuses writes and is not marked read-only.
    try:
        with tempfile.TemporaryFile(dir=folder):
            return False
    except OSError as error:
        return error.errno == errno.EROFS


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _NO_SPACE_BYTES
    except OSError:
        return False
