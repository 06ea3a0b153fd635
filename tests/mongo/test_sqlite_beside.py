"""Several processes on one folder: a service, and what runs beside it."""

import asyncio
from contextlib import closing as closing_file
from datetime import timedelta
from pathlib import Path

import pytest

from mongo.errors import StoreDamagedError, StoreError, StoreTooNewError
from mongo.records import Row, ToolKey
from mongo.sqlite import files
from mongo.sqlite.files import connect_writer
from mongo.sqlite.store import FILE_NAME, open_sqlite_store
from tests.mongo.sqlite_inside import execute, write
from tests.mongo.store_samples import WORKSPACE, closing, make_events, put, read_all, scan_all


async def test_beside_needs_a_store_of_this_version(tmp_path: Path) -> None:
    """It makes nothing; the message says what to start."""
    with pytest.raises(StoreError, match="start `aftercall serve` there first"):
        await open_sqlite_store(tmp_path / "none", beside=True)
    assert not (tmp_path / "none").exists()
    async with closing(await open_sqlite_store(tmp_path)):
        pass
    execute(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(StoreTooNewError, match="another data folder"):
        await open_sqlite_store(tmp_path, beside=True)
    (tmp_path / FILE_NAME).write_text("not a database, but somebody's notes\n" * 100)
    with pytest.raises(StoreDamagedError, match="move it away"):
        await open_sqlite_store(tmp_path, beside=True)


async def test_a_service_that_starts_while_a_rebuild_runs_leaves_it_alone(tmp_path: Path) -> None:
    """And takes up what was learned when it is switched to."""
    async with closing(await open_sqlite_store(tmp_path)) as service:
        await put(service.knowledge, Row("rule", "old"))
    async with closing(await open_sqlite_store(tmp_path, beside=True)) as beside:
        second = await beside.open_generation(2)
        async with closing(await open_sqlite_store(tmp_path)) as service:
            await put(second, Row("rule", "new"))
            await beside.switch_generation(2, {})
            assert await service.refresh_generation()
            assert [row.key for row in await scan_all(service.knowledge, "rule")] == ["new"]


async def test_a_writer_waits_for_another_process(tmp_path: Path) -> None:
    """As long as a nightly run may take, not as long as a program may forget itself."""
    async with closing(await open_sqlite_store(tmp_path)) as service:
        with closing_file(connect_writer(tmp_path / FILE_NAME, "FULL")) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(service.events.append(WORKSPACE, make_events(1)))
            await service.events.read_heads()
            other.execute("COMMIT")
            assert await waiting == ["accepted"]
        assert await write(service, lambda c: c.execute("PRAGMA busy_timeout").fetchone()) == (
            30_000,
        )


async def test_learning_does_not_wait_for_the_log(tmp_path: Path) -> None:
    """Nor the log for learning: each has a file of its own."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        with closing_file(connect_writer(tmp_path / FILE_NAME, "FULL")) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await put(store.knowledge, Row("rule", "a")) == 1
        with closing_file(connect_writer(tmp_path / "generation-1.sqlite3", "FULL")) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await store.events.append(WORKSPACE, make_events(1)) == ["accepted"]


async def test_expired_space_is_used_again(tmp_path: Path) -> None:
    """The file does not grow by what takes the place of what expired."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        sizes = []
        for turn in range(4):
            await store.events.append(WORKSPACE, make_events(1500, first=1500 * turn))
            last = (await read_all(store.events, limit=2_000))[-1]
            (pages,) = await write(store, lambda c: c.execute("PRAGMA page_count").fetchone())
            sizes.append(pages)
            later = last.received_at + timedelta(days=1)
            assert await store.events.erase_events(WORKSPACE, last.position, later, 10_000) == 1500
        assert sizes[-1] < 1.2 * sizes[0]


async def test_a_small_workspace_is_not_looked_for_among_the_rows_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every query is answered by an index that begins with the workspace."""
    monkeypatch.setattr(files, "MAX_READERS", 1)
    statements: list[str] = []
    async with closing(await open_sqlite_store(tmp_path)) as store:
        of, knowledge = store.events, store.knowledge
        for readers in (of._readers, knowledge._readers):  # type: ignore[attr-defined]
            await readers.run(lambda connection: connection.set_trace_callback(statements.append))
        await of.read_after("small", 0, 10)
        await of.find_events("small", "mark", ["a"])
        await of.latest_events("small", "execution", 10, sessions=["a"], before=5)
        await of.latest_events("small", "mark", 10)
        await of.latest_events("small", "mark", 10, tool=ToolKey("small", None, "a"))
        await of.read_state("small", "tool")
        await of.read_schemas("small", ["a"])
        log, statements[:] = [*statements], []
        for order in ("key", "rank", "serial"):
            await knowledge.scan_rows("small", "rule", 10, by=order)
        await knowledge.get("small", "rule", ["a"])
        await knowledge.count_rows("rule", "small")
        await knowledge.sum_counters(
            "small", ["calls", "failures:*"], since=0, until=9, by=["hour"]
        )
    plans = []
    for name, queries in ((FILE_NAME, log), ("generation-1.sqlite3", statements)):
        for query in queries:
            plans += execute(tmp_path, f"EXPLAIN QUERY PLAN {query}", name=name)
    steps = [detail for *_, detail in plans]
    # What is walked are only lists that the query was given, and hours that it has looked up.
    walked = {step.split()[1] for step in steps if step.startswith("SCAN")}
    assert {each for each in walked if "subquery" not in each} <= {"wanted", "json_each", "hours"}
    by_index = [step for step in steps if step.startswith("SEARCH") and "json_each" not in step]
    assert len(by_index) >= 12
    assert all("(workspace=?" in step for step in by_index)
    # Nor what was said of one tool among all that was said and called.
    of_tool = "events_of_tool (workspace=? AND kind=? AND server=? AND tool=?)"
    assert any(of_tool in step for step in steps)
