"""Opening the file: what is made, what is refused, and what is left as it was."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

import pytest

from mongo.errors import (
    StoreDamagedError,
    StoreError,
    StoreInUseError,
    StoreTooNewError,
)
from mongo.records import (
    WITHOUT_STATISTICS,
    AnswerCount,
    IndexCommit,
    JudgedSuggestion,
    RepairRow,
    StoreCounts,
    SuggestionOutcome,
)
from mongo.sqlite import FILE_NAME, open_sqlite_store
from mongo.sqlite.schema import APPLICATION_ID, MIGRATIONS
from tests.mongo.log_store_samples import (
    SEARCH,
    WORKSPACE,
    learn_anew,
    make_correction,
    make_execution,
    make_executions,
    make_id,
    make_mark,
    make_suggestion,
    make_tool,
)
from tests.mongo.sqlite_inside import append_old, execute

HOLD = """
import asyncio, sys
from pathlib import Path
from mongo.sqlite import open_sqlite_store

async def hold():
    async with await open_sqlite_store(Path(sys.argv[1])):
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold())
"""

OPEN_WITHOUT_PRIVILEGE = """
import asyncio, sys
from pathlib import Path
from mongo.errors import StoreError
from mongo.sqlite import open_sqlite_store

try:
    asyncio.run(open_sqlite_store(Path(sys.argv[1])))
except StoreError as error:
    print(type(error).__name__, error)
"""

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def content_of(folder: Path) -> dict[str, bytes]:
    """Every database and log file with its bytes; the shared-memory index is rebuilt anyway."""
    return {
        path.name: path.read_bytes()
        for path in folder.glob(f"{FILE_NAME}*")
        if not path.name.endswith("-shm")
    }


def copy_open_file(source: Path, target: Path) -> None:
    """Copy by another process: closing a database file in this one would drop SQLite's locks."""
    subprocess.run(["cp", source, target], check=True)


