"""Opening the embedded log store: folder, lock, checks, migrations, threads."""

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from mongo.errors import StoreFullError
from mongo.sqlite import faults
from mongo.sqlite.connection import connect_writer
from mongo.sqlite.lock import FolderLock
from mongo.sqlite.readers import ReadPool
from mongo.sqlite.schema import MIGRATIONS, Migration, check_file, migrate
from mongo.sqlite.store import SqliteLogStore
from mongo.sqlite.writer import GroupCommitWriter

FILE_NAME = "aftercall.sqlite3"


async def open_sqlite_store(
    data_dir: Path, *, migrations: Sequence[Migration] = MIGRATIONS
) -> SqliteLogStore:
    """Open the store in `data_dir`, making both if need be; the caller closes it.

    What is made is private: the folder 0700, the files 0600. They hold what agents sent.

    Raises:
        StoreInUseError: another process (or this one) has the folder open.
        StoreTooNewError: the file was written by a newer version; it was not changed.
        StoreDamagedError: the file is not a store, or is corrupt; it was not changed.
        StoreFullError: no space to open it.
        StoreError: the folder or the file cannot be written.
    """
    try:
        return await asyncio.to_thread(_open, data_dir, migrations)
    except StoreFullError as error:
        # Raised below in the words for a call that was not stored; here there was none.
        raise faults.full_when_opening(data_dir) from error


def _open(data_dir: Path, migrations: Sequence[Migration]) -> SqliteLogStore:
    path = data_dir / FILE_NAME
    with ExitStack() as resources:
        _make_folder(data_dir)
        resources.callback(FolderLock(data_dir).release)
        check_file(path, newest=len(migrations))
        _make_file(path)
        try:
            connection = connect_writer(path)
            resources.callback(connection.close)
            migrate(connection, migrations)
        except sqlite3.Error as error:
            raise faults.from_sqlite(error, path) from error
        writer = GroupCommitWriter(connection, path)
        resources.callback(writer.close)
        # Closed first, so that the writer's connection is the last: it folds the log into the file.
        readers = ReadPool(path)
        resources.callback(readers.close)
        return SqliteLogStore(writer, readers, resources=resources.pop_all())


def _make_folder(data_dir: Path) -> None:
    try:
        if data_dir.is_dir():
            return
        data_dir.mkdir(mode=0o700, parents=True)
        _flush_folder(data_dir.parent)
    except OSError as error:
        raise faults.from_os(error, data_dir) from error


def _make_file(path: Path) -> None:
    """SQLite would make it readable for all; its log takes the permissions from it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        _flush_folder(path.parent)
    except OSError as error:
        raise faults.from_os(error, path) from error


def _flush_folder(folder: Path) -> None:
    """Make new names in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
