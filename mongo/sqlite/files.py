"""The files of the embedded store: their folder, readers, writer, and what goes wrong with them.

Group commit: what waits for the writer together is committed together. An fsync costs the same for
one row as for a thousand, so every call that arrived while the last group was being written goes
into the next transaction. Its caller hears of it only after COMMIT has returned.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

from aftercall.files import sync_folder
from aftercall.tables import gather_values
from mongo import errors
from mongo.records import Event, Row, ToolKey

_ANOTHER_FOLDER = "or choose another data folder (--data-dir)"
_NO_SPACE_BYTES = 1 << 20
"""Free bytes under which a failed write counts as a full disk. SQLite's Python binding does not
pass errno on, and some calls report ENOSPC as a plain I/O error (growing the WAL's shared memory,
fsync on delayed allocation)."""


def from_sqlite(error: sqlite3.Error, path: Path) -> errors.StoreError:
    """Return the store's error for one of SQLite's; the caller raises it `from` the original."""
    extended = getattr(error, "sqlite_errorcode", None)  # absent when the binding itself complains
    code = None if extended is None else extended & 0xFF
    if code == sqlite3.SQLITE_FULL or (
        code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path.parent)
    ):
        return full_error(path)
    if code == sqlite3.SQLITE_READONLY or (
        code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_read_only(path.parent)
    ):
        return read_only(path, str(error))
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return damaged_error(path, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return errors.StoreUnavailableError(
            f"{path} is locked by another program, such as a database browser or a backup, or by "
            "an Aftercall rebuild that is just switching: close it and try again"
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return errors.StoreError(
            f"{path} cannot be opened for writing ({error}): give this user read and write "
            f"permission on the file and its folder, {_ANOTHER_FOLDER}"
        )
    return errors.StoreError(
        f"{path}: {error}; if this repeats, check the disk and the service's log"
    )


def from_os(error: OSError, where: Path) -> errors.StoreError:
    """Return the store's error for what the operating system reported about a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return full_error(where)
    if error.errno == errno.EROFS or (error.errno == errno.EACCES and where.is_file()):
        return read_only(where, error.strerror or "no permission")
    if error.errno in (errno.EACCES, errno.EPERM):
        return errors.StoreError(
            f"{where} cannot be written ({error.strerror}): give this user read and write "
            f"permission there, {_ANOTHER_FOLDER}"
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return errors.StoreError(
            f"{where} is not a folder: move the file of that name away, {_ANOTHER_FOLDER}"
        )
    return errors.StoreError(
        f"{where} cannot be used ({error.strerror}): mend that, {_ANOTHER_FOLDER}"
    )


def full_error(where: Path) -> errors.StoreFullError:
    """Return no space: nothing was stored."""
    return errors.StoreFullError(
        f"no space left for {where}: nothing was stored, and what it holds is as it was. "
        f"Free space on its volume and try again, {_ANOTHER_FOLDER}"
    )


def read_only(where: Path, what: str) -> errors.StoreReadOnlyError:
    """It can be read, and takes no writes: nothing was stored."""
    return errors.StoreReadOnlyError(
        f"{where} cannot be written ({what}): nothing was stored, and what it holds is as it was. "
        "Mount its volume for writing and give this user read and write permission on the file "
        f"and its folder, {_ANOTHER_FOLDER}"
    )


def damaged_error(path: Path, what: str) -> errors.StoreDamagedError:
    """Not ours, or corrupt; the file was left as it is."""
    return errors.StoreDamagedError(
        f"{path} is not a usable Aftercall store ({what}); it was left as it is. Restore a backup "
        f"of it, move it away to start with an empty store, {_ANOTHER_FOLDER}"
    )


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


_SUFFIXES = ("", "-wal", "-shm")
"""Of what SQLite keeps next to a file, and the file itself."""


def make_folder(folder: Path) -> None:
    """Make a folder that only this user may look into, unless it is there."""
    try:
        if folder.is_dir():
            return
        folder.mkdir(mode=0o700, parents=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise from_os(error, folder) from error


def make_file(path: Path) -> None:
    """Make an empty file, unless it is there, and see that it can be written.

    SQLite would make it readable for all; its log takes the permissions from it.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        sync_folder(path.parent)
    except OSError as error:
        raise from_os(error, path) from error


def remove_file(path: Path) -> None:
    """Remove a database file and what SQLite keeps next to it; nothing when it is not there."""
    try:
        for suffix in _SUFFIXES:
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise from_os(error, path) from error


class FolderLock:
    """One process per folder: an advisory lock, held from construction until `release`.

    The kernel drops it with the process, however that ends, so a lock file left behind by a killed
    process means nothing. `flock` and not `lockf`: it also keeps out a second store opened in the
    same process, and closing another descriptor of the file does not drop it. A `StoreInUseError`,
    at once, when someone else holds it; a `StoreError` when the file cannot be made or locked.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "aftercall.lock"
        try:
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise from_os(error, folder) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            self.release_lock()
            raise errors.StoreInUseError(
                f"the data folder {folder} is in use by process {holder or 'unknown'}: stop that "
                "process, or choose another data folder (--data-dir)"
            ) from error
        except OSError as error:
            self.release_lock()
            raise from_os(error, folder) from error
        # The number only serves the message above, so a disk too full for it is no reason to fail.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release_lock(self) -> None:
        """Give the folder free; twice does nothing.

        The file stays: removing it would let two others each lock a file of that name.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


T = TypeVar("T")
MAX_READERS = 4
"""Reads that run at once; SQLite reads in parallel, decoding shares the interpreter."""
_BUSY_TIMEOUT_S = 30.0
"""How long to wait for another process that writes: a nightly run for milliseconds; a foreign
program (a backup, a database browser) as long as it likes."""
_WRITER_CACHE_KIB = 2 * 1024
_READER_CACHE_KIB = 1 * 1024
"""Of a connection. The system keeps the pages of the files too: 8 MiB made no commit faster."""
_CHECKPOINT_PAGES = 4096
"""Pages of 4 KiB in the write-ahead log before it is folded into the file: 16 MiB. Ids are random,
so the same index pages come again and again, and a longer log writes each of them less often."""
_LOG_LIMIT_BYTES = 64 << 20
"""What the write-ahead log shrinks back to after a burst."""


def sync_log(path: Path) -> None:
    """Put what was committed to a file on the disk; a checkpoint has put there what it moved."""
    with path.with_name(f"{path.name}-wal").open("rb") as log:
        os.fsync(log.fileno())


def connect_writer(path: Path, synchronous: Literal["FULL", "NORMAL"]) -> sqlite3.Connection:
    """Return the one connection that writes; it may be handed to another thread.

    With FULL, COMMIT returns after the write-ahead log is on the disk; NORMAL is where it is enough
    that a power loss leaves the file as of an earlier commit. A `StoreError` where the file system
    cannot carry such a log, a `sqlite3.Error` where SQLite cannot open the file.
    """
    connection = _open_connection(path.absolute().as_uri())
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
        raise errors.StoreError(
            f"the file system of {path} cannot carry a write-ahead log (SQLite offers '{mode}'): "
            "put the data folder on a local disk (--data-dir)"
        )


def _open_connection(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


FEW = 100
"""Rows or events that are read on the event loop: at most some 1 ms. The way to a thread and back
takes as long while calls are recorded."""


class ReadPool:
    """Runs queries off the event loop; each sees all that was committed before it began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(MAX_READERS, thread_name_prefix="aftercall-reader")
        self._own = threading.local()
        self._is_closed = False
        self._connections: list[sqlite3.Connection] = []

    async def run(self, query: Callable[[sqlite3.Connection], T], *, here: bool = False) -> T:
        """Return the answer of `query`, which must fetch all that it needs.

        With `here` on this thread: for what is read sooner than another thread has begun.
        """
        if here and not self._is_closed:
            return self._run_query(query)
        loop = asyncio.get_running_loop()
        try:
            answer = loop.run_in_executor(self._threads, partial(self._run_query, query))
        except RuntimeError as error:  # what an executor states after its shutdown
            raise errors.closed_error() from error
        return await answer

    def close(self) -> None:
        """Finish running queries and close the connections; blocks; twice does nothing."""
        self._is_closed = True
        self._threads.shutdown(wait=True)
        while self._connections:
            self._connections.pop().close()

    def _run_query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return query(self._own_connection())
        except sqlite3.Error as error:
            raise from_sqlite(error, self._path) from error

    def _own_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = _open_connection(f"{self._path.absolute().as_uri()}?mode=ro")
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
            self._own.connection = connection
            self._connections.append(connection)
        return connection


Argument = TypeVar("Argument")
Result = TypeVar("Result")
MAX_GROUP = 64
"""Most calls in one transaction: bounds how long the first of them waits for the last."""


@dataclass(slots=True, eq=False)
class _Call:
    """One caller's part of a group. The queue mixes result types, hence `Any`."""

    handler: Callable[[sqlite3.Connection, Sequence[Any]], Sequence[Any]]
    argument: Any
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class GroupCommitWriter:
    """Has a connection to itself until it is closed; closing that is its maker's part."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        # A daemon: a store that no one closed must not keep the process from ending.
        self._thread = threading.Thread(
            target=self._serve_calls, name="aftercall-writer", daemon=True
        )
        self._thread.start()

    async def run(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` in the writer thread; its writes are durable when this returns.

        It may run more than once, each time on a clean slate, and must not end the transaction. If
        it raises, its writes are undone and only its own caller sees the error. A caller that is
        cancelled does not know whether its operation was committed.
        """

        def run_alone(connection: sqlite3.Connection, _: Sequence[None]) -> list[Result]:
            return [operation(connection)]

        return await self.run_together(run_alone, None)

    async def run_together(
        self,
        handler: Callable[[sqlite3.Connection, Sequence[Argument]], Sequence[Result]],
        argument: Argument,
    ) -> Result:
        """Run a handler that takes all the calls that wait for it at once; see `run`.

        It is given their arguments and returns one result for each, in order.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._closing:
            if self._is_closed:
                raise errors.closed_error()
            self._queue.put(_Call(handler, argument, future))
        return await future

    def close(self) -> None:
        """Finish what was accepted and end the thread; blocks; twice does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve_calls(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            if group:
                self._commit_group(group)
                _tell_callers(group)

    def _next_group(self) -> tuple[list[_Call], bool]:
        """Wait for one call and take all that wait behind it; False when it is the last."""
        group: list[_Call] = []
        with contextlib.suppress(queue.Empty):
            while len(group) < MAX_GROUP:
                if (call := self._queue.get(block=not group)) is None:
                    return group, False
                if not call.future.done():  # cancelled before its turn
                    group.append(call)
        return group, True

    def _commit_group(self, group: list[_Call]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            for call in group:
                self._fail_call(call, error)
            return
        try:
            _handle_calls(self._connection, group)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # the thread must live on, the callers must hear
            # SQLite may have done so itself. If this fails, the next BEGIN does too and states why.
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if len(group) == 1:
                self._fail_call(group[0], error)
            else:
                # Whose fault it was does not matter: one by one, the others succeed. A savepoint
                # for each would find the culprit too, but costs every call, and a full disk takes
                # the savepoints with it.
                for call in group:
                    self._commit_group([call])

    def _fail_call(self, call: _Call, error: Exception) -> None:
        call.error = error
        if isinstance(error, sqlite3.Error):
            call.error = from_sqlite(error, self._path)
            call.error.__cause__ = error


MAX_BYTES = 16 << 20
"""About how much one read brings into memory."""
Kept = TypeVar("Kept", Event, Row)


def bound_rows(
    found: Iterable[Kept], limit: int, together: Callable[[Kept], object] | None = None
) -> list[Kept]:
    """Events or rows until they are many or large; none parted of those that are `together`."""
    kept: list[Kept] = []
    size = 0
    for each in found:
        is_full = len(kept) >= limit or size >= MAX_BYTES
        if is_full and not (together and kept and together(kept[-1]) == together(each)):
            break
        kept.append(each)
        size += len(each.data)
    return kept


def insert_rows(
    connection: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]], after: str = ""
) -> None:
    """Insert rows by few statements; `into` and `after` are ours, never of data.

    SQLite gives the interpreter lock away with each statement, several times, and next to a thread
    that computes gets it back 0.5 ms later.
    """
    for size in (64, 8, 1):
        while len(rows) >= size:
            together, rows = rows[:size], rows[size:]
            marks = ", ".join([f"({', '.join('?' * len(together[0]))})"] * size)
            connection.execute(
                f"INSERT INTO {into} VALUES {marks} {after}",  # noqa: S608
                [*chain(*together)],
            )


def named_tool(tool: ToolKey | None) -> tuple[str, str]:
    """Return the columns `server` and `tool` of what is about a tool, or about none."""
    return ("", "") if tool is None else (tool.server_name or "", tool.tool_name)


class FileUser:
    """Part of a store that reads and writes one of its files."""

    def __init__(self, writer: GroupCommitWriter, readers: ReadPool) -> None:
        self._writer = writer
        self._readers = readers


def _handle_calls(connection: sqlite3.Connection, group: list[_Call]) -> None:
    """Run the calls, those of one handler together. They are concurrent: any order will do."""
    for handler, calls in gather_values((call.handler, call) for call in group).items():
        results = handler(connection, [call.argument for call in calls])
        for call, result in zip(calls, results, strict=True):
            call.result = result


def _tell_callers(group: list[_Call]) -> None:
    for loop, calls in gather_values((call.future.get_loop(), call) for call in group).items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: no one waits any more
            loop.call_soon_threadsafe(_answer_calls, calls)


def _answer_calls(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():  # cancelled meanwhile
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
