"""Archives: everything moves from one store to another, or nothing is believed to have moved."""

import asyncio
import gzip
import io
import json
import os
import random
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aftercall.cli import main
from embeddings.embedders import HashingEmbedder
from ingest.nightly import NightlyJob
from ingest.nightly_steps import expire_events
from mongo.protocol import Store
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import Memory
from service.archive import (
    AlreadyImportedError,
    ArchiveError,
    ArchiveReader,
    ArchiveWriter,
    HalfImportedError,
    import_store,
    open_unpacked,
    open_written,
    refuse_half_imported,
)
from service.databases import opened_store
from service.environment import environment_of
from service.settings import Settings
from tests.mongo.mongo_server import SharedMongo, missing
from tests.mongo.store_samples import make_event
from tests.service.running_service import (
    RunningService,
    execution,
    failure,
    hashing_settings,
    running,
    serving,
)

Json = dict[str, Any]


def quiet(folder: Path, **sections: Any) -> Settings:
    """Settings of a service that does nothing by itself at night."""
    return hashing_settings(folder, nightly={"every_h": 0}, **sections)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Store]:
    store = await open_sqlite_store(folder)
    try:
        yield store
    finally:
        await store.close()


def reported(service: RunningService) -> None:
    """Something of every kind, learned from."""
    client = service.client
    tool = {"name": "rag_query", "serverName": "rag-server", "namespace": "rag", "version": "1.0.0"}
    assert client.put("/tools/z", json=tool).status_code == 200
    assert client.put("/tools/a", json={**tool, "version": "1.1.0"}).status_code == 200
    promotion = {
        "evolvedVersion": "1.1.0", "originalVersion": "1.0.0", "evolvedFile": "a.py",
        "reason": "timeout", "mutation": "add caching",
    }  # fmt: skip
    assert client.put("/namespaces/rag/promotion", json=promotion).status_code == 200
    now = datetime.now(UTC)
    calls = []
    for n in range(12):
        at = (now - timedelta(minutes=60 - n)).isoformat()
        said = {"sessionId": f"s-{n}", "agent": f"agent-{n % 3}", "timestamp": at}
        calls += [failure(sequence=0, **said), execution(sequence=1, **said)]
    assert service.record(calls).json()["accepted"] == 24
    mark = {"scenario": "x", "errorMessage": "y", "severity": "high"}
    assert client.post("/tools/z/failures", json=mark).status_code == 202
    wrong = {"executionId": calls[0]["executionId"], "kind": "wrong_tool_boundary", "text": "no"}
    assert client.post("/corrections", json=wrong).status_code == 202
    service.learned(120)
    [best, *_] = suggested(service)
    followed = execution(suggestionId=best["suggestionId"], timestamp=now.isoformat())
    assert service.record(followed).status_code == 202
    service.learned(120)


def suggested(service: RunningService) -> list[Json]:
    failed = {k: v for k, v in failure().items() if k not in {"executionId", "timestamp"}}
    answer = service.client.post("/suggest", json={"execution": failed})
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["suggestions"]
    return found


def answered(settings: Settings) -> list[Any]:
    """What a service on these settings answers; ids and times of its own left out."""
    with running(settings) as service:
        service.learned(120)
        usage = service.client.get("/stats/usage").json()
        return [
            [(each["changes"], round(each["confidence"], 2)) for each in suggested(service)],
            [(each["agent"], each["successes"], each["failures"]) for each in usage["byAgent"]],
            [each["tool"]["toolId"] for each in service.client.get("/stats/tools").json()["tools"]],
            *(
                service.client.get(path).json()
                for path in ("/tools", "/namespaces/rag/promotion/history")
            ),
        ]


async def export_store(store: Store, stream: Any) -> dict[str, int]:
    writer = ArchiveWriter(store)
    async for line in writer.write_lines():
        stream.write(line)
    return writer.counts


