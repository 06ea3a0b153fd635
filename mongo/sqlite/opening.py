"""Opening the embedded log store: folder, lock, checks, migrations, threads."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from mongo.errors import StoreFullError, StoreReadOnlyError
from mongo.sqlite import faults, files
from mongo.sqlite.connection import connect_writer
from mongo.sqlite.lock import FolderLock
from mongo.sqlite.readers import ReadPool
from mongo.sqlite.schema import MIGRATIONS, Migration, check_beside, check_file, migrate
from mongo.sqlite.store import SqliteLogStore
from mongo.sqlite.writer import GroupCommitWriter

FILE_NAME = "aftercall.sqlite3"


async def open_sqlite_store(
    data_dir: Path, *, migrations: Sequence[Migration] = MIGRATIONS, beside: bool = False
) -> SqliteLogStore:
    """Open the store in `data_dir`, making both if need be; the caller closes it.

    What is made is private: the folder 0700, the files 0600. They hold what agents sent.

    Args:
        data_dir: the folder that is the store's own.
        migrations: the layout.
        beside: open it although a service may have it open, for a nightly run, a rebuild or an
            export. Nothing is made then, and the layout has to be this version's already.

    Raises:
        StoreInUseError: another process (or this one) has the folder open.
        StoreTooNewError: the file was written by a newer version; it was not changed.
        StoreDamagedError: the file is not a store, or is corrupt; it was not changed.
        StoreFullError: no space to open it.
        StoreReadOnlyError: its volume or its files take no writes, without which SQLite cannot
            open it.
        StoreError: the folder or the file cannot be written.
    """
    try:
        if beside:
            return await asyncio.to_thread(_open_beside, data_dir, migrations)
        return await asyncio.to_thread(_open, data_dir, migrations)
    except StoreFullError as error:
        # Raised below in the words for a call that was not stored; here there was none.
        raise faults.full_when_opening(data_dir) from error
    except StoreReadOnlyError as error:
        raise faults.read_only_when_opening(data_dir) from error


def _open(data_dir: Path, migrations: Sequence[Migration]) -> SqliteLogStore:
    path = data_dir / FILE_NAME
    with ExitStack() as resources:
        files.make_folder(data_dir)
        resources.callback(FolderLock(data_dir).release)
        check_file(path, newest=len(migrations))
        files.make_file(path)
        return _connect(path, resources, partial(migrate, migrations=migrations))


def _open_beside(data_dir: Path, migrations: Sequence[Migration]) -> SqliteLogStore:
    path = data_dir / FILE_NAME
    check_beside(path, layout=len(migrations))
    with ExitStack() as resources:
        return _connect(path, resources, is_beside=True)


def _connect(
    path: Path,
    resources: ExitStack,
    prepare: Callable[[sqlite3.Connection], None] | None = None,
    *,
    is_beside: bool = False,
) -> SqliteLogStore:
    """The store over a file that was looked at; what it takes is added to the resources."""
    try:
        connection = connect_writer(path)
        resources.callback(connection.close)
        if prepare is not None:
            prepare(connection)
    except sqlite3.Error as error:
        raise faults.from_sqlite(error, path) from error
    writer = GroupCommitWriter(connection, path)
    resources.callback(writer.close)
    # Closed first, so that the writer's connection is the last: it folds the log into the file.
    readers = ReadPool(path)
    resources.callback(readers.close)
    return SqliteLogStore(path, writer, readers, resources=resources.pop_all(), is_beside=is_beside)
