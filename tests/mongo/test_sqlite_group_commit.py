"""The writer commits together what waits together, and keeps the callers apart."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from mongo.errors import StoreUnavailableError
from mongo.sqlite.store import FILE_NAME, SqliteStore
from tests.mongo.sqlite_inside import held_writer, store, write
from tests.mongo.store_samples import WORKSPACE, make_event

__all__ = ["store"]


async def begin(*calls: asyncio.Task[object]) -> None:
    """Let the tasks run up to their place in the writer's queue."""
    await asyncio.sleep(0)
    assert not any(call.done() for call in calls)


async def test_calls_that_wait_together_share_one_commit(store: SqliteStore) -> None:
    """Thirty appends that arrive while the writer is busy cost one transaction."""
    statements: list[str] = []
    await write(store, lambda connection: connection.set_trace_callback(statements.append))
    async with held_writer(store):
        statements.clear()
        appends = [
            asyncio.create_task(store.events.append(WORKSPACE, [make_event(number)]))
            for number in range(30)
        ]
        await begin(*appends)
    assert await asyncio.gather(*appends) == [["accepted"]] * 30
    # One COMMIT ends the transaction that held the writer.
    assert statements.count("COMMIT") == 2


async def test_an_append_that_cannot_be_stored_fails_alone(store: SqliteStore) -> None:
    """Appends are inserted together; one that SQLite refuses does not refuse the others."""
    async with held_writer(store):
        calls: list[asyncio.Task[object]] = [
            asyncio.create_task(store.events.append(workspace, [make_event(number)]))
            for number, workspace in enumerate(("a", "\ud800", "b"))
        ]
        await begin(*calls)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[::2] == [["accepted"], ["accepted"]]
    assert isinstance(answers[1], UnicodeEncodeError)
    heads = await store.events.read_heads()
    assert {name: head.counts["execution"] for name, head in heads.items()} == {"a": 1, "b": 1}


async def test_a_call_cancelled_before_its_turn_is_not_made(store: SqliteStore) -> None:
    """The writer passes over it."""
    async with held_writer(store):
        cancelled = asyncio.create_task(store.events.append(WORKSPACE, [make_event(1)]))
        kept = asyncio.create_task(store.events.append(WORKSPACE, [make_event(2)]))
        await begin(cancelled, kept)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert await kept == ["accepted"]
    assert await store.events.find_events(WORKSPACE, "execution", ["id-1"]) == []


async def test_a_call_cancelled_while_it_runs_is_finished(store: SqliteStore) -> None:
    """What the writer has begun is committed, and the others of its group have their answers."""
    loop = asyncio.get_running_loop()
    is_running, may_end = asyncio.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> bool:
        connection.execute("INSERT INTO metadata VALUES ('slow', 'done')")
        loop.call_soon_threadsafe(is_running.set)
        return may_end.wait(timeout=200)

    async with held_writer(store):
        cancelled = asyncio.create_task(write(store, slow))
        neighbour = asyncio.create_task(store.events.append(WORKSPACE, [make_event(1)]))
        await begin(cancelled, neighbour)
    await is_running.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    may_end.set()
    assert await asyncio.wait_for(neighbour, timeout=200) == ["accepted"]
    assert await store.metadata.get("slow") == "done"


async def test_a_foreign_lock_is_reported_with_its_cure(store: SqliteStore, tmp_path: Path) -> None:
    """When another program holds the file, the caller is told to close it and can try again."""
    await write(store, lambda connection: connection.execute("PRAGMA busy_timeout = 10").close())
    other = sqlite3.connect(tmp_path / "data" / FILE_NAME, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="close it and try again"):
            await store.events.append(WORKSPACE, [make_event(1)])
    finally:
        other.close()
    assert await store.events.append(WORKSPACE, [make_event(1)]) == ["accepted"]