@contextmanager
def process_that_holds(folder: Path) -> Iterator[int]:
    """Another process with the store open; killed at the end. Gives its id."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"open\n"
            yield holder.pid
        finally:
            holder.kill()


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
        async with await open_sqlite_store(tmp_path / "new" / "data") as store:
            await store.append(WORKSPACE, make_executions(1))
            modes = {path.name: mode_of(path) for path in (tmp_path / "new" / "data").iterdir()}
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new" / "data") == 0o700
    assert len(modes) >= 4
    assert set(modes.values()) == {0o600}


async def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    """Closing folds the log into the file, so that copying the file is a backup."""
    async with await open_sqlite_store(tmp_path) as store:
        await store.append(WORKSPACE, make_executions(3))
    assert set(content_of(tmp_path)) == {FILE_NAME}
    assert execute(tmp_path, "SELECT count(*) FROM executions") == [(3,)]


async def test_the_file_is_marked_and_safe_against_power_loss(tmp_path: Path) -> None:
    """It carries our mark and version, keeps a log, and waits for the disk at each commit."""
    async with await open_sqlite_store(tmp_path) as store:

        def settings(connection: sqlite3.Connection) -> list[object]:
            names = ("application_id", "user_version", "journal_mode", "synchronous")
            return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        full = 2
        assert await store._writer.run(settings) == [APPLICATION_ID, len(MIGRATIONS), "wal", full]


@pytest.mark.real
async def test_a_second_process_is_refused_at_once(tmp_path: Path) -> None:
    """The message names the process that has the folder; when that is killed, the way is free."""
    with (
        process_that_holds(tmp_path) as holder,
        pytest.raises(StoreInUseError, match=rf"process {holder}: stop that"),
    ):
        await open_sqlite_store(tmp_path)
    async with await open_sqlite_store(tmp_path) as store:
        assert (await store.counts()).executions == 0


async def test_a_second_store_in_one_process_is_refused(tmp_path: Path) -> None:
    """The first goes on undisturbed, and its folder is free after it was closed."""
    async with await open_sqlite_store(tmp_path) as store:
        with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
            await open_sqlite_store(tmp_path)
        assert await store.append(WORKSPACE, make_executions(1)) == ["accepted"]
    async with await open_sqlite_store(tmp_path) as store:
        assert (await store.counts()).executions == 1


async def test_a_newer_store_is_refused_and_not_changed(tmp_path: Path) -> None:
    """The message says to upgrade; every byte stays, and the folder is not left locked."""
    async with await open_sqlite_store(tmp_path) as store:
        await store.append(WORKSPACE, make_executions(3))
    execute(tmp_path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = content_of(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreTooNewError, match="Upgrade Aftercall"):
            await open_sqlite_store(tmp_path)
    assert content_of(tmp_path) == before


async def test_a_newer_store_of_a_killed_process_is_not_changed_either(tmp_path: Path) -> None:
    """Its version may stand in the log only; the log is read and left as it is."""
    origin, copy = tmp_path / "origin", tmp_path / "copy"
    copy.mkdir()
    async with await open_sqlite_store(origin) as store:
        await store._writer.run(
            lambda connection: connection.execute("PRAGMA user_version = 99").close()
        )
        # What is on the disk now is what a kill would leave.
        for suffix in ("", "-wal"):
            copy_open_file(origin / f"{FILE_NAME}{suffix}", copy / f"{FILE_NAME}{suffix}")
    before = content_of(copy)
    assert len(before) == 2
    with pytest.raises(StoreTooNewError, match="layout 99"):
        await open_sqlite_store(copy)
    assert content_of(copy) == before


def make_text(path: Path) -> None:
    path.write_text("not a database, but somebody's notes\n" * 100)


def make_short_text(path: Path) -> None:
    path.write_text("notes")


def make_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")


def make_marked_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
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
    async with await open_sqlite_store(tmp_path) as store:
        assert (await store.counts()).executions == 0


async def test_a_corrupt_file_is_reported_as_damaged(tmp_path: Path) -> None:
    """Garbage in the pages is found at the first use of them, at the latest."""
    async with await open_sqlite_store(tmp_path) as store:
        await store.append(WORKSPACE, make_executions(500))
    with (tmp_path / FILE_NAME).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(StoreDamagedError, match="Restore a backup"):
        async with await open_sqlite_store(tmp_path) as store:
            await store.pending(WORKSPACE, 500)


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A process killed right after making the file leaves one; nothing is lost with it."""
    (tmp_path / FILE_NAME).touch()
    async with await open_sqlite_store(tmp_path) as store:
        assert await store.append(WORKSPACE, make_executions(1)) == ["accepted"]


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
        async with await open_sqlite_store(folder) as store:
            await store.append(WORKSPACE, make_executions(1))
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


async def test_a_store_of_an_older_version_is_brought_forward(tmp_path: Path) -> None:
    """Its content stays, each step runs once, and the older version then refuses it."""
    steps: list[str] = []

    def add_column(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE facts ADD COLUMN note TEXT NOT NULL DEFAULT 'migrated'")
        steps.append("column")

    def add_table(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE later (workspace TEXT)")
        steps.append("table")

    async with await open_sqlite_store(tmp_path) as store:
        await store.append(WORKSPACE, make_executions(3))
        await store.put_fact("model", "m")
    newer = (*MIGRATIONS, add_column, add_table)
    for _ in range(2):
        async with await open_sqlite_store(tmp_path, migrations=newer) as store:
            assert (await store.counts()).executions == 3
            assert await store.get_execution(WORKSPACE, make_id(1)) == make_execution(1).execution
    assert steps == ["column", "table"]
    assert execute(tmp_path, "SELECT value, note FROM facts") == [("m", "migrated")]
    with pytest.raises(StoreTooNewError):
        await open_sqlite_store(tmp_path)


async def test_suggestions_of_the_first_version_stay_without_an_estimate(tmp_path: Path) -> None:
    """Their outcomes are kept and count for the rules, but no confidence is fitted on them."""
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:1]):
        pass
    old = make_suggestion(1, estimate=None)
    values = (
        WORKSPACE, make_id(1), "", "search", old.signature, old.edit_key,
        round(old.issued_at.timestamp() * 1e6), old.suggestion.model_dump_json(),
    )  # fmt: skip
    insert = """
    INSERT INTO suggestions (
        workspace, suggestion_id, server_name, tool_name, signature, edit_key, issued_at, data
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    """
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute(insert, values)
    outcomes = [SuggestionOutcome(WORKSPACE, make_id(n), make_id(9), "success") for n in (1, 2)]
    async with await open_sqlite_store(tmp_path) as store:
        assert await store.get_suggestion(WORKSPACE, make_id(1)) == old
        await store.save_suggestions([make_suggestion(2)])
        await store.add_outcomes(outcomes)
        assert await store.pending_outcomes(WORKSPACE, 10) == outcomes
        assert [each.estimate for each in await store.judged_suggestions(WORKSPACE, 10)] == [0.875]


