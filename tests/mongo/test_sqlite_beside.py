"""Several processes on one file: a service, and what runs beside it."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mongo.errors import StoreDamagedError, StoreError, StoreFencedError, StoreTooNewError
from mongo.records import DocumentRow, IndexCommit, KnowledgeRow
from mongo.sqlite import (
    FILE_NAME,
    SqliteLogStore,
    changes,
    corrections,
    knowledge,
    marks,
    open_sqlite_store,
    promotions,
    suggestions,
    tools,
    vectors,
)
from mongo.sqlite import executions as execution_log
from mongo.sqlite.connection import connect_reader, connect_writer
from mongo.sqlite.schema import MIGRATIONS
from mongo.sqlite.shadow import shadow_path
from tests.mongo.beside_scenario import BATCHES, DOCUMENTS
from tests.mongo.log_store_samples import (
    SEARCH,
    WORKSPACE,
    make_execution,
    make_executions,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)
from tests.mongo.sqlite_inside import QUEUES, execute, read, write

SCENARIO = Path(__file__).with_name("beside_scenario.py")


def start(what: str, data_dir: Path) -> "subprocess.Popen[bytes]":
    """Another process that works beside."""
    return subprocess.Popen(
        [sys.executable, SCENARIO, what, data_dir],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


async def check_counts(store: SqliteLogStore) -> None:
    """The counters are what counting says."""
    queues = " + ".join(f"(SELECT count(*) FROM {queue})" for queue in QUEUES)  # noqa: S608
    [(executions, pending, documents)] = await read(
        store,
        f"SELECT count(*), {queues}, (SELECT count(*) FROM documents) FROM executions",  # noqa: S608
    )
    counts = await store.counts()
    assert (counts.executions, counts.pending, counts.documents) == (
        executions, pending, documents,
    )  # fmt: skip


async def test_beside_needs_a_store_of_this_version(tmp_path: Path) -> None:
    """It makes nothing and brings nothing forward; the message says what to start."""
    with pytest.raises(StoreError, match="start the service on this folder once"):
        await open_sqlite_store(tmp_path / "none", beside=True)
    assert not (tmp_path / "none").exists()
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(StoreError, match="start the service on this folder once"):
        await open_sqlite_store(tmp_path, beside=True)
    (tmp_path / FILE_NAME).unlink()
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:-1]):
        pass
    with pytest.raises(StoreError, match=r"older version .* start this version of it once"):
        await open_sqlite_store(tmp_path, beside=True)
    assert execute(tmp_path, "PRAGMA user_version") == [(len(MIGRATIONS) - 1,)]
    execute(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(StoreTooNewError, match="Upgrade Aftercall"):
        await open_sqlite_store(tmp_path, beside=True)
    (tmp_path / FILE_NAME).write_text("not a database, but somebody's notes\n" * 100)
    with pytest.raises(StoreDamagedError, match="move it away"):
        await open_sqlite_store(tmp_path, beside=True)


async def test_the_service_is_told_what_was_written_beside(tmp_path: Path) -> None:
    """What was learned, tools and promotions; of its own writes it hears of facts only."""
    async with (
        await open_sqlite_store(tmp_path) as service,
        await open_sqlite_store(tmp_path, beside=True) as beside,
    ):
        feed = await service.follow()
        await service.put_tool(make_tool("own"))
        await service.commit_index(IndexCommit(WORKSPACE, 1, knowledge=[KnowledgeRow(SEARCH, b"")]))
        assert (await feed.poll()).changes == []
        row, document = KnowledgeRow(SEARCH, b"k"), DocumentRow(WORKSPACE, make_id(1), b"d")
        await beside.commit_index(
            IndexCommit(
                WORKSPACE,
                1,
                knowledge=[row],
                documents=[document],
                removed=[(WORKSPACE, make_id(2))],
            )
        )
        await beside.put_tool(make_tool("theirs"))
        await beside.delete_tool(WORKSPACE, "theirs")
        await beside.change_promotions([make_promotion_event("search", workspace="elsewhere")])
        learned, put, deleted, promoted = (await feed.poll()).changes
        assert learned.learned == (SEARCH,)
        assert learned.documents == (make_id(1), make_id(2))
        assert put.registry
        assert deleted.registry
        assert (promoted.workspace, promoted.registry) == ("elsewhere", True)
        assert await service.get_knowledge(SEARCH) == row


async def test_a_feed_that_fell_behind_tells_that_everything_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every workspace; from then on it tells what happens again."""
    monkeypatch.setattr(changes, "KEPT", 5)
    async with await open_sqlite_store(tmp_path) as store:
        for workspace in ("a", "b"):
            await store.append(workspace, make_executions(1))
        feed = await store.follow()
        for number in range(5):
            await store.put_fact("model", str(number))
        assert len((await feed.poll()).changes) == 5
        for number in range(6):
            await store.put_fact("model", str(number))
        told = (await feed.poll()).changes
        assert [(each.workspace, each.everything) for each in told] == [("a", True), ("b", True)]
        await store.put_fact("model", "last")
        assert [each.facts for each in (await feed.poll()).changes] == [("model",)]
        assert await read(store, "SELECT count(*) FROM changes") == [(5,)]