async def tallied(store: Store) -> list[str]:
    """What is in a store, whatever its numbering and the order of its rows."""
    stream = io.BytesIO()
    await export_store(store, stream)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()[1:-1]]
    for line in lines:
        for content in line.values():
            content |= {"serial": 0, "position": 0}
    return sorted(json.dumps(line, sort_keys=True) for line in lines)


async def exported(store: Store, file: Path) -> dict[str, int]:
    with open_written(str(file)) as stream:
        return await export_store(store, stream)


async def imported(store: Store, file: Path) -> dict[str, int]:
    with open_unpacked(str(file)) as stream:
        return await import_store(store, ArchiveReader(stream))


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with something of every kind, of which the older part has expired."""
    settings = quiet(tmp_path_factory.mktemp("origin"))
    with running(settings) as service:
        reported(service)
    asyncio.run(half_expired(settings.data.dir))
    return settings.data.dir


async def half_expired(folder: Path) -> None:
    """The base has learned all events but the latest, and half of them are gone."""
    async with opened(folder) as store:
        events = await store.events.read_after("default", 0, 100)
        job = NightlyJob(
            store=store, memory=Memory(store), open_model=no_model, keeper=None,
            knowledge=store.knowledge, retention=timedelta(days=30), expire_all=True,
            clock=lambda: events[-1].received_at + timedelta(days=30),
        )  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            half = events[len(events) // 2].received_at
            patch.setattr("ingest.fold.MARGIN", events[-1].received_at - half)
            done = await expire_events(job)
        assert 0 < done["events"] < done["learned"] < len(events)


async def no_model() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture(scope="module")
def archive(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all of it."""

    async def export() -> Path:
        file = tmp_path_factory.mktemp("archive") / "archive.gz"
        async with opened(origin) as store:
            counts = await exported(store, file)
        assert set(counts) == {"event", "state", "row", "counter", "base"}
        return file

    return asyncio.run(export())


# Whole


async def test_everything_moves(origin: Path, archive: Path, tmp_path: Path) -> None:
    """Events with their times, state, and what expired events taught; once, and not twice."""
    async with opened(origin) as store, opened(tmp_path / "target") as target:
        counts = await imported(target, archive)
        assert await tallied(target) == await tallied(store)
        assert await exported(target, tmp_path / "again.gz") == counts
        with pytest.raises(AlreadyImportedError):
            await imported(target, archive)
        with pytest.raises(ArchiveError, match="not empty"):
            await imported(target, tmp_path / "again.gz")


def test_an_import_learns_what_its_origin_had_learned(
    origin: Path, archive: Path, tmp_path: Path
) -> None:
    """Also what expired events taught: suggestions, statistics, tools and promotions."""
    shutil.copytree(origin, tmp_path / "data")  # what is asked for is an event, too
    expected = answered(quiet(tmp_path))
    settings = quiet(tmp_path / "target")
    asyncio.run(imported_into(settings, archive))
    assert answered(settings) == expected
    assert expected[0]


async def imported_into(settings: Settings, file: Path) -> None:
    async with opened_store(settings) as store:
        await imported(store, file)


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason="needs nx-27017 (the extra `dev`)")
async def test_everything_goes_by_way_of_mongodb(
    origin: Path, archive: Path, mongo: SharedMongo, tmp_path: Path
) -> None:
    """The same in all three stores."""
    uri = await asyncio.to_thread(mongo.uri)
    settings = quiet(tmp_path, mongo={"uri": uri, "database": mongo.database(tmp_path)})
    async with opened(origin) as store:
        expected = await tallied(store)
    async with opened_store(settings) as middle, opened(tmp_path / "back") as back:
        await imported(middle, archive)
        assert await tallied(middle) == expected
        await exported(middle, tmp_path / "second.gz")
        await imported(back, tmp_path / "second.gz")
        assert await tallied(back) == expected