async def test_tools_of_the_second_version_are_queued(tmp_path: Path) -> None:
    """Registered before tools had documents, they get them; each counts as pending, once."""
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:2]) as store:
        for tool_id in ("b", "a", "gone", "b"):
            await store.put_tool(make_tool(tool_id))
        await store.delete_tool(WORKSPACE, "gone")
    append_old(tmp_path, WORKSPACE, make_executions(3))
    for _ in range(2):
        async with await open_sqlite_store(tmp_path) as store:
            changed = await store.changed_tools(WORKSPACE, 10)
            assert [(each.tool, each.tool_id) for each in changed] == [
                (SEARCH, "a"), (SEARCH, "b"),
            ]  # fmt: skip
            assert await store.counts(WORKSPACE) == StoreCounts(3, 5, 2, 0)
            assert await store.get_statistics([SEARCH]) == []
    async with await open_sqlite_store(tmp_path) as store:
        positions = [each.position for each in changed]
        await store.commit_index(IndexCommit(WORKSPACE, 1, changed_tools=positions))
        await store.put_tool(make_tool("a"))
        [again] = await store.changed_tools(WORKSPACE, 10)
        assert (again.tool_id, again.position > positions[-1]) == ("a", True)


async def test_executions_that_were_learned_from_before_there_were_statistics_are_counted(
    tmp_path: Path,
) -> None:
    """Those that still wait are not among them; learning anew forgets the fact."""
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:2]):
        pass
    append_old(tmp_path, WORKSPACE, make_executions(3))
    execute(tmp_path, "DELETE FROM pending WHERE position < 3")
    for _ in range(2):
        async with await open_sqlite_store(tmp_path) as store:
            assert await store.get_fact(WITHOUT_STATISTICS) == "2"
    async with await open_sqlite_store(tmp_path) as store:
        await learn_anew(store)
        assert await store.get_fact(WITHOUT_STATISTICS) is None


@pytest.mark.parametrize("known", [None, "1"], ids=["complete", "lacking"])
async def test_a_store_of_the_third_version_keeps_what_it_has_and_says_what_it_lacks(
    tmp_path: Path, known: str | None
) -> None:
    """Everything learned from then is without health; marks, tools and queues stay as they were."""
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:3]) as store:
        await store.add_mark(make_mark(1))
        await store.put_tool(make_tool("a"))
    append_old(tmp_path, WORKSPACE, make_executions(3))
    if known is not None:
        execute(tmp_path, f"INSERT INTO facts VALUES ('{WITHOUT_STATISTICS}', '{known}')")  # noqa: S608
    execute(tmp_path, "DELETE FROM pending WHERE position < 3")
    for _ in range(2):
        async with await open_sqlite_store(tmp_path) as store:
            assert await store.get_fact(WITHOUT_STATISTICS) == "2"
            assert await store.counts(WORKSPACE) == StoreCounts(3, 3, 1, 0)
            [waiting] = await store.pending(WORKSPACE, 10)
            assert (waiting.position, waiting.execution) == (3, make_execution(2).execution)
            assert len(await store.list_marks(SEARCH, 10)) == 1
            assert await store.list_health(WORKSPACE, 10) == []
    async with await open_sqlite_store(tmp_path) as store:
        assert await store.add_correction(make_correction(1))
        assert await store.latest_call(WORKSPACE, "s-1") == waiting
        await learn_anew(store)
        assert await store.counts(WORKSPACE) == StoreCounts(3, 6, 1, 0)
        assert await store.get_fact(WITHOUT_STATISTICS) is None


