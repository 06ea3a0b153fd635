"""The embedded store: the log in one file, each generation of knowledge in another."""

import asyncio
import importlib.resources
import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFencedError,
    StoreFullError,
    StoreTooNewError,
    closed_error,
)
from mongo.protocol import EventLog, Leases, Metadata
from mongo.records import Lease
from mongo.sqlite import files
from mongo.sqlite.events import SqliteEvents
from mongo.sqlite.files import connect_writer
from mongo.sqlite.knowledge import SqliteKnowledge

FILE_NAME = "aftercall.sqlite3"
"""The log, the state of commands, leases and metadata."""
APPLICATION_ID = int.from_bytes(b"AftC")
"""Marks a file as ours in its header (`PRAGMA application_id`)."""
LAYOUT = 2
"""Of all files (`PRAGMA user_version`); there are no migrations before the first release."""
_GENERATION = "generation"
"""The fact that states which generation is current."""
_ROOM = 1.2
"""Times the size of the base that has to be free before it is copied."""


class SqliteStore:
    """As `mongo.protocol.Store`."""

    name = "sqlite"

    def __init__(
        self,
        data_dir: Path,
        writer: files.GroupCommitWriter,
        readers: files.ReadPool,
        resources: ExitStack,
        *,
        is_beside: bool,
    ) -> None:
        self._data_dir = data_dir
        self._writer = writer
        self._resources = resources
        self._is_beside = is_beside
        self.events: EventLog = SqliteEvents(writer, readers)
        self.leases: Leases = SqliteLeases(writer, readers)
        self.metadata: Metadata = SqliteMetadata(writer, readers)
        self._generations: dict[int, SqliteKnowledge] = {}
        self._current: SqliteKnowledge | None = None

    @property
    def knowledge(self) -> SqliteKnowledge:
        """Current generation."""
        if self._current is None:
            raise closed_error()
        return self._current

    counters = knowledge

    async def refresh_generation(self) -> bool:
        number = int(await self.metadata.get(_GENERATION) or 1)
        if (before := self._current) is not None and before.generation == number:
            return False
        self._current = await self._open_generation_file(number, is_new=False)
        if before is not None:
            await asyncio.to_thread(before.close)
            del self._generations[before.generation]
        if not self._is_beside:
            await asyncio.to_thread(self._remove_unnamed, number)
        return True

    async def open_generation(self, number: int) -> SqliteKnowledge:
        return await self._open_generation_file(number, is_new=number > self.knowledge.generation)

    async def _open_generation_file(self, number: int, *, is_new: bool) -> SqliteKnowledge:
        if number not in self._generations:
            self._generations[number] = await asyncio.to_thread(
                _open_generation, self._data_dir, number, is_new=is_new
            )
        return self._generations[number]

    async def switch_generation(self, number: int, facts: Mapping[str, str]) -> None:
        def run_operation(connection: sqlite3.Connection) -> None:
            if int(current := _get_fact(connection, _GENERATION) or "1") != number - 1:
                raise StoreFencedError(
                    f"generation {current} is current, so {number} cannot follow it: "
                    "another rebuild was faster"
                )
            for name, value in {**facts, _GENERATION: str(number)}.items():
                _put_fact(connection, name, value)

        await self._writer.run(run_operation)
        await self.refresh_generation()

    async def close(self) -> None:
        self._current = None
        for each in self._generations.values():
            await asyncio.to_thread(each.close)
        self._generations.clear()
        await asyncio.to_thread(self._resources.close)

    def _remove_unnamed(self, current: int) -> None:
        """Remove the files of generations that have passed; a later one may be made next to."""
        for path in self._data_dir.glob("generation-*.sqlite3"):
            number = re.fullmatch(r"generation-(\d+)", path.stem)
            if number and 0 < int(number[1]) < current:
                files.remove_file(path)


class SqliteLeases(files.FileUser):
    """As `mongo.protocol.Leases`."""

    async def read(self, name: str) -> Lease | None:
        return await self._readers.run(lambda connection: _read_lease(connection, name))

    async def take_lease(self, name: str, holder: str, seen: Lease | None) -> Lease | None:
        def run_operation(connection: sqlite3.Connection) -> Lease | None:
            if _read_lease(connection, name) != seen:
                return None
            token = 1 if seen is None else seen.token + 1
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, 0, TRUE)", (name, holder, token)
            )
            return Lease(name, holder, token)

        return await self._writer.run(run_operation)

    async def renew_lease(self, lease: Lease) -> Lease | None:
        def run_operation(connection: sqlite3.Connection) -> Lease | None:
            changed = connection.execute(
                "UPDATE leases SET beat = beat + 1 WHERE name = ? AND token = ? AND held",
                (lease.name, lease.token),
            ).rowcount
            return _read_lease(connection, lease.name) if changed else None

        return await self._writer.run(run_operation)

    async def give_back(self, lease: Lease) -> None:
        await self._writer.run(
            lambda connection: connection.execute(
                "UPDATE leases SET held = FALSE WHERE name = ? AND token = ?",
                (lease.name, lease.token),
            )
        )


