"""A service whose database goes away, hangs, drops, delays or is full: nothing is lost."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from aftercall import Execution, Recorder
from service.settings import Settings
from tests.mongo.mongo_server import MongoServer, given_uri, missing
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
)
from tests.service.tcp_proxy import TcpProxy, proxy_to

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        missing() is not None or given_uri() is not None,
        reason="needs a MongoDB of its own to stop: nx-27017 (the extra `dev`)",
    ),
]


@pytest.fixture
def mongo(tmp_path: Path) -> Iterator[MongoServer]:
    """A database that a test may freeze and kill."""
    server = MongoServer.start(tmp_path / "mongo")
    yield server
    server.stop()


@pytest.fixture
def proxy(mongo: MongoServer) -> Iterator[TcpProxy]:
    """The way to the database."""
    with proxy_to(mongo.port) as started:
        yield started


def on_mongo(folder: Path, port: int) -> Settings:
    """Settings of a service on a MongoDB at a port, that gives up soon."""
    return hashing_settings(
        folder,
        mongo={"uri": f"mongodb://127.0.0.1:{port}", "connect_timeout_s": 0.5, "timeout_s": 1.0},
        nightly={"every_h": 0},
    )


def answered(service: RunningService, path: str) -> httpx2.Response:
    """A GET."""
    return service.client.get(path)


def has_learned(service: RunningService, count: int) -> bool:
    """Whether so many executions are stored and learned from."""
    response = answered(service, "/status")
    if response.status_code != 200:
        return False
    status = response.json()
    return bool(status["executions"] == count and status["pendingIndexing"] == 0)


def is_unavailable(response: httpx2.Response) -> bool:
    """503 in the contract's form, with the wait, and without an address of the inside."""
    error = response.json()["error"]
    return (
        response.status_code == 503
        and int(response.headers["retry-after"]) > 0
        and error["code"] in {"store_unavailable", "not_ready"}
        and "mongodb://" not in error["message"]
    )


def as_executions(records: list[dict[str, Any]]) -> list[Execution]:
    """Records as the SDK takes them."""
    return [Execution.model_validate(record) for record in records]


@pytest.mark.parametrize("fault", ["frozen", "killed", "refusing", "swallowing"])
def test_a_database_that_goes_away_is_503_and_comes_back_by_itself(
    mongo: MongoServer, proxy: TcpProxy, tmp_path: Path, fault: str
) -> None:
    """`/readyz` follows, the process lives on, and what was refused is taken later, once."""
    with running(on_mongo(tmp_path, proxy.port)) as service:
        before, refused = execution(), execution()
        assert service.record(before).status_code == 202
        eventually(lambda: has_learned(service, 1))
        match fault:
            case "frozen":
                mongo.pause()
            case "killed":
                mongo.kill()
            case "refusing":
                proxy.refuse()
            case _:
                proxy.mode = "swallow"
        assert is_unavailable(service.record(refused))
        assert is_unavailable(answered(service, f"/executions/{before['executionId']}"))
        eventually(lambda: answered(service, "/readyz").status_code == 503)
        assert answered(service, "/healthz").status_code == 200
        match fault:
            case "frozen":
                mongo.resume()
            case "killed":
                mongo.run()
            case _:
                proxy.mode = "pass"
        eventually(lambda: answered(service, "/readyz").status_code == 200, 60)
        assert service.record(refused).status_code == 202
        assert service.record(before).json()["duplicates"] == 1
        eventually(lambda: has_learned(service, 2), 60)


def test_what_an_sdk_records_while_the_database_is_away_arrives_exactly_once(
    mongo: MongoServer, tmp_path: Path
) -> None:
    """The recorder spools on the 503s and delivers afterwards; counts agree to one."""
    records = [execution(parameters={"query": str(number)}) for number in range(60)]
    with running(on_mongo(tmp_path, mongo.port)) as service:
        with Recorder(
            base_url=service.url, spool_dir=tmp_path / "spool", flush_interval_s=0.05
        ) as recorder:
            for each in as_executions(records[:20]):
                recorder.record(each)
            assert recorder.flush(10)
            mongo.pause()
            for each in as_executions(records[20:40]):
                recorder.record(each)
            eventually(lambda: recorder.stats().spooled >= 20, 60)
            mongo.resume()
            for each in as_executions(records[40:]):
                recorder.record(each)
            eventually(lambda: recorder.stats().spooled == 0, 60)
            assert recorder.flush(30)
            stats = recorder.stats()
        assert (stats.rejected, stats.dropped) == (0, 0)
        assert stats.sent + stats.duplicates == 60
        assert all(service.is_stored(record) for record in records)
        eventually(lambda: has_learned(service, 60), 60)


def test_a_slow_database_is_waited_for(proxy: TcpProxy, tmp_path: Path) -> None:
    """Each answer comes 0.1 s late: slower, and right; beyond the timeout it is a 503."""
    with running(on_mongo(tmp_path, proxy.port)) as service:
        proxy.delay_s = 0.1
        records = [execution() for _ in range(20)]
        assert service.record(records).json()["accepted"] == 20
        assert service.client.post("/suggest", json={"execution": failure()}).status_code == 200
        proxy.delay_s = 5.0
        assert is_unavailable(service.record(execution()))
        proxy.delay_s = 0.0
        eventually(lambda: has_learned(service, 20) or has_learned(service, 21), 60)


def _can_mount() -> bool:
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return probe.returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="mounting a small file system needs privileges")
def test_a_database_on_a_full_disk_is_503_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    """A real file system of 3 MiB under the server; recording goes on when there is space."""
    volume = tmp_path / "volume"
    volume.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", volume], check=True)
    try:
        mongo = MongoServer.start(volume / "mongo")
        try:
            with running(on_mongo(tmp_path, mongo.port)) as service:
                stored: list[dict[str, Any]] = []
                for _ in range(200):
                    batch = [execution(result="x" * 5_000) for _ in range(10)]
                    response = service.record(batch)
                    if response.status_code != 202:
                        break
                    stored += batch
                assert response.status_code == 503
                assert response.json()["error"]["code"] == "store_full"
                assert stored
                assert all(service.is_stored(record) for record in stored)
                # Enough for what is learned meanwhile, too: it takes what it can get.
                subprocess.run(["mount", "-o", "remount,size=64m", volume], check=True)
                last = execution()
                eventually(lambda: service.record(last).status_code == 202, 60)
                assert service.is_stored(last)
        finally:
            mongo.stop()
    finally:
        subprocess.run(["umount", "-l", volume], check=True)


def test_what_is_said_of_a_fault_holds_nothing_of_the_call_nor_of_the_address(
    mongo: MongoServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither parameters nor options of the address are in the answer or in the log."""
    settings = on_mongo(tmp_path, mongo.port).with_values(
        mongo={"uri": f"mongodb://127.0.0.1:{mongo.port}/?appName=pass-{uuid4().hex}"}
    )
    secret = f"pass-{uuid4().hex}"
    with running(settings) as service:
        assert service.record(execution()).status_code == 202
        mongo.pause()
        response = service.record(execution(parameters={"query": secret}))
        mongo.resume()
        assert response.status_code == 503
        assert secret not in response.text
    assert secret not in caplog.text
    assert "appName" not in caplog.text