async def test_a_store_of_the_fifth_version_begins_to_count_answers(tmp_path: Path) -> None:
    """What it learned and what waits stays as it was; of what was answered before nothing is known.

    What the confidence was is known of all suggestions, also of those from before.
    """
    repairs = [RepairRow(SEARCH, make_id(0), make_id(1), "topK <n>", b"r")]
    async with await open_sqlite_store(tmp_path, migrations=MIGRATIONS[:5]) as store:
        await store.append(WORKSPACE, make_executions(3))
        [first, *_] = await store.pending(WORKSPACE, 10)
        await store.commit_index(
            IndexCommit(WORKSPACE, 1, positions=[first.position], repairs=repairs)
        )
        await store.save_suggestions([make_suggestion(1)])
        await store.add_outcomes([SuggestionOutcome(WORKSPACE, make_id(1), make_id(0), "success")])
        before = await store.counts()
    day = date(2026, 11, 22)
    for times in (1, 2):
        async with await open_sqlite_store(tmp_path) as store:
            assert await store.counts() == before
            assert await store.list_repairs(SEARCH, 10) == repairs
            assert len(await store.latest_mended(WORKSPACE, 10)) == 1
            assert await store.judged_suggestions(WORKSPACE, 10) == [
                JudgedSuggestion(0.875, "success", "librarian", 0.9)
            ]
            assert len(await store.list_answers(WORKSPACE, day)) == times - 1
            await store.add_answers(WORKSPACE, [AnswerCount(day, "retry", 1)])
            assert await store.list_answers(WORKSPACE, day) == [AnswerCount(day, "retry", times)]


async def test_a_store_that_learned_nothing_yet_lacks_no_statistics(tmp_path: Path) -> None:
    """Neither a new one, nor one of the second version whose executions all wait."""
    async with await open_sqlite_store(tmp_path / "new") as store:
        assert await store.get_fact(WITHOUT_STATISTICS) is None
    async with await open_sqlite_store(tmp_path / "old", migrations=MIGRATIONS[:2]):
        pass
    append_old(tmp_path / "old", WORKSPACE, make_executions(3))
    async with await open_sqlite_store(tmp_path / "old") as store:
        assert await store.get_fact(WITHOUT_STATISTICS) is None


async def test_a_failing_migration_leaves_the_version_before_it(tmp_path: Path) -> None:
    """Its half-done work is undone, steps before it stay, and the store still opens."""

    def add_table(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE good (workspace TEXT)")

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (workspace TEXT)")
        connection.execute("SELECT * FROM nowhere")

    async with await open_sqlite_store(tmp_path) as store:
        await store.append(WORKSPACE, make_executions(3))
    with pytest.raises(StoreError, match="nowhere"):
        await open_sqlite_store(tmp_path, migrations=(*MIGRATIONS, add_table, fail))
    version = len(MIGRATIONS) + 1
    assert execute(tmp_path, "PRAGMA user_version") == [(version,)]
    tables = "SELECT name FROM sqlite_master WHERE name IN ('good', 'half')"
    assert execute(tmp_path, tables) == [("good",)]
    async with await open_sqlite_store(tmp_path, migrations=(*MIGRATIONS, add_table)) as store:
        assert (await store.counts()).executions == 3


async def test_a_copied_store_opens_elsewhere(tmp_path: Path) -> None:
    """Nothing in the file or beside it ties it to its folder."""
    async with await open_sqlite_store(tmp_path / "one") as store:
        await store.append(WORKSPACE, make_executions(3))
    shutil.copytree(tmp_path / "one", tmp_path / "a ?#% folder")
    async with await open_sqlite_store(tmp_path / "a ?#% folder") as store:
        assert len(await store.pending(WORKSPACE, 10)) == 3
