"""From the embedded stores to the servers and back: the same records, the same answers."""

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from aftercall.cli import main
from bench import history
from mongo.archive import KINDS
from service.environment import environment_of
from service.rooms import opened_store
from service.settings import Settings
from tests.mongo.mongo_server import MongoServer, given_uri, missing
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
    serving,
)
from tests.service.test_moving import exported, filled, imported, opened

EXECUTIONS = 300
CONFIDENCE = 1e-3
"""Vectors are kept in half precision on the servers and in full here (`test_same_answers`)."""

Json = dict[str, Any]

pytestmark = pytest.mark.real


def aftercall(settings: Settings, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run a command with these settings in its environment."""
    with monkeypatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AFTERCALL_")]:
            patch.delenv(name)
        for name, value in environment_of(settings).items():
            patch.setenv(name, value)
        # The process is the tests': a handler on this moment's stderr would outlive it.
        patch.setattr("service.logs.configure_logging", lambda _: None)
        return main(arguments)


def quiet(folder: Path, **sections: Any) -> Settings:
    """Settings of a service that does nothing by itself at night."""
    return hashing_settings(folder, nightly={"every_h": 0}, **sections)


def record_history(service: RunningService) -> None:
    """Calls, tools, outcomes, marks, corrections and a promotion; all learned from."""
    client = service.client
    records = list(islice(history.executions(EXECUTIONS, tool_count=6), EXECUTIONS))
    for tool in history.tools(6):
        body = {
            "namespace": tool.server, "name": tool.name, "serverName": tool.server,
            "description": tool.name.replace("_", " "), "inputSchema": tool.input_schema,
        }  # fmt: skip
        assert client.put(f"/tools/{tool.name}", json=body).status_code in (200, 201)
    pairs = [
        record
        for n in range(20)
        for record in (
            failure(sessionId=f"s-{n}", sequence=0, agent=f"agent-{n}"),
            execution(sessionId=f"s-{n}", sequence=1, agent=f"agent-{n}"),
        )
    ]
    assert service.record([*records, *pairs]).status_code == 202
    eventually(lambda: learned(service), 120)
    for suggestion in answer(service, asked()[-1])["suggestions"]:
        retried = execution(suggestionId=suggestion["suggestionId"])
        assert service.record(retried).status_code == 202
    eventually(lambda: learned(service), 120)


def learned(service: RunningService) -> bool:
    status = service.client.get("/status").json()
    return bool(status["executions"] > EXECUTIONS and status["pendingIndexing"] == 0)


def asked() -> list[Json]:
    """Failures that were not seen yet, and some that were."""
    failed = [*history.new_failures(8, tool_count=6), failure(parameters={"query": "", "topK": 50})]
    return [
        {k: v for k, v in each.items() if k not in {"executionId", "timestamp"}} for each in failed
    ]


def answer(service: RunningService, failed: Json) -> Json:
    told: Json = service.client.post("/suggest", json={"execution": failed}).json()
    return told


def answers(settings: Settings) -> list[Any]:
    """What a service on these settings answers once it has made its vectors."""
    with running(settings) as service:
        eventually(lambda: learned(service), 120)
        return [
            [
                (each["changes"], round(each["confidence"] / (20 * CONFIDENCE)))
                for each in answer(service, failed)["suggestions"]
            ]
            for failed in asked()
        ]


def last_line(file: Path) -> Json:
    """The counts and the checksum of an archive."""
    import gzip

    told: Json = json.loads(gzip.decompress(file.read_bytes()).splitlines()[-1])
    return told


@pytest.fixture
def mongo(tmp_path: Path) -> Iterator[MongoServer]:
    if given_uri() is not None or missing() is not None:
        pytest.skip("needs a MongoDB of its own: nx-27017 (the extra `dev`)")
    server = MongoServer.start(tmp_path / "mongo")
    yield server
    server.stop()


def test_from_embedded_to_servers_and_back(
    mongo: MongoServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every count and checksum agrees on the way, and each service answers as the first one did."""
    first = quiet(tmp_path / "first")
    servers = quiet(
        tmp_path / "servers",
        mongo={"uri": mongo.uri},
        qdrant={"url": f"local:{tmp_path / 'qdrant'}"},
    )
    back = quiet(tmp_path / "back")
    with running(first) as service:
        record_history(service)
    there, again = tmp_path / "there.jsonl.gz", tmp_path / "again.jsonl.gz"
    assert aftercall(first, monkeypatch, "export", str(there)) == 0
    assert aftercall(servers, monkeypatch, "import", str(there)) == 0
    told = capsys.readouterr()
    assert "DIFFERS" not in told.out
    assert "counts and checksums agree" in told.err
    assert aftercall(servers, monkeypatch, "export", str(again)) == 0
    assert last_line(again) == last_line(there)
    moved = last_line(there)["counts"]
    assert all(
        moved[kind] for kind in ("executions", "tools", "suggestions", "outcomes", "documents")
    )
    assert aftercall(back, monkeypatch, "import", str(again)) == 0
    expected = answers(first)
    assert any(expected)
    assert answers(servers) == expected
    assert answers(back) == expected


async def test_every_kind_goes_by_way_of_mongodb(mongo: MongoServer, tmp_path: Path) -> None:
    """Something of each, half of it learned from: the same checksums in all three stores."""
    settings = quiet(tmp_path, mongo={"uri": mongo.uri})
    await filled(tmp_path / "origin")
    async with (
        opened(tmp_path / "origin") as origin,
        opened_store(settings) as middle,
        opened(tmp_path / "back") as back,
    ):
        first = await exported(origin, tmp_path / "first.zst")
        assert all(first.tallies[kind.name].count for kind in KINDS)
        assert (await imported(middle, tmp_path / "first.zst")).store == first.tallies
        second = await exported(middle, tmp_path / "second.gz")
        assert second.tallies == first.tallies
        assert (await imported(back, tmp_path / "second.gz")).store == first.tallies


def test_an_export_works_beside_a_running_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service notices nothing, and the archive can be imported and served."""
    with running(quiet(tmp_path / "first")) as service:
        records = [execution() for _ in range(50)]
        assert service.record(records).status_code == 202
        file = str(tmp_path / "beside.gz")
        assert aftercall(quiet(tmp_path / "first"), monkeypatch, "export", file) == 0
        assert service.record(execution()).status_code == 202
    assert aftercall(quiet(tmp_path / "second"), monkeypatch, "import", file) == 0
    with running(quiet(tmp_path / "second")) as service:
        assert all(service.is_stored(record) for record in records)


def test_an_archive_does_not_go_into_a_store_that_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is the service's; it says which process has it."""
    with running(quiet(tmp_path / "a")):
        pass
    assert aftercall(quiet(tmp_path / "a"), monkeypatch, "export", str(tmp_path / "a.gz")) == 0
    with running(quiet(tmp_path / "first")):
        status = aftercall(quiet(tmp_path / "first"), monkeypatch, "import", str(tmp_path / "a.gz"))
        assert status == 1
        assert "in use by process" in capsys.readouterr().err


def test_a_half_imported_store_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service ends at once and names the cure, which then works."""
    import asyncio

    from mongo.sqlite import open_sqlite_store
    from service.moving.unfinished import Mark, write_mark

    async def mark(data_dir: Path) -> None:
        store = await open_sqlite_store(data_dir)
        await write_mark(store, Mark(archive="0" * 32))
        await store.close()

    settings = quiet(tmp_path / "half")
    asyncio.run(mark(settings.data.dir))
    with (
        pytest.raises(RuntimeError, match="run `aftercall import FILE` again"),
        serving(settings.data.dir),
    ):
        pass
    assert aftercall(settings, monkeypatch, "nightly") == 1
    assert aftercall(settings, monkeypatch, "export", str(tmp_path / "half.gz")) == 1
    assert capsys.readouterr().err.count("did not come to its end") == 2