class SqliteMetadata(files.FileUser):
    """As `mongo.protocol.Metadata`."""

    async def get(self, name: str) -> str | None:
        return await self._readers.run(lambda connection: _get_fact(connection, name))

    async def put(self, name: str, value: str) -> None:
        await self._writer.run(lambda connection: _put_fact(connection, name, value))

    async def keep_fact(self, name: str, value: str) -> str:
        def run_operation(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT OR IGNORE INTO metadata VALUES (?, ?)", (name, value))
            return _get_fact(connection, name) or ""

        return await self._writer.run(run_operation)


async def open_sqlite_store(data_dir: Path, *, beside: bool = False) -> SqliteStore:
    """Open the store in `data_dir`, making both if need be; the caller closes it.

    What is made is private: the folder 0700, the files 0600. They hold what agents sent.

    With `beside` a service may have it open, as for a nightly run; the log has to be there already.

    Raises:
        StoreInUseError: another process (or this one) has the folder open.
        StoreTooNewError: a newer version has written a file; it was not changed.
        StoreDamagedError: a file is not a store of this version, or is corrupt; it was not changed.
        StoreFullError: no space to open it.
        StoreReadOnlyError: its volume or its files take no writes, without which SQLite cannot
            open it.
        StoreError: the folder or the file cannot be written.
    """
    async with AsyncExitStack() as opened:
        store = await asyncio.to_thread(_open_store, data_dir, is_beside=beside)
        opened.push_async_callback(store.close)
        await store.refresh_generation()
        opened.pop_all()
        return store


def _open_store(data_dir: Path, *, is_beside: bool) -> SqliteStore:
    path = data_dir / FILE_NAME
    with ExitStack() as resources:
        if not is_beside:
            files.make_folder(data_dir)
            resources.callback(files.FolderLock(data_dir).release_lock)
        elif not path.exists():
            raise StoreError(
                f"there is no store in {data_dir}: start `aftercall serve` there first, or choose "
                "another data folder (--data-dir)"
            )
        _refuse_lost_log(path)
        writer, readers = open_file(path, "log", resources, synchronous="FULL")
        return SqliteStore(data_dir, writer, readers, resources.pop_all(), is_beside=is_beside)


def _refuse_lost_log(path: Path) -> None:
    """Raise a `StoreDamagedError` where the log of learned knowledge is missing."""
    known = sorted(path.parent.glob("generation-*.sqlite3"))
    if known and (not path.exists() or path.stat().st_size == 0):
        raise StoreDamagedError(
            f"{path} is missing or empty, and {known[-1].name} holds what was learned from it: "
            "restore it from a backup; or, to begin with an empty store, move the files "
            f"{known[-1].name.rpartition('-')[0]}-*.sqlite3 away, or choose another data folder "
            "(--data-dir)"
        )


def _open_generation(data_dir: Path, number: int, *, is_new: bool) -> SqliteKnowledge:
    path, base = data_dir / f"generation-{number}.sqlite3", data_dir / "generation-0.sqlite3"
    if is_new:
        files.remove_file(path)
        if base.exists():
            _copy_base(base, path)
    with ExitStack() as resources:
        # What the base holds is gone from the log; another one falls back with its cursor.
        writer, readers = open_file(
            path, "knowledge", resources, synchronous="FULL" if number == 0 else "NORMAL"
        )
        return SqliteKnowledge(path, writer, readers, resources.pop_all())


def _copy_base(base: Path, path: Path) -> None:
    needed, free = int(_ROOM * base.stat().st_size), shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreFullError(
            f"{path.parent} has {free >> 20} MiB free, and {needed >> 20} MiB are needed: free "
            "space on its volume and try again"
        )
    files.make_file(path)
    try:
        with closing(sqlite3.connect(base)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise files.from_sqlite(error, path) from error


def open_file(
    path: Path, schema: str, resources: ExitStack, *, synchronous: str
) -> tuple[files.GroupCommitWriter, files.ReadPool]:
    """Return a file of the store, made by `SCHEMA.sql` where none exists.

    Who writes and reads it.
    """
    statements = importlib.resources.files(__package__).joinpath(f"{schema}.sql").read_text()
    try:
        files.make_file(path)
        _check_layout(path)
        connection = connect_writer(path, "FULL" if synchronous == "FULL" else "NORMAL")
        resources.callback(connection.close)
        if _read_pragma(connection, "user_version") != LAYOUT:
            connection.execute("BEGIN IMMEDIATE")
            if _read_pragma(connection, "user_version") != LAYOUT:
                for statement in statements.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise files.from_sqlite(error, path) from error
    writer = files.GroupCommitWriter(connection, path)
    resources.callback(writer.close)
    # Closed first, so that the writer's connection is the last: it folds the log into the file.
    readers = files.ReadPool(path)
    resources.callback(readers.close)
    return writer, readers


def _read_layout(path: Path, mode: str) -> tuple[tuple[int, int], bool]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        found = _read_pragma(connection, "application_id"), _read_pragma(connection, "user_version")
        return found, connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def _check_layout(path: Path) -> None:
    if path.stat().st_size == 0:
        return
    try:
        found, is_empty = _read_layout(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        found, is_empty = _read_layout(path, "rw")  # undoes what a killed process had begun
    if found == (0, 0) and is_empty:
        return  # made, and killed before its first commit
    if found[0] != APPLICATION_ID:
        raise files.damaged_error(path, "it is another program's database")
    if found[1] > LAYOUT:
        raise StoreTooNewError(
            f"{path} was written by a newer version of Aftercall (layout {found[1]}, this one has "
            f"{LAYOUT}); it was left as it is. Upgrade Aftercall, or choose another data folder "
            "(--data-dir)"
        )
    if found[1] < LAYOUT:
        raise StoreDamagedError(
            f"{path} has layout {found[1]}, this version of Aftercall has {LAYOUT}, and there was "
            "no release between them: it can neither be read nor imported here. Go on with the "
            "version that wrote it, or begin with another data folder (--data-dir)"
        )


def _read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _get_fact(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _put_fact(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))


def _read_lease(connection: sqlite3.Connection, name: str) -> Lease | None:
    row = connection.execute(
        "SELECT holder, token, beat, held FROM leases WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Lease(name, row[0], row[1], row[2], bool(row[3]))
