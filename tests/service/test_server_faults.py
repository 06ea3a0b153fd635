"""A service whose database goes away, hangs, drops, delays or is full: nothing is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from tests.service.tcp_proxy import proxy_to

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


AWAY = {
    "frozen": (MongoServer.pause, MongoServer.resume),
    "killed": (MongoServer.kill, MongoServer.run),
}


@pytest.mark.parametrize("fault", AWAY)
def test_a_database_that_goes_away_is_503_and_comes_back_by_itself(
    mongo: MongoServer, tmp_path: Path, fault: str
) -> None:
    """`/readyz` follows, the process lives on, and what was refused is taken later, once."""
    goes, comes = AWAY[fault]
    with running(on_mongo(tmp_path, mongo.port)) as service:
        before, refused = execution(), execution()
        assert service.record(before).status_code == 202
        eventually(lambda: has_learned(service, 1))
        goes(mongo)
        assert is_unavailable(service.record(refused))
        assert is_unavailable(answered(service, f"/executions/{before['executionId']}"))
        eventually(lambda: answered(service, "/readyz").status_code == 503)
        assert answered(service, "/healthz").status_code == 200
        comes(mongo)
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


def test_a_slow_database_is_waited_for(mongo: MongoServer, tmp_path: Path) -> None:
    """Each answer comes 0.1 s late: slower, and right; beyond the timeout it is a 503."""
    with proxy_to(mongo.port) as proxy, running(on_mongo(tmp_path, proxy.port)) as service:
        proxy.delay_s = 0.1
        records = [execution() for _ in range(20)]
        assert service.record(records).json()["accepted"] == 20
        assert service.client.post("/suggest", json={"execution": failure()}).status_code == 200
        proxy.delay_s = 5.0
        assert is_unavailable(service.record(execution()))
        proxy.delay_s = 0.0
        eventually(lambda: has_learned(service, 20) or has_learned(service, 21), 60)
