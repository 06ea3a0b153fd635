"""`aftercall worker`: learns on server stores, and says where it has no place."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aftercall.models import Execution
from aftercall.redaction import Redactor
from ingest.intake import Intake
from retrieval.knowledge.rows.log import count_rows
from service.context import open_context
from service.databases import opened_store
from service.environment import environment_of
from service.settings import Settings
from tests.mongo.mongo_server import SharedMongo
from tests.service.running_service import aftercall, execution, finished, hashing_settings

WORKSPACE = "default"
CALLS = 60


@pytest.fixture
def servers(mongo: SharedMongo, tmp_path: Path) -> Settings:
    """Settings of a MongoDB and of an index that one process may open at a time."""
    return hashing_settings(
        tmp_path,
        mongo={"uri": mongo.uri(), "database": mongo.database(tmp_path)},
        qdrant={"url": f"local:{tmp_path / 'qdrant'}"},
    )


def variables(settings: Settings) -> dict[str, str]:
    """The same settings for a process."""
    return environment_of(settings) | {"AFTERCALL_DATA_DIR": str(settings.data.dir)}


@contextmanager
def running_worker(settings: Settings) -> "Iterator[subprocess.Popen[str]]":
    """A worker; it is killed in the end if it still runs."""
    with aftercall("worker", environ=variables(settings)) as process:
        try:
            yield process
        finally:
            process.kill()


def calls(count: int) -> list[Execution]:
    return [Execution.model_validate(execution()) for _ in range(count)]


async def record(settings: Settings) -> None:
    async with opened_store(settings) as store:
        await Intake(store.events, Redactor(), lambda: None).accept_executions(
            WORKSPACE, calls(CALLS)
        )


async def pending(settings: Settings) -> int:
    async with opened_store(settings) as store:
        return (await count_rows(store)).pending


@pytest.mark.real
def test_it_has_no_place_on_the_embedded_store(tmp_path: Path) -> None:
    """It says that the service learns by itself, and touches nothing."""
    status, out, err = finished("worker", "--data-dir", str(tmp_path / "data"))
    assert (status, out) == (2, "")
    assert "one process" in err
    assert "AFTERCALL_MONGO_URI" in err
    assert not (tmp_path / "data").exists()


@pytest.mark.real
def test_it_needs_an_index_that_processes_share(tmp_path: Path) -> None:
    """MongoDB alone is not enough; the address is not repeated, for it may hold a password."""
    uri = {"AFTERCALL_MONGO_URI": "mongodb://ada:hunter2@nowhere.invalid"}
    status, _, err = finished("worker", "--data-dir", str(tmp_path), environ=uri)
    assert status == 2
    assert "AFTERCALL_QDRANT_URL" in err
    assert "hunter2" not in err


@pytest.mark.real
async def test_it_learns_until_it_is_told_to_stop(servers: Settings) -> None:
    """It says when it is ready; a signal ends it in order, and what it learned is there."""
    await record(servers)
    with running_worker(servers) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " worker ready " in line
        assert "mongodb" in line
        while await pending(servers):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(200) == 0
    assert await pending(servers) == 0


async def test_a_service_that_leaves_learning_to_workers_records_only(tmp_path: Path) -> None:
    """What it stores stays queued for whoever learns."""
    settings = hashing_settings(tmp_path, indexing={"here": False})
    async with open_context(settings) as context:
        await context.intake.accept_executions(WORKSPACE, calls(1))
        assert (await count_rows(context.store)).pending == 1
        await context.indexer.catch_up()
        assert (await count_rows(context.store)).pending == 0
