"""The embedded store: the log in one file, each generation of knowledge in another."""

import asyncio
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreFencedError,
    StoreFullError,
    StoreReadOnlyError,
)
from mongo.protocol import EventLog, Leases, Metadata
from mongo.records import Lease
from mongo.sqlite import events, faults, folder, knowledge
from mongo.sqlite.connections import ReadPool, connect_writer
from mongo.sqlite.events import SqliteEvents
from mongo.sqlite.knowledge import SqliteKnowledge
from mongo.sqlite.writer import GroupCommitWriter

FILE_NAME = "aftercall.sqlite3"
"""The log, the state of commands, leases and metadata."""

APPLICATION_ID = int.from_bytes(b"AftC")
"""Marks a file as ours in its header (`PRAGMA application_id`)."""

LAYOUT = 1
"""Of all files (`PRAGMA user_version`); there are no migrations before the first release."""

_SCHEMA = (
    *events.SCHEMA,
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY, holder TEXT, token INTEGER, beat INTEGER, held INTEGER
    )
    """,
    "CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT)",
)

_GENERATION = "generation"
"""The fact that says which generation is current."""

_ROOM = 1.2
"""Times the size of the base that has to be free before it is copied."""


class SqliteStore:
    """As `mongo.protocol.Store`."""

    name = "sqlite"

    def __init__(
        self,
        data_dir: Path,
        writer: GroupCommitWriter,
        readers: ReadPool,
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
        """The current generation."""
        if self._current is None:
            raise faults.closed()
        return self._current

    counters = knowledge

    async def refresh(self) -> bool:  # noqa: D102
        number = int(await self.metadata.get(_GENERATION) or 1)
        before = self._current
        if before is not None and before.generation == number:
            return False
        self._current = await self._open(number, is_new=False)
        if before is not None:
            await asyncio.to_thread(before.close)
            del self._generations[before.generation]
        if not self._is_beside:
            await asyncio.to_thread(self._remove_unnamed, number)
        return True

    async def open_generation(self, number: int) -> SqliteKnowledge:  # noqa: D102
        return await self._open(number, is_new=number > self.knowledge.generation)

    async def _open(self, number: int, *, is_new: bool) -> SqliteKnowledge:
        if number not in self._generations:
            self._generations[number] = await asyncio.to_thread(
                _open_generation, self._data_dir, number, is_new=is_new
            )
        return self._generations[number]

    async def switch(self, number: int, facts: Mapping[str, str]) -> None:  # noqa: D102
        def operation(connection: sqlite3.Connection) -> None:
            current = _get(connection, _GENERATION) or "1"
            if int(current) != number - 1:
                raise StoreFencedError(
                    f"generation {current} is current, so {number} cannot follow it: "
                    "another rebuild was faster"
                )
            for name, value in {**facts, _GENERATION: str(number)}.items():
                _put(connection, name, value)

        await self._writer.run(operation)
        await self.refresh()

    async def close(self) -> None:  # noqa: D102
        self._current = None
        for each in self._generations.values():
            await asyncio.to_thread(each.close)
        self._generations.clear()
        await asyncio.to_thread(self._resources.close)

    def _remove_unnamed(self, current: int) -> None:
        """Remove the files of generations that have passed; a later one may be made beside."""
        for path in self._data_dir.glob("generation-*.sqlite3"):
            number = re.fullmatch(r"generation-(\d+)", path.stem)
            if number and 0 < int(number[1]) < current:
                folder.remove_file(path)


class SqliteLeases:
    """As `mongo.protocol.Leases`."""

    def __init__(self, writer: GroupCommitWriter, readers: ReadPool) -> None:
        self._writer = writer
        self._readers = readers

    async def read(self, name: str) -> Lease | None:  # noqa: D102
        return await self._readers.run(lambda connection: _lease(connection, name))

    async def take(self, name: str, holder: str, seen: Lease | None) -> Lease | None:  # noqa: D102
        def operation(connection: sqlite3.Connection) -> Lease | None:
            if _lease(connection, name) != seen:
                return None
            token = 1 if seen is None else seen.token + 1
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, 0, TRUE)", (name, holder, token)
            )
            return Lease(name, holder, token)

        return await self._writer.run(operation)

    async def beat(self, lease: Lease) -> Lease | None:  # noqa: D102
        def operation(connection: sqlite3.Connection) -> Lease | None:
            changed = connection.execute(
                "UPDATE leases SET beat = beat + 1 "
                "WHERE name = ? AND holder = ? AND token = ? AND held",
                (lease.name, lease.holder, lease.token),
            ).rowcount
            return _lease(connection, lease.name) if changed else None

        return await self._writer.run(operation)

    async def give_back(self, lease: Lease) -> None:  # noqa: D102
        await self._writer.run(
            lambda connection: connection.execute(
                "UPDATE leases SET held = FALSE WHERE name = ? AND holder = ? AND token = ?",
                (lease.name, lease.holder, lease.token),
            )
        )


class SqliteMetadata:
    """As `mongo.protocol.Metadata`."""

    def __init__(self, writer: GroupCommitWriter, readers: ReadPool) -> None:
        self._writer = writer
        self._readers = readers

    async def get(self, name: str) -> str | None:  # noqa: D102
        return await self._readers.run(lambda connection: _get(connection, name))

    async def put(self, name: str, value: str) -> None:  # noqa: D102
        await self._writer.run(lambda connection: _put(connection, name, value))


async def open_sqlite_store(data_dir: Path, *, beside: bool = False) -> SqliteStore:
    """Open the store in `data_dir`, making both if need be; the caller closes it.

    What is made is private: the folder 0700, the files 0600. They hold what agents sent.

    Args:
        data_dir: the folder that is the store's own.
        beside: open it although a service may have it open, for a nightly run, a rebuild or an
            export. The log has to be there already.

    Raises:
        StoreInUseError: another process (or this one) has the folder open.
        StoreDamagedError: a file is not a store of this version, or is corrupt; it was not changed.
        StoreFullError: no space to open it.
        StoreReadOnlyError: its volume or its files take no writes, without which SQLite cannot
            open it.
        StoreError: the folder or the file cannot be written.
    """
    async with AsyncExitStack() as opened:
        try:
            store = await asyncio.to_thread(_open, data_dir, is_beside=beside)
            opened.push_async_callback(store.close)
            await store.refresh()
        except StoreFullError as error:
            # Raised below in the words for a call that was not stored; here there was none.
            raise faults.full_when_opening(data_dir) from error
        except StoreReadOnlyError as error:
            raise faults.read_only_when_opening(data_dir) from error
        opened.pop_all()
        return store


def _open(data_dir: Path, *, is_beside: bool) -> SqliteStore:
    path = data_dir / FILE_NAME
    with ExitStack() as resources:
        if not is_beside:
            folder.make_folder(data_dir)
            resources.callback(folder.FolderLock(data_dir).release)
        elif not path.exists():
            raise StoreError(
                f"there is no store in {data_dir}: start `aftercall serve` there first, or choose "
                "another data folder (--data-dir)"
            )
        writer, readers = _open_file(path, _SCHEMA, resources, synchronous="FULL")
        return SqliteStore(data_dir, writer, readers, resources.pop_all(), is_beside=is_beside)


def _open_generation(data_dir: Path, number: int, *, is_new: bool) -> SqliteKnowledge:
    path, base = data_dir / f"generation-{number}.sqlite3", data_dir / "generation-0.sqlite3"
    if is_new:
        folder.remove_file(path)
        if base.exists():
            _copy(base, path)
    with ExitStack() as resources:
        writer, readers = _open_file(path, knowledge.SCHEMA, resources, synchronous="NORMAL")
        return SqliteKnowledge(number, writer, readers, resources.pop_all())


def _copy(base: Path, path: Path) -> None:
    needed, free = int(_ROOM * base.stat().st_size), shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreFullError(
            f"{path.parent} has {free >> 20} MiB free, and {needed >> 20} MiB are needed: free "
            "space on its volume and try again"
        )
    folder.make_file(path)
    try:
        with closing(sqlite3.connect(base)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path) from error


def _open_file(
    path: Path, schema: Sequence[str], resources: ExitStack, *, synchronous: str
) -> tuple[GroupCommitWriter, ReadPool]:
    """A file's writer and readers, made if need be; what they take is added to the resources."""
    try:
        folder.make_file(path)
        _check(path)
        connection = connect_writer(path, "FULL" if synchronous == "FULL" else "NORMAL")
        resources.callback(connection.close)
        if _pragma(connection, "user_version") != LAYOUT:
            connection.execute("BEGIN IMMEDIATE")
            if _pragma(connection, "user_version") != LAYOUT:
                for statement in schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path) from error
    writer = GroupCommitWriter(connection, path)
    resources.callback(writer.close)
    # Closed first, so that the writer's connection is the last: it folds the log into the file.
    readers = ReadPool(path)
    resources.callback(readers.close)
    return writer, readers


def _check(path: Path) -> None:
    """See that a file is empty or ours, before anything is written to it.

    Raises:
        StoreDamagedError: it is neither.
        sqlite3.Error: it cannot be read.
    """
    if path.stat().st_size == 0:
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        found = _pragma(connection, "application_id"), _pragma(connection, "user_version")
        is_empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    if found == (0, 0) and is_empty:
        return  # made, and killed before its first commit
    if found[0] != APPLICATION_ID:
        raise faults.damaged(path, "it is another program's database")
    if found[1] != LAYOUT:
        raise StoreDamagedError(
            f"{path} has layout {found[1]}, this version of Aftercall has {LAYOUT}: export it with "
            "the version that wrote it, and import it into another data folder (--data-dir)"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _get(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM metadata WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _put(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO metadata VALUES (?, ?)", (name, value))


def _lease(connection: sqlite3.Connection, name: str) -> Lease | None:
    row = connection.execute(
        "SELECT holder, token, beat, held FROM leases WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Lease(name, row[0], row[1], row[2], bool(row[3]))