async def test_what_arrives_during_an_export_belongs_to_the_next(tmp_path: Path) -> None:
    """Though there is always more, an export ends, and its file can be imported."""
    async with opened(tmp_path / "origin") as store, opened(tmp_path / "target") as target:
        for number in range(600):
            await store.events.append("default", [make_event(number)])
        with open_written(str(tmp_path / "a.gz")) as stream:
            writing = asyncio.create_task(export_store(store, stream))
            number = 1_000
            while not writing.done():
                number += 1
                await store.events.append("default", [make_event(number)])
        counts = await imported(target, tmp_path / "a.gz")
        assert 600 <= counts["event"] < 600 + number - 1_000
        heads = await target.events.read_heads()
        assert heads["default"].position == counts["event"]


# Not whole


@pytest.mark.parametrize("share", [0.2, 0.6, 0.97])
async def test_an_import_that_was_interrupted_goes_on(
    origin: Path, archive: Path, whole: list[bytes], tmp_path: Path, share: float
) -> None:
    """The store says that it holds a half, takes no other archive, and then nothing is missing."""
    cut = b"".join(whole[: int(len(whole) * share)])
    async with opened(tmp_path / "target") as target:
        for _ in range(2):
            with pytest.raises(ArchiveError, match=r"line \d+ of the archive is missing"):
                await import_store(target, ArchiveReader(buffered(cut)))
            with pytest.raises(HalfImportedError, match="run `aftercall import FILE` again"):
                await refuse_half_imported(target.metadata)
            with pytest.raises(HalfImportedError):
                await exported(target, tmp_path / "half.gz")
            assert not (tmp_path / "half.gz").exists()
        async with opened(tmp_path / "other") as other:
            await exported(other, tmp_path / "other.gz")
        if await target.events.read_heads():
            with pytest.raises(ArchiveError, match="not empty"):
                await imported(target, tmp_path / "other.gz")
        await imported(target, archive)
        await refuse_half_imported(target.metadata)
        async with opened(origin) as store:
            assert await tallied(target) == await tallied(store)


def buffered(data: bytes) -> Any:
    return io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]


def read(lines: list[bytes]) -> list[tuple[str, Json]]:
    return list(ArchiveReader(buffered(b"".join(lines))).read_lines())


@pytest.fixture(scope="module")
def whole(archive: Path) -> list[bytes]:
    """The lines of an archive, with their ends."""
    return gzip.decompress(archive.read_bytes()).splitlines(keepends=True)


def test_a_line_that_is_missing_doubled_or_changed_is_found(whole: list[bytes]) -> None:
    """Header, record or end, wherever; and what is no record is named by its line."""
    assert len(read(whole)) == len(whole) - 2
    dice = random.Random(3)  # noqa: S311  # no secret
    for place in (0, 1, len(whole) - 1, *dice.sample(range(len(whole)), 10)):
        with pytest.raises(ArchiveError):
            read(whole[:place] + whole[place + 1 :])
        if place not in (0, len(whole) - 1):
            with pytest.raises(ArchiveError):
                read(whole[: place + 1] + whole[place:])
    changed = whole[1].replace(b'"rag_query"', b'"rag_other"', 1)
    assert changed != whole[1]
    with pytest.raises(ArchiveError, match="does not agree with the lines before it"):
        read([whole[0], changed, *whole[2:]])
    with pytest.raises(ArchiveError, match="follows the end"):
        read([*whole, *whole])
    for bad, said in ((b"[" * 100_000, "is not JSON"), (b"7", "is not a JSON object")):
        with pytest.raises(ArchiveError, match=f"line 3 of the archive {said}"):
            read([*whole[:2], bad + b"\n", *whole[3:]])


async def test_an_archive_of_another_version_says_what_to_do(
    whole: list[bytes], tmp_path: Path
) -> None:
    """Nothing of it is stored."""
    header = {**json.loads(whole[0]), "version": 99, "made_by": "9.9"}
    told = json.dumps(header).encode() + b"\n" + b"".join(whole[1:])
    async with opened(tmp_path / "target") as target:
        with pytest.raises(ArchiveError, match=r"version 99.*use the Aftercall that made it.*9\.9"):
            await import_store(target, ArchiveReader(buffered(told)))
        assert await target.events.read_heads() == {}
        await refuse_half_imported(target.metadata)


# The file around it


def test_a_file_is_packed_private_and_damage_is_found(whole: list[bytes], tmp_path: Path) -> None:
    """Nobody else may read it; cut off or with a flipped bit it is refused."""
    path = tmp_path / "a.jsonl.gz"
    path.write_text("what had the name before")
    with open_written(str(path)) as stream:
        stream.write(b"".join(whole))
        assert path.read_text() == "what had the name before"
    packed = path.read_bytes()
    assert packed.startswith(b"\x1f\x8b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    step = len(packed) // 40
    flipped = [
        packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :]
        for place in range(20, len(packed) - 20, step)
    ]
    cut = [packed[: int(len(packed) * share)] for share in (0.0, 0.3, 0.9, 0.999)]
    for damaged in (*flipped, *cut):
        path.write_bytes(damaged)
        with pytest.raises(ArchiveError), open_unpacked(str(path)) as stream:
            list(ArchiveReader(stream).read_lines())


def test_what_fails_midway_leaves_no_file(tmp_path: Path) -> None:
    """Neither one that looks whole, nor a half one, and what had the name stays."""
    path = tmp_path / "a.gz"
    path.write_text("before")

    def half() -> None:
        with open_written(str(path)) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]
    with (
        pytest.raises(ArchiveError, match=r"cannot write .*No such file"),
        open_written(str(tmp_path / "none" / "a.gz")),
    ):
        pass


# The commands


@pytest.fixture
def aftercall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs a command with settings in its environment; its exit status."""

    def command(settings: Settings, *arguments: str) -> int:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AFTERCALL_")]:
                patch.delenv(name)
            for name, value in environment_of(settings).items():
                patch.setenv(name, value)
            # The process is the tests': a handler on this moment's stderr would outlive it.
            patch.setattr("service.logs.configure_logging", lambda _: None)
            return main(arguments)

    return command


@pytest.mark.real
def test_an_export_works_beside_a_running_service(
    tmp_path: Path, aftercall: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service notices nothing; an import wants a store that nobody serves from."""
    first, second, file = quiet(tmp_path / "1"), quiet(tmp_path / "2"), str(tmp_path / "a.gz")
    with running(first) as service:
        records = [execution() for _ in range(50)]
        assert service.record(records).status_code == 202
        assert aftercall(first, "export", file) == 0
        assert service.record(execution()).status_code == 202
        capsys.readouterr()
        assert aftercall(first, "import", file) == 1
        assert "in use by process" in capsys.readouterr().err
    assert aftercall(second, "import", file, "--dry-run") == 0
    assert not second.data.dir.exists()
    assert "the archive is whole: made " in capsys.readouterr().err
    assert aftercall(second, "import", file) == 0
    with running(second) as service:
        assert all(service.is_stored(record) for record in records)


@pytest.mark.real
def test_a_damaged_archive_leaves_no_store_and_a_half_one_is_not_served(
    whole: list[bytes], tmp_path: Path, aftercall: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is checked before anything is stored; from a pipe there is no looking first."""
    settings, file = quiet(tmp_path / "half"), tmp_path / "a.jsonl"
    file.write_bytes(b"".join([*whole[:5], b"{'}\n", *whole[6:]]))
    assert aftercall(settings, "import", str(file)) == 1
    assert "line 6 of the archive is not JSON" in capsys.readouterr().err
    assert not settings.data.dir.exists()

    async def piped() -> None:
        async with opened(settings.data.dir) as store:
            with pytest.raises(ArchiveError):
                await import_store(store, ArchiveReader(buffered(file.read_bytes())))

    asyncio.run(piped())
    with (
        pytest.raises(RuntimeError, match="run `aftercall import FILE` again"),
        serving(settings.data.dir),
    ):
        pass
    for command in (["nightly"], ["rebuild"], ["export", str(tmp_path / "half.gz")]):
        assert aftercall(settings, *command) == 1
        assert "did not come to its end" in capsys.readouterr().err
