"""A full disk costs the call that does not fit, and nothing else."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mongo.errors import StoreFullError
from mongo.sqlite import SqliteLogStore, open_sqlite_store
from mongo.sqlite import executions as execution_log
from tests.mongo.log_store_samples import WORKSPACE, make_execution, make_executions, make_id
from tests.mongo.sqlite_inside import held_writer, write

SCENARIO = Path(__file__).with_name("full_disk_scenario.py")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLogStore]:
    async with await open_sqlite_store(tmp_path / "data") as store:
        yield store


async def leave_pages(store: SqliteLogStore, count: int) -> None:
    """Let the file grow by so many pages of 4 KiB and no more: a real SQLITE_FULL after that."""

    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + count}").close()

    await write(store, limit)


async def test_what_does_not_fit_is_refused_whole(store: SqliteLogStore) -> None:
    """No execution of the call is stored; reads and smaller calls go on."""
    await store.append(WORKSPACE, make_executions(3))
    await leave_pages(store, 20)
    large = [
        make_execution(number, parameters={"text": "x" * 10_000}) for number in range(100, 120)
    ]
    with pytest.raises(StoreFullError, match="Free space"):
        await store.append(WORKSPACE, large)
    assert (await store.counts()).executions == 3
    assert len(await store.pending(WORKSPACE, 100)) == 3
    assert await store.append(WORKSPACE, [make_execution(4)]) == ["accepted"]
    await leave_pages(store, 1000)
    assert await store.append(WORKSPACE, large) == ["accepted"] * 20
    assert (await store.counts()).executions == 24


async def test_neighbours_that_fit_are_stored(store: SqliteLogStore) -> None:
    """In a group that does not fit, only the call that is too large is refused."""
    await leave_pages(store, 20)
    large = make_execution(1, parameters={"text": "x" * 500_000})
    async with held_writer(store):
        calls: list[asyncio.Task[object]] = [
            asyncio.create_task(store.append(WORKSPACE, [new]))
            for new in (make_execution(0), large, make_execution(2))
        ]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[::2] == [["accepted"], ["accepted"]]
    assert isinstance(answers[1], StoreFullError)
    assert await store.get_execution(WORKSPACE, make_id(1)) is None


async def test_a_queue_of_large_executions_is_read_in_parts(
    store: SqliteLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pending` stops at its bound of bytes but never before the first, so all are reached."""
    monkeypatch.setattr(execution_log, "MAX_PENDING_BYTES", 25_000)
    large = [make_execution(number, parameters={"text": "x" * 10_000}) for number in range(5)]
    await store.append(WORKSPACE, large)
    assert [each.execution.sequence for each in await store.pending(WORKSPACE, 10)] == [0, 1, 2]
    monkeypatch.setattr(execution_log, "MAX_PENDING_BYTES", 1)
    assert [each.execution.sequence for each in await store.pending(WORKSPACE, 10)] == [0]


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system of its own")
def test_on_a_volume_that_is_really_full(tmp_path: Path) -> None:
    """On a file system of 3 MiB: refused with the cure, readable, and writable after clearing."""
    # A mount namespace of the child's own: nothing to unmount, however the child ends.
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system lets no test mount a file system")
    (tmp_path / "volume").mkdir()
    finished = subprocess.run(
        [*namespace, sys.executable, SCENARIO, tmp_path / "volume"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert finished.returncode == 0, finished.stderr
    seen = json.loads(finished.stdout)
    assert seen["acknowledged"] > 100
    assert "no space left" in seen["refusal"]
    assert seen["readable_when_full"] == seen["acknowledged"]
    assert seen["refused_found"] == 0
    assert seen["after_clearing"] == ["accepted"] * 10
    assert seen["executions_after_reopening"] == seen["acknowledged"] + 10
    for refusal in (seen["opening_a_new_store"], seen["opening_the_old_store"]):
        assert "no space left" in refusal
        assert "start again" in refusal
        assert "this call" not in refusal  # there was none
    assert seen["executions_in_the_end"] == seen["executions_after_reopening"]
