"""Ways into a SQLite store that only its tests need."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mongo.sqlite.store import FILE_NAME, SqliteStore, open_sqlite_store

T = TypeVar("T")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An empty SQLite store."""
    opened = await open_sqlite_store(tmp_path / "data")
    yield opened
    await opened.close()


async def write(store: SqliteStore, operation: Callable[[sqlite3.Connection], T]) -> T:
    """Run an operation of the test's own in the writer of the log's file."""
    return await store._writer.run(operation)


@asynccontextmanager
async def held_writer(store: SqliteStore) -> AsyncIterator[None]:
    """The writer is busy inside: what is called meanwhile waits, to be one group afterwards."""
    entered, leave = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        entered.set()
        if not leave.wait(timeout=200):
            raise TimeoutError("the test did not let the writer go")

    holding = asyncio.create_task(write(store, hold))
    try:
        if not await asyncio.to_thread(entered.wait, 30):
            raise TimeoutError("the writer did not take the operation")
        yield
    finally:
        leave.set()
        await holding


def execute(data_dir: Path, *statements: str, name: str = FILE_NAME) -> list[Any]:
    """Run statements on a file of a closed store and return the last one's rows."""
    with closing(sqlite3.connect(data_dir / name, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows
