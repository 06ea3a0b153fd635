"""`aftercall worker`: learns on server stores, and says where it has no place."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aftercall.models import Execution
from aftercall.redaction import Redactor
from ingest.intake import Intake
from retrieval.log import counts
from service.context import open_context
from service.server import work_once
from service.settings import Settings
from service.stores import opened_store
from tests.mongo.mongo_server import SharedMongo
from tests.service.running_service import ROOT, execution, hashing_settings

WORKSPACE = "default"
CALLS = 60
AFTERCALL = (sys.executable, "-m", "aftercall.cli")


def environment(**values: str) -> dict[str, str]:
    """Nothing of ours but these variables."""
    clean = {name: value for name, value in os.environ.items() if "AFTERCALL_" not in name}
    return clean | {f"AFTERCALL_{name}": value for name, value in values.items()}


def command(*arguments: str, **values: str) -> "subprocess.CompletedProcess[str]":
    """Run `aftercall worker` to its end."""
    return subprocess.run(
        [*AFTERCALL, "worker", *arguments],
        capture_output=True, text=True, cwd=ROOT, env=environment(**values), timeout=300,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def mongo() -> Iterator[SharedMongo]:
    server = SharedMongo()
    yield server
    server.close()


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
    uri = settings.mongo.uri
    return {
        "MONGO_URI": "" if uri is None else uri.get_secret_value(),
        "MONGO_DATABASE": settings.mongo.database,
        "QDRANT_URL": str(settings.qdrant.url),
        "DATA_DIR": str(settings.data.dir),
        "EMBEDDING_MODEL": "hashing",
    }


@contextmanager
def running_worker(settings: Settings) -> "Iterator[subprocess.Popen[str]]":
    """A worker; it is killed in the end if it still runs."""
    with subprocess.Popen(
        [*AFTERCALL, "worker"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        cwd=ROOT, env=environment(**variables(settings)),
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def calls(count: int) -> list[Execution]:
    return [Execution.model_validate(execution()) for _ in range(count)]


async def record(settings: Settings) -> None:
    async with opened_store(settings) as store:
        await Intake(store.events, Redactor(), lambda: None).accept(WORKSPACE, calls(CALLS))


async def pending(settings: Settings) -> int:
    async with opened_store(settings) as store:
        return (await counts(store)).pending


@pytest.mark.real
def test_it_has_no_place_on_the_embedded_store(tmp_path: Path) -> None:
    """It says that the service learns by itself, and touches nothing."""
    done = command(DATA_DIR=str(tmp_path / "data"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "one process" in done.stderr
    assert "AFTERCALL_MONGO_URI" in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.real
def test_it_needs_an_index_that_processes_share(tmp_path: Path) -> None:
    """MongoDB alone is not enough; the address is not repeated, for it may hold a password."""
    done = command(MONGO_URI="mongodb://ada:hunter2@nowhere.invalid", DATA_DIR=str(tmp_path))
    assert done.returncode == 2
    assert "AFTERCALL_QDRANT_URL" in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.real
async def test_once_works_off_what_is_queued_and_ends(servers: Settings) -> None:
    """Vectors too; a second time there is nothing to do."""
    await record(servers)
    worked = await work_once(servers)
    assert (worked.records, worked.pending) == (CALLS, 0)
    again = await work_once(servers)
    assert (again.records, again.pending) == (0, 0)


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
        assert process.wait(60) == 0
    assert (await work_once(servers)).records == 0


async def test_a_service_that_leaves_learning_to_workers_records_only(tmp_path: Path) -> None:
    """What it stores stays queued for whoever learns."""
    settings = hashing_settings(tmp_path, indexing={"here": False})
    async with open_context(settings) as context:
        await context.intake.accept(WORKSPACE, calls(1))
        assert (await counts(context.store)).pending == 1
        await context.indexer.catch_up()
        assert (await counts(context.store)).pending == 0