@pytest.mark.real
async def test_two_processes_write_at_once(tmp_path: Path) -> None:
    """Nothing is lost and nothing doubled, and the counters agree."""
    async with await open_sqlite_store(tmp_path) as service:
        with start("append", tmp_path) as child:
            for turn in range(BATCHES):
                await service.append(WORKSPACE, make_executions(10, first=10 * turn))
                await service.add_mark(make_mark(turn))
                await asyncio.sleep(0)
            output, _ = await asyncio.to_thread(child.communicate)
        assert (output, child.returncode) == (b"done\n", 0)
        total = 10 * BATCHES + 5
        ids = [make_id(number) for number in range(total)]
        found = await service.get_executions(WORKSPACE, ids)
        assert [each.execution.execution_id for each in found] == ids
        assert len({each.position for each in found}) == total
        assert len(await service.pending(WORKSPACE, 2 * total)) == total
        assert len(await service.list_marks(SEARCH, 1000)) == BATCHES
        assert await service.get_tool(WORKSPACE, "beside") == make_tool("beside")
        await check_counts(service)
    assert execute(tmp_path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.real
async def test_a_process_that_is_killed_while_it_switches_leaves_the_old_or_the_new(
    tmp_path: Path,
) -> None:
    """Wherever it was; the service goes on recording meanwhile, and nothing is half."""
    async with await open_sqlite_store(tmp_path) as service:
        feed = await service.follow()
        appended = 0
        for wait_s in (0.0, 0.02, 0.05, 0.1):
            with start("rebuild", tmp_path) as child:
                assert child.stdout is not None
                switched = asyncio.create_task(asyncio.to_thread(child.stdout.readline))
                while not switched.done():
                    await service.append(WORKSPACE, [make_execution(appended)])
                    appended += 1
                    await asyncio.sleep(0.005)
                await asyncio.sleep(wait_s)  # not for luck: each wait kills it somewhere else
                child.send_signal(signal.SIGKILL)
            generation = await service.generation()
            assert generation >= int(switched.result())
            assert await service.get_fact("index") == str(generation)
            known = await service.get_knowledge(SEARCH)
            assert known == KnowledgeRow(SEARCH, str(generation).encode())
            rows = await read(service, "SELECT count(*), min(data), max(data) FROM documents")
            assert rows == [(DOCUMENTS, known.data, known.data)]
            await check_counts(service)
            assert (await feed.poll()).generation == generation
            with pytest.raises(StoreFencedError):
                await service.commit_index(IndexCommit(WORKSPACE, generation - 1))
        assert (await service.counts()).executions == appended
        await service.drop_shadow()
    assert not shadow_path(tmp_path / FILE_NAME).exists()
    assert execute(tmp_path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_writer_waits_for_another_process(tmp_path: Path) -> None:
    """As long as a switch may take, not as long as a program may forget itself."""
    async with await open_sqlite_store(tmp_path) as service:
        with closing(connect_writer(tmp_path / FILE_NAME)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(service.append(WORKSPACE, make_executions(1)))
            await service.counts()
            other.execute("COMMIT")
            assert await waiting == ["accepted"]

        def timeout_ms(connection: sqlite3.Connection) -> int:
            (milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
            return int(milliseconds)

        assert await write(service, timeout_ms) == 30_000


async def test_another_shadow_is_not_taken_for_the_own(tmp_path: Path) -> None:
    """One that was made since, in the same place, is refused; nothing changes."""
    async with await open_sqlite_store(tmp_path) as store:
        first = await store.open_shadow()
        second = await store.open_shadow()
        with pytest.raises(StoreFencedError, match="rebuild again"):
            await store.adopt(first, {})
        assert await store.generation() == 1
        await store.adopt(second, {})
        assert await store.generation() == 2


async def test_expired_space_is_used_again(tmp_path: Path) -> None:
    """The file does not grow by what takes the place of what expired."""
    async with await open_sqlite_store(tmp_path) as store:
        sizes = []
        for turn in range(4):
            await store.append(WORKSPACE, make_executions(1500, first=1500 * turn))
            queued = await store.pending(WORKSPACE, 5000)
            moment = queued[-1].received_at
            positions = [each.position for each in queued]
            await store.commit_index(IndexCommit(WORKSPACE, 1, positions=positions))
            [(pages,)] = await read(store, "PRAGMA page_count")
            sizes.append(pages)
            expired = await store.expire_executions(
                WORKSPACE, moment.replace(year=moment.year + 1), 10_000
            )
            assert expired == 1500
        assert sizes[-1] < 1.2 * sizes[0]


async def test_a_small_workspace_is_not_looked_for_among_the_rows_of_a_large_one(
    tmp_path: Path,
) -> None:
    """Every query of a queue or a stream is answered by an index that begins with the workspace."""
    async with await open_sqlite_store(tmp_path):
        pass
    statements: list[str] = []
    steps: list[str] = []
    with closing(connect_reader(tmp_path / FILE_NAME)) as connection:
        connection.set_trace_callback(statements.append)
        for queue in (
            execution_log.pending, suggestions.pending_outcomes, marks.pending, corrections.pending,
            promotions.pending, vectors.pending, vectors.removed, tools.changed,
        ):  # fmt: skip
            queue(connection, "small", 10)
        execution_log.scan(connection, "small", 0, 10, None)
        knowledge.scan_documents(connection, "small", "", 10)
        connection.set_trace_callback(None)
        for statement in statements:
            if "SELECT" in statement:
                plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}")
                steps += [detail for *_, detail in plan]
    # What is walked are only lists that the query was given, or has found.
    walked = {step.split()[1] for step in steps if step.startswith("SCAN")}
    assert {name for name in walked if name[0] != "("} <= {"wanted", "found", "c", "m"}
    by_index = [step for step in steps if step.startswith("SEARCH")]
    assert len(by_index) > 10
    assert all("(workspace=?" in step or "rowid=?" in step for step in by_index)
