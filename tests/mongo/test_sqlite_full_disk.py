"""A full disk costs the call that does not fit, and nothing else."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from mongo.errors import StoreFullError
from mongo.sqlite.files import connect_writer
from mongo.sqlite.store import SqliteStore, open_sqlite_store
from tests.mongo.sqlite_inside import held_writer, store, write
from tests.mongo.store_samples import WORKSPACE, closing, ids, large, make_event, read_all

ROOT = Path(__file__).parents[2]
SCENARIO = Path(__file__).with_name("full_disk_scenario.py")


__all__ = ["store"]


async def leave_pages(store: SqliteStore, count: int) -> None:
    """Let the file grow by so many pages of 4 KiB and no more: a real SQLITE_FULL after that."""

    def limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + count}").close()

    await write(store, limit)


async def test_neighbours_that_fit_are_stored(store: SqliteStore) -> None:
    """In a group that does not fit, only the call that is too large is refused."""
    await leave_pages(store, 20)
    async with held_writer(store):
        calls: list[asyncio.Task[object]] = [
            asyncio.create_task(store.events.append(WORKSPACE, [event]))
            for event in (make_event(0), large(1), make_event(2))
        ]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[::2] == [["accepted"], ["accepted"]]
    assert isinstance(answers[1], StoreFullError)
    assert ids(await read_all(store.events)) == ["id-0", "id-2"]


async def test_a_store_that_was_half_made_when_the_disk_was_full_is_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is made whole or not at all, so that the next start finds no half of one."""

    def small(path: Path, synchronous: Literal["FULL", "NORMAL"]) -> sqlite3.Connection:
        connection = connect_writer(path, synchronous)
        connection.execute("PRAGMA max_page_count = 5").close()
        return connection

    monkeypatch.setattr("mongo.sqlite.store.connect_writer", small)
    with pytest.raises(StoreFullError, match="Free space"):
        await open_sqlite_store(tmp_path)
    monkeypatch.undo()
    async with closing(await open_sqlite_store(tmp_path)) as store:
        assert await store.events.append(WORKSPACE, [make_event(0)]) == ["accepted"]


@pytest.fixture
def namespace() -> list[str]:
    """What begins a command that mounts: there is nothing to unmount, however it ends."""
    words = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system lets no test mount a file system")
    return words


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system of its own")
@pytest.mark.parametrize("size", ["64k", "300k", "4m"])
def test_a_start_on_a_full_volume_ends_with_a_message(
    tmp_path: Path, namespace: list[str], size: str
) -> None:
    """Never by SIGBUS, though the index maps files: the room is looked at before."""
    mounted = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    serve = [sys.executable, "-m", "aftercall.cli", "serve", "--port=0", f"--data-dir={tmp_path}"]
    ended = subprocess.run(
        [*namespace, "sh", "-c", mounted, tmp_path, *serve],
        capture_output=True, text=True, check=False,
        env={**os.environ, "AFTERCALL_EMBEDDING_MODEL": "hashing"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "no space left" in ended.stderr or "make space" in ended.stderr


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system of its own")
@pytest.mark.parametrize("end", ["killed", "stopped"])
@pytest.mark.parametrize(
    ("mib_left", "said"), [(0, "make space"), (60, "make space"), (90, "opened")]
)
def test_vectors_that_are_there_are_not_opened_where_their_maps_have_no_room(
    tmp_path: Path, namespace: list[str], end: str, mib_left: int, said: str
) -> None:
    """However their last process ended."""
    words = [sys.executable, "-m", "tests.retrieval.index.full_disk_opening", tmp_path, end]
    done = subprocess.run(
        [*namespace, *words, str(mib_left)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system of its own")
def test_on_a_volume_that_is_really_full(tmp_path: Path, namespace: list[str]) -> None:
    """On a file system of 3 MiB: refused with the cure, readable, and writable after clearing."""
    (tmp_path / "volume").mkdir()
    finished = subprocess.run(
        [*namespace, sys.executable, SCENARIO, tmp_path / "volume"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert finished.returncode == 0, finished.stderr
    seen = json.loads(finished.stdout)
    assert seen["acknowledged"] > 100
    assert "no space left" in seen["refusal"]
    assert seen["readable_when_full"] == seen["acknowledged"]
    assert seen["refused_found"] == 0
    assert seen["after_clearing"] == ["accepted"] * 10
    assert seen["after_reopening"] == seen["acknowledged"] + 10
    for refusal in (seen["opening_a_new_store"], seen["opening_the_old_store"]):
        assert "no space left" in refusal
        assert "try again" in refusal
    assert seen["in_the_end"] == seen["after_reopening"]
