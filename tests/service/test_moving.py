"""Everything moves from one store to another, or nothing is believed to have moved."""

import gzip
import io
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aftercall.json_values import JsonObject
from mongo.archive import KINDS, LOCAL_FACTS
from mongo.protocol import LogStore
from mongo.records import IndexCommit, StatisticsRow
from mongo.sqlite import open_sqlite_store
from service.moving.checksum import Tally
from service.moving.exporting import Exported, export_store
from service.moving.lines import LATER_KINDS, ArchiveError, BadLineError
from service.moving.packing import unpacked, written
from service.moving.reading import ArchiveReader
from service.moving.restoring import AlreadyImportedError, Compared, restore
from service.moving.unfinished import (
    FACT,
    HalfImportedError,
    Mark,
    read_mark,
    refuse_half_imported,
    write_mark,
)
from tests.mongo.log_store_samples import make_execution
from tests.mongo.test_archive_contract import fill
from tests.service.archive_samples import HEADER, archive_lines, read, write_lines
from tests.service.running_service import ROOT

WORKSPACES = ("default", "elsewhere")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[LogStore]:
    """An embedded store for the time of a block."""
    store = await open_sqlite_store(folder)
    try:
        yield store
    finally:
        await store.close()


async def filled(folder: Path) -> None:
    """A store with something of every kind, half of it learned from."""
    async with opened(folder) as store:
        await fill(store, *WORKSPACES)
        await write_mark(store, Mark(archive="of an earlier import", is_done=True))


def lines_of(file: Path) -> list[bytes]:
    """The lines of an archive, with their ends."""
    return gzip.decompress(file.read_bytes()).splitlines(keepends=True)


async def exported(store: LogStore, file: Path) -> Exported:
    """Export to a file."""
    with written(str(file)) as stream:
        return await export_store(store, stream)


async def imported(store: LogStore, file: Path) -> Compared:
    """Import from a file."""
    with unpacked(str(file)) as stream:
        return await restore(store, ArchiveReader(stream))


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    """A file with something of every kind."""
    await filled(tmp_path / "origin")
    async with opened(tmp_path / "origin") as store:
        await exported(store, tmp_path / "archive.gz")
    return tmp_path / "archive.gz"


async def test_every_kind_is_moved(tmp_path: Path) -> None:
    """The same counts and checksums in the store, the archive, and the next store's archive."""
    await filled(tmp_path / "origin")
    async with opened(tmp_path / "origin") as origin, opened(tmp_path / "target") as target:
        first = await exported(origin, tmp_path / "first.gz")
        assert all(first.tallies[kind.name].count for kind in KINDS)
        compared = await imported(target, tmp_path / "first.gz")
        assert compared.differing == []
        assert compared.archive == compared.store == first.tallies
        second = await exported(target, tmp_path / "second.zst")
        assert second.tallies == first.tallies
        assert second.header.id != first.header.id


async def test_an_archive_of_the_layout_before_is_imported(archive: Path, tmp_path: Path) -> None:
    """Whole, compared in the kinds that it has; of the others there is nothing."""
    former: dict[str, list[JsonObject]] = {
        kind.name: [] for kind in KINDS if kind.name not in LATER_KINDS
    }
    for row in read(line.rstrip(b"\n") for line in lines_of(archive)):
        if row.kind in former:
            former[row.kind].append(row.fields)
    header = HEADER.model_copy(update={"layout": "5a5ed3385dbc"})
    write_lines(tmp_path / "former.gz", archive_lines(former, header))
    async with opened(tmp_path / "target") as target:
        compared = await imported(target, tmp_path / "former.gz")
        assert compared.differing == []
        assert LATER_KINDS.isdisjoint(compared.archive.keys() | compared.store.keys())
        assert await target.scan_archive("answers", None, 10) == []


async def test_facts_of_one_store_alone_do_not_move(archive: Path, tmp_path: Path) -> None:
    """Where the vectors are, and which import a store is the target of."""
    async with opened(tmp_path / "target") as target:
        await imported(target, archive)
        for name in set(LOCAL_FACTS) - {FACT}:
            assert await target.get_fact(name) is None
        mark = await read_mark(target)
        assert mark is not None
        assert mark.is_done


async def test_an_empty_store_moves_too(tmp_path: Path) -> None:
    """Its archive is whole, and the target stays empty."""
    async with opened(tmp_path / "origin") as origin, opened(tmp_path / "target") as target:
        await exported(origin, tmp_path / "empty.gz")
        compared = await imported(target, tmp_path / "empty.gz")
        assert compared.differing == []
        assert await target.workspaces() == []


async def test_facts_that_a_first_start_left_give_way(archive: Path, tmp_path: Path) -> None:
    """A service that once ran on the empty store does not keep an archive out."""
    async with opened(tmp_path / "target") as target:
        await target.put_fact("model", "another")
        await target.put_fact("of the first start", "1")
        assert (await imported(target, archive)).differing == []
        assert await target.get_fact("model") == "m-☃"


async def test_an_archive_wants_an_empty_store(archive: Path, tmp_path: Path) -> None:
    """What is there already stays as it is, and can still be served."""
    async with opened(tmp_path / "target") as target:
        await target.append("mine", [make_execution(1)])
        with pytest.raises(ArchiveError, match=r"holds something already \(workspaces mine\)"):
            await imported(target, archive)
        assert await target.workspaces() == ["mine"]
        await refuse_half_imported(target)


async def test_the_same_archive_is_imported_once(archive: Path, tmp_path: Path) -> None:
    """A second time it says that it is there; another one is refused."""
    async with opened(tmp_path / "target") as target:
        await imported(target, archive)
        with pytest.raises(AlreadyImportedError):
            await imported(target, archive)
        await exported(target, tmp_path / "other.gz")
        with pytest.raises(ArchiveError, match="empty one"):
            await imported(target, tmp_path / "other.gz")


async def test_a_store_that_was_changed_meanwhile_is_told_of(archive: Path, tmp_path: Path) -> None:
    """The store is read again at the end: who served from it during the import is found out."""

    def disturbed(kind: str, done: int) -> None:
        seen.append(kind)

    seen: list[str] = []
    async with opened(tmp_path / "target") as target:
        with unpacked(str(archive)) as stream:
            reader = ArchiveReader(stream)
            # As a service would that accepts a call between two batches.
            await target.put_fact(FACT, Mark(archive=reader.header.id).model_dump_json())
            await target.append("default", [make_execution(77)])
            compared = await restore(target, reader, on_records=disturbed)
        assert "executions" in compared.differing
        assert seen
        with pytest.raises(HalfImportedError):
            await refuse_half_imported(target)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
async def test_a_damaged_stream_leaves_a_store_that_says_so(
    archive: Path, tmp_path: Path, kind: str
) -> None:
    """Read from a pipe there is no looking first: the store is marked as half, and not served."""
    told = lines_of(archive)
    place = next(
        n for n, line in enumerate(told) if f'"end of kind","kind":"{kind}"'.encode() in line
    )
    damaged = [*told[: place - 1], told[place - 1].replace(b"{", b"[", 1), *told[place:]]
    async with opened(tmp_path / "target") as target:
        stream = io.BufferedReader(io.BytesIO(b"".join(damaged)))  # type: ignore[arg-type]
        with pytest.raises(BadLineError) as refused:
            await restore(target, ArchiveReader(stream))
        assert refused.value.number == place
        with pytest.raises(HalfImportedError, match="run `aftercall import FILE` again"):
            await refuse_half_imported(target)
        with pytest.raises(HalfImportedError):
            await exported(target, tmp_path / "half.gz")
        assert not (tmp_path / "half.gz").exists()
        # The right file goes on from there.
        assert (await imported(target, archive)).differing == []
        await refuse_half_imported(target)


async def test_another_archive_does_not_go_into_a_half_imported_store(
    archive: Path, tmp_path: Path
) -> None:
    """Two halves would look like a whole."""
    async with opened(tmp_path / "target") as target:
        await write_mark(target, Mark(archive="0" * 32))
        with pytest.raises(ArchiveError, match=f"another archive \\({'0' * 32}\\)"):
            await imported(target, archive)


async def test_what_waits_in_a_store_that_stands_still_is_exact(tmp_path: Path) -> None:
    """Nobody learns from it meanwhile, so nothing can count twice."""
    async with opened(tmp_path / "origin") as origin:
        await origin.append("default", [make_execution(1)])
        assert (await exported(origin, tmp_path / "a.gz")).is_still


async def test_what_arrives_during_an_export_does_no_harm(tmp_path: Path) -> None:
    """It is in the file or it is not, though there is always more; the file can be imported."""
    await filled(tmp_path / "origin")
    async with opened(tmp_path / "origin") as origin, opened(tmp_path / "target") as target:
        with written(str(tmp_path / "a.gz")) as stream:
            writing = export_store(_Receiving(origin), stream)  # type: ignore[arg-type]
            assert not (await writing).is_still
        compared = await imported(target, tmp_path / "a.gz")
        assert compared.differing == []
        for workspace in WORKSPACES:
            for execution in await target.pending(workspace, 100):
                assert await origin.get_execution(workspace, execution.execution.execution_id)


