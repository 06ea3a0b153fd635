"""Opening the folder: what is made, what is refused, and what is left as it was."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing as closing_file
from pathlib import Path

import pytest

from mongo.errors import StoreDamagedError, StoreError, StoreInUseError, StoreTooNewError
from mongo.records import Commit, Row
from mongo.sqlite.store import APPLICATION_ID, FILE_NAME, LAYOUT, open_sqlite_store
from tests.mongo.sqlite_inside import execute, write
from tests.mongo.store_samples import WORKSPACE, closing, make_events, put, read_all

OPEN_WITHOUT_PRIVILEGE = """
import asyncio, sys
from pathlib import Path
from mongo.errors import StoreError
from mongo.sqlite.store import open_sqlite_store

try:
    asyncio.run(open_sqlite_store(Path(sys.argv[1])))
except StoreError as error:
    print(type(error).__name__, error)
"""

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def content_of(folder: Path) -> dict[str, bytes]:
    """Every database and log file that holds anything; the shared-memory index is rebuilt."""
    return {
        path.name: path.read_bytes()
        for path in folder.glob("*.sqlite3*")
        if not path.name.endswith("-shm") and path.stat().st_size
    }


def open_without_privilege(folder: Path) -> str:
    """What a process says that opens the store and has no right but those of the permissions.

    Root writes everywhere by a capability; a child that gave it up is like anybody else.
    """
    give_up = (
        f"import ctypes, os, sys; ctypes.CDLL(None).prctl({PR_CAPBSET_DROP}, {CAP_DAC_OVERRIDE}, "
        "0, 0, 0); os.execv(sys.executable, [sys.executable, '-c', *sys.argv[1:]])"
    )
    return subprocess.run(
        [sys.executable, "-c", give_up, OPEN_WITHOUT_PRIVILEGE, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_what_is_made_is_private(tmp_path: Path) -> None:
    """Folder 0700 and every file 0600, whatever the umask: they hold what agents sent."""
    before = os.umask(0)
    try:
        async with closing(await open_sqlite_store(tmp_path / "new" / "data")) as store:
            await store.events.append(WORKSPACE, make_events(1))
            modes = {path.name: mode_of(path) for path in (tmp_path / "new" / "data").iterdir()}
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new" / "data") == 0o700
    assert len(modes) >= 4
    assert set(modes.values()) == {0o600}


async def test_the_files_are_marked_and_safe_against_power_loss(tmp_path: Path) -> None:
    """They carry our mark; the log waits for the disk at each commit, what is derived need not."""
    async with closing(await open_sqlite_store(tmp_path)) as store:

        def settings(connection: sqlite3.Connection) -> list[object]:
            names = ("application_id", "user_version", "journal_mode", "synchronous")
            return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        normal, full = 1, 2
        marked = [APPLICATION_ID, LAYOUT, "wal"]
        assert await write(store, settings) == [*marked, full]
        assert await store.knowledge._writer.run(settings) == [*marked, normal]


async def test_a_second_store_in_one_process_is_refused(tmp_path: Path) -> None:
    """The first goes on undisturbed, and its folder is free after it was closed."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
            await open_sqlite_store(tmp_path)
        assert await store.events.append(WORKSPACE, make_events(1)) == ["accepted"]
    async with closing(await open_sqlite_store(tmp_path)) as store:
        assert len(await read_all(store.events)) == 1


@pytest.mark.parametrize("name", [FILE_NAME, "generation-1.sqlite3"])
@pytest.mark.parametrize(
    ("layout", "error", "cure"),
    [(99, StoreTooNewError, "Upgrade"), (1, StoreDamagedError, "Go on with the version")],
    ids=["newer", "older"],
)
async def test_a_store_of_another_version_is_refused_and_not_changed(
    tmp_path: Path, name: str, layout: int, error: type[StoreError], cure: str
) -> None:
    """The message says what can be done; every byte stays, and the folder is not left locked."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await store.events.append(WORKSPACE, make_events(3))
    execute(tmp_path, f"PRAGMA user_version = {layout}", name=name)
    before = content_of(tmp_path)
    for _ in range(2):
        with pytest.raises(error, match=rf"layout {layout}.*{cure}.*another data folder"):
            await open_sqlite_store(tmp_path)
    assert content_of(tmp_path) == before


def make_text(path: Path) -> None:
    path.write_text("not a database, but somebody's notes\n" * 100)


def make_short_text(path: Path) -> None:
    path.write_text("notes")


def make_other_database(path: Path) -> None:
    with closing_file(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")


def make_marked_database(path: Path) -> None:
    with closing_file(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 42")


@pytest.mark.parametrize(
    "make_foreign", [make_text, make_short_text, make_other_database, make_marked_database]
)
async def test_a_foreign_file_is_refused_and_not_changed(
    tmp_path: Path, make_foreign: Callable[[Path], None]
) -> None:
    """The message says to move it away; after that the folder is usable."""
    path = tmp_path / FILE_NAME
    make_foreign(path)
    before = content_of(tmp_path)
    with pytest.raises(StoreDamagedError, match="move it away"):
        await open_sqlite_store(tmp_path)
    assert content_of(tmp_path) == before
    path.rename(tmp_path / "moved")
    async with closing(await open_sqlite_store(tmp_path)) as store:
        assert await store.events.read_heads() == {}


async def test_a_corrupt_file_is_reported_as_damaged(tmp_path: Path) -> None:
    """Garbage in the pages is found at the first use of them, at the latest."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await store.events.append(WORKSPACE, make_events(500))
    with (tmp_path / FILE_NAME).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(StoreDamagedError, match="Restore a backup"):
        async with closing(await open_sqlite_store(tmp_path)) as store:
            await read_all(store.events)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A process killed right after making the file leaves one; nothing is lost with it."""
    (tmp_path / FILE_NAME).touch()
    async with closing(await open_sqlite_store(tmp_path)) as store:
        assert await store.events.append(WORKSPACE, make_events(1)) == ["accepted"]


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Also further up the path; the message names it."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is not a folder"):
        await open_sqlite_store(tmp_path / "file")
    with pytest.raises(StoreError, match="is not a folder"):
        await open_sqlite_store(tmp_path / "file" / "data")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.real
@pytest.mark.parametrize("case", ["new folder", "new file", "existing store"])
async def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, case: str) -> None:
    """The message asks for the permission; this holds for an unprivileged process."""
    folder = tmp_path / "data"
    if case == "existing store":
        async with closing(await open_sqlite_store(folder)) as store:
            await store.events.append(WORKSPACE, make_events(1))
        (folder / FILE_NAME).chmod(0o400)
    else:
        folder.mkdir()
    folder.chmod(0o500)
    target = folder / "inner" if case == "new folder" else folder
    try:
        answer = open_without_privilege(target)
    finally:
        folder.chmod(0o700)
    refused = "StoreReadOnlyError" if case == "existing store" else "StoreError"
    assert answer.startswith(refused)
    assert "cannot be written" in answer
    assert "read and write permission" in answer


async def test_a_copied_store_opens_elsewhere(tmp_path: Path) -> None:
    """Nothing in the file or beside it ties it to its folder."""
    async with closing(await open_sqlite_store(tmp_path / "one")) as store:
        await store.events.append(WORKSPACE, make_events(3))
    shutil.copytree(tmp_path / "one", tmp_path / "a ?#% folder")
    async with closing(await open_sqlite_store(tmp_path / "a ?#% folder")) as store:
        assert len(await read_all(store.events)) == 3


async def test_generations_that_nothing_names_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """One that was current before; the base stays."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await put(await store.open_generation(0), Row("rule", "base"))
        await store.open_generation(2)
        await store.switch_generation(2, {})
    (tmp_path / "generation-1.sqlite3").touch()
    async with closing(await open_sqlite_store(tmp_path)):
        left = {FILE_NAME, "generation-0.sqlite3", "generation-2.sqlite3"}
        assert {name for name in content_of(tmp_path) if "-wal" not in name} == left


async def test_a_rebuild_needs_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is copied, with what it needs; the current one goes on."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await put(await store.open_generation(0), Row("rule", "base"))
        usage = shutil.disk_usage(tmp_path)._replace(free=1000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(StoreError, match="free space on its volume"):
            await store.open_generation(2)
        assert not (tmp_path / "generation-2.sqlite3").exists()
        await put(store.knowledge, Row("rule", "a"))


async def test_what_was_not_learned_durably_is_learned_again(tmp_path: Path) -> None:
    """A generation whose file is gone begins anew: its cursor goes with it, the log stays."""
    async with closing(await open_sqlite_store(tmp_path)) as store:
        await store.events.append(WORKSPACE, make_events(3))
        await store.knowledge.commit(Commit(WORKSPACE, [Row("rule", "a")], moved=(0, 3)))
    (tmp_path / "generation-1.sqlite3").unlink()
    async with closing(await open_sqlite_store(tmp_path)) as store:
        assert await store.knowledge.read_cursors() == {}
        assert len(await read_all(store.events)) == 3


async def test_a_file_that_a_killed_process_was_making_is_made(tmp_path: Path) -> None:
    """What it had begun is undone first, which nobody can who only reads."""
    halfway = tmp_path / "halfway.sqlite3"
    with closing_file(sqlite3.connect(halfway, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 3_000,)] * 50)  # spills
        data = tmp_path / "data"
        data.mkdir()
        for suffix in ("", "-journal"):  # as a kill leaves them
            shutil.copy(f"{halfway}{suffix}", data / f"{FILE_NAME}{suffix}")
    async with closing(await open_sqlite_store(data)) as store:
        assert await store.events.read_heads() == {}
