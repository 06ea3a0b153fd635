"""Ways into a SQLite store that only its tests need."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

from mongo.records import NewExecution
from mongo.sqlite import FILE_NAME, SqliteLogStore
from mongo.sqlite import executions as execution_log
from mongo.sqlite.upkeep_tables import QUEUES

T = TypeVar("T")

__all__ = ["QUEUES", "append_old", "execute", "held_writer", "read", "write"]

_INTO_OLD = """
INSERT INTO executions (
    workspace, execution_id, server_name, tool_name, session_id, outcome,
    timestamp, received_at, content_hash, schema_hash, size, data
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


async def write(store: SqliteLogStore, operation: Callable[[sqlite3.Connection], T]) -> T:
    """Run an operation of the test's own in the store's writer."""
    return await store._writer.run(operation)


async def read(store: SqliteLogStore, query: str) -> list[Any]:
    """The rows of a query on one of the store's read-only connections."""
    return await store._readers.run(lambda connection: connection.execute(query).fetchall())


@asynccontextmanager
async def held_writer(store: SqliteLogStore) -> AsyncIterator[None]:
    """The writer is busy inside: what is called meanwhile waits, to be one group afterwards."""
    entered, leave = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        entered.set()
        if not leave.wait(timeout=30):
            raise TimeoutError("the test did not let the writer go")

    holding = asyncio.create_task(write(store, hold))
    try:
        if not await asyncio.to_thread(entered.wait, 30):
            raise TimeoutError("the writer did not take the operation")
        yield
    finally:
        leave.set()
        await holding


def append_old(data_dir: Path, workspace: str, executions: list[NewExecution]) -> None:
    """Append to the file of a closed store whose layout is older than the fifth."""
    rows = [execution_log._row(workspace, new, received_at=1)[:-1] for new in executions]
    with closing(sqlite3.connect(data_dir / FILE_NAME)) as connection, connection:
        connection.executemany(_INTO_OLD, rows)


def execute(data_dir: Path, *statements: str) -> list[Any]:
    """Run statements on the file of a closed store and return the last one's rows."""
    with closing(sqlite3.connect(data_dir / FILE_NAME, isolation_level=None)) as connection:
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows
