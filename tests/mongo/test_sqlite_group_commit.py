"""The writer commits together what waits together, and keeps the callers apart."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mongo.errors import StoreError, StoreReadOnlyError, StoreUnavailableError
from mongo.sqlite import FILE_NAME, SqliteLogStore, open_sqlite_store
from tests.mongo.log_store_samples import WORKSPACE, make_execution, make_executions, make_id
from tests.mongo.sqlite_inside import held_writer, read, write


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLogStore]:
    async with await open_sqlite_store(tmp_path / "data") as store:
        yield store


async def begin(*calls: asyncio.Task[object]) -> None:
    """Let the tasks run up to their place in the writer's queue."""
    await asyncio.sleep(0)
    assert not any(call.done() for call in calls)


async def test_calls_that_wait_together_share_one_commit(store: SqliteLogStore) -> None:
    """Thirty appends that arrive while the writer is busy cost one transaction."""
    statements: list[str] = []
    await write(store, lambda connection: connection.set_trace_callback(statements.append))
    async with held_writer(store):
        statements.clear()
        appends = [
            asyncio.create_task(store.append(WORKSPACE, [make_execution(number)]))
            for number in range(30)
        ]
        await begin(*appends)
    assert await asyncio.gather(*appends) == [["accepted"]] * 30
    # One COMMIT ends the transaction that held the writer.
    assert statements.count("COMMIT") == 2


async def test_a_failing_operation_leaves_its_neighbours_alone(store: SqliteLogStore) -> None:
    """Its own writes are undone and its own caller hears of it; the group is committed."""

    def write_then_raise(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO facts VALUES ('half', 'written')")
        raise ValueError("a fault of its own")

    def break_a_rule(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO facts VALUES ('half', NULL)")

    async with held_writer(store):
        calls: list[asyncio.Task[object]] = [
            asyncio.create_task(store.append(WORKSPACE, [make_execution(1)])),
            asyncio.create_task(write(store, write_then_raise)),
            asyncio.create_task(store.put_fact("model", "m")),
            asyncio.create_task(write(store, break_a_rule)),
            asyncio.create_task(store.append(WORKSPACE, [make_execution(2)])),
        ]
        await begin(*calls)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [answers[0], answers[2], answers[4]] == [["accepted"], None, ["accepted"]]
    assert isinstance(answers[1], ValueError)
    assert isinstance(answers[3], StoreError)
    assert isinstance(answers[3].__cause__, sqlite3.IntegrityError)
    assert await store.get_fact("half") is None
    assert await store.get_fact("model") == "m"
    assert (await store.counts()).executions == 2


async def test_an_append_that_cannot_be_stored_fails_alone(store: SqliteLogStore) -> None:
    """Appends are inserted together; one that SQLite refuses does not refuse the others."""
    async with held_writer(store):
        calls: list[asyncio.Task[object]] = [
            asyncio.create_task(store.append(workspace, [make_execution(number)]))
            for number, workspace in enumerate(("a", "\ud800", "b"))
        ]
        await begin(*calls)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[::2] == [["accepted"], ["accepted"]]
    assert isinstance(answers[1], UnicodeEncodeError)
    stored = [(await store.counts(workspace)).executions for workspace in ("a", "b")]
    assert stored == [1, 1]
    assert (await store.counts()).executions == 2


async def test_a_call_cancelled_before_its_turn_is_not_made(store: SqliteLogStore) -> None:
    """The writer passes over it."""
    async with held_writer(store):
        cancelled = asyncio.create_task(store.append(WORKSPACE, [make_execution(1)]))
        kept = asyncio.create_task(store.append(WORKSPACE, [make_execution(2)]))
        await begin(cancelled, kept)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert await kept == ["accepted"]
    assert await store.get_execution(WORKSPACE, make_id(1)) is None


async def test_a_call_cancelled_while_it_runs_is_finished(store: SqliteLogStore) -> None:
    """What the writer has begun is committed, and the others of its group have their answers."""
    loop = asyncio.get_running_loop()
    is_running, may_end = asyncio.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> bool:
        connection.execute("INSERT INTO facts VALUES ('slow', 'done')")
        loop.call_soon_threadsafe(is_running.set)
        return may_end.wait(timeout=30)

    async with held_writer(store):
        cancelled = asyncio.create_task(write(store, slow))
        neighbour = asyncio.create_task(store.append(WORKSPACE, [make_execution(1)]))
        await begin(cancelled, neighbour)
    await is_running.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    may_end.set()
    assert await asyncio.wait_for(neighbour, timeout=30) == ["accepted"]
    assert await store.get_fact("slow") == "done"


async def test_reads_go_on_while_the_writer_is_busy(store: SqliteLogStore) -> None:
    """A long write keeps neither the event loop nor a read waiting, and is not seen half done."""
    await store.append(WORKSPACE, make_executions(3))
    async with held_writer(store):
        waiting = asyncio.create_task(store.append(WORKSPACE, [make_execution(9)]))
        await begin(waiting)
        assert (await store.counts()).executions == 3
        assert len(await store.pending(WORKSPACE, 10)) == 3
    await waiting
    assert (await store.counts()).executions == 4


async def test_readers_cannot_write(store: SqliteLogStore) -> None:
    """Only the writer's connection can, so that a lock is never fought for."""
    with pytest.raises(StoreReadOnlyError, match="read and write permission"):
        await read(store, "DELETE FROM facts")


async def test_a_foreign_lock_is_reported_with_its_cure(
    store: SqliteLogStore, tmp_path: Path
) -> None:
    """When another program holds the file, the caller is told to close it and can try again."""
    await write(store, lambda connection: connection.execute("PRAGMA busy_timeout = 10").close())
    other = sqlite3.connect(tmp_path / "data" / FILE_NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="close it and try again"):
            await store.append(WORKSPACE, [make_execution(1)])
    finally:
        other.close()
    assert await store.append(WORKSPACE, [make_execution(1)]) == ["accepted"]


async def test_a_store_that_takes_no_writes_says_so_and_can_be_read(store: SqliteLogStore) -> None:
    """The caller is told the cure and may try again; nothing of its call is stored."""
    await store.append(WORKSPACE, [make_execution(1)])
    await write(store, lambda connection: connection.execute("PRAGMA query_only = ON").close())
    with pytest.raises(StoreReadOnlyError, match="Mount its volume for writing"):
        await store.append(WORKSPACE, [make_execution(2)])
    assert (await store.counts()).executions == 1
    assert await store.get_execution(WORKSPACE, make_id(1)) == make_execution(1).execution
    # Not by the writer: it begins a transaction first, which is refused.
    store._writer._connection.execute("PRAGMA query_only = OFF")
    assert await store.append(WORKSPACE, [make_execution(2)]) == ["accepted"]