class _Receiving:
    """A store that gets an execution before every page that is read from it."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._number = 100

    def __getattr__(self, name: str) -> Callable[..., object]:
        found: Callable[..., object] = getattr(self._store, name)
        return found

    @property
    def name(self) -> str:
        return self._store.name

    async def scan_archive(self, *given: object) -> object:
        self._number += 1
        await self._store.append("default", [make_execution(self._number)])
        return await self._store.scan_archive(*given)  # type: ignore[arg-type]


async def test_a_view_of_one_moment_is_exported_while_others_learn(tmp_path: Path) -> None:
    """What is learned and recorded between two pages is not in it, so nothing counts twice."""
    await filled(tmp_path / "origin")
    async with opened(tmp_path / "origin") as origin, opened(tmp_path / "target") as target:
        before = await exported(origin, tmp_path / "before.gz")
        waiting = await origin.pending("default", 100)
        learned = IndexCommit(
            workspace="default",
            generation=await origin.generation(),
            positions=[each.position for each in waiting],
            statistics=[StatisticsRow(each.tool_key, b"anew") for each in waiting],
        )

        class Learning(_Receiving):
            async def scan_archive(self, *given: object) -> object:
                await origin.commit_index(learned)
                await origin.append("default", [make_execution(1_000)])
                await origin.put_fact("model", "another")
                return await self._store.scan_archive(*given)  # type: ignore[arg-type]

        async with origin.still() as view:
            found = await exported(Learning(view), tmp_path / "a.gz")  # type: ignore[arg-type]
        assert waiting
        assert found.is_still
        assert found.tallies == before.tallies
        assert (await imported(target, tmp_path / "a.gz")).differing == []
        assert await target.pending("default", 100) == waiting
        assert await origin.get_fact("model") == "another"


async def test_a_switch_in_the_middle_ends_the_export(tmp_path: Path) -> None:
    """One half of before a rebuild and one of after would fit nowhere."""

    class Switched(_Receiving):
        asked = 0

        async def generation(self) -> int:
            self.asked += 1
            return self.asked

    async with opened(tmp_path / "origin") as origin:

        async def exporting() -> None:
            with written(str(tmp_path / "a.gz")) as stream:
                await export_store(Switched(origin), stream)  # type: ignore[arg-type]

        with pytest.raises(ArchiveError, match="a rebuild has switched"):
            await exporting()
        assert not (tmp_path / "a.gz").exists()


def scenario(what: str, folder: Path, file: Path, fatal: int) -> "subprocess.CompletedProcess[str]":
    """Export or import in a process that dies before a call to its store; 0 for never."""
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("moving_scenario.py")), what, str(folder),
         str(file), str(fatal)],
        cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}"}, check=False, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.real
async def test_a_killed_export_leaves_no_file_that_looks_whole(tmp_path: Path) -> None:
    """At whatever point; the next one works."""
    await filled(tmp_path / "origin")
    file = tmp_path / "archive.gz"
    calls = int(scenario("export", tmp_path / "origin", file, 0).stdout)
    file.unlink()
    for fatal in (1, 4, calls // 2, calls):
        assert scenario("export", tmp_path / "origin", file, fatal).returncode == -signal.SIGKILL
        assert not file.exists()
    assert scenario("export", tmp_path / "origin", file, 0).returncode == 0
    async with opened(tmp_path / "target") as target:
        assert (await imported(target, file)).differing == []


@pytest.mark.real
async def test_a_killed_import_goes_on_when_it_is_run_again(archive: Path, tmp_path: Path) -> None:
    """Killed before each of several calls, again and again in one store; nothing is missing."""
    calls = int(scenario("import", tmp_path / "once", archive, 0).stdout)
    target = tmp_path / "target"
    for fatal in (4, 6, 9, calls // 3, calls // 3, 12):
        assert scenario("import", target, archive, fatal).returncode == -signal.SIGKILL
        async with opened(target) as store:
            with pytest.raises(HalfImportedError):
                await refuse_half_imported(store)
    assert scenario("import", target, archive, 0).returncode == 0
    async with opened(target) as store, opened(tmp_path / "origin") as origin:
        await refuse_half_imported(store)
        assert await tallies(store) == await tallies(origin)


@pytest.mark.real
async def test_an_import_killed_at_its_last_call_is_not_done(archive: Path, tmp_path: Path) -> None:
    """Everything is there by then, and it was not said to have been compared."""
    calls = int(scenario("import", tmp_path / "once", archive, 0).stdout)
    assert scenario("import", tmp_path / "target", archive, calls).returncode == -signal.SIGKILL
    async with opened(tmp_path / "target") as store:
        with pytest.raises(HalfImportedError):
            await refuse_half_imported(store)
        assert (await imported(store, archive)).differing == []


async def tallies(store: LogStore) -> dict[str, Tally]:
    """Counts and checksums of what a store holds."""
    with gzip.GzipFile(fileobj=io.BytesIO(), mode="wb") as nowhere:
        return (await export_store(store, nowhere)).tallies  # type: ignore[arg-type]
