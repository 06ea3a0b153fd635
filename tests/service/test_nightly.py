"""The nightly run as a command and as a service's own: when it is done, and what it says."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.leases import LeaseKeeper
from ingest.nightly import (
    LEASE,
    REPORT_FACT,
    NightlyJob,
    NightlyLostError,
    NightlyReport,
    last_report,
    run_steps,
    take_lease,
)
from ingest.nightly_steps import STEPS
from mongo.protocol import Store
from mongo.records import Commit, Row
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import CALIBRATION, PATTERN, Memory
from service import nightly as schedule
from service.cli import nightly as command
from service.environment import environment_of, read_settings
from service.nightly import open_nightly
from service.processes import run_process
from tests.service.running_service import (
    RunningService,
    aftercall,
    eventually,
    failure,
    finished,
    hashing_settings,
    running,
)

DAY = timedelta(days=1)
SOON = timedelta(milliseconds=1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_sqlite_store(tmp_path / "data")
    yield opened
    await opened.close()


async def ran(store: Store, ago: timedelta) -> None:
    report = NightlyReport(started_at=datetime.now(UTC) - ago, seconds=1)
    await store.metadata.put(REPORT_FACT, report.model_dump_json())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that has learned three failures, and runs nothing at night by itself."""
    settings = hashing_settings(tmp_path_factory.mktemp("service"), nightly={"every_h": 0})
    with running(settings) as started:
        assert started.record([failure() for _ in range(3)]).status_code == 202
        started.learned()
        yield started


@pytest.fixture
def data(service: RunningService) -> str:
    return str(service.context.settings.data.dir)


# The command


@pytest.mark.real
def test_it_runs_beside_the_service_which_sees_what_it_made(
    service: RunningService, data: str
) -> None:
    """It needs neither the service's lock nor its vectors; the report is JSON or for a person."""
    status, out, err = finished("nightly", "--data-dir", data, "--json")
    assert status == 0, err
    report = NightlyReport.model_validate_json(out)
    expected = [(name, None) for name in STEPS]
    assert [(each.name, each.problem) for each in report.steps] == expected
    assert "nightly: patterns" in err

    [pattern] = eventually(lambda: service.client.get("/patterns").json()["patterns"])
    assert pattern["count"] == 3
    assert service.client.get("/patterns").json()["consolidatedAt"] >= report.started_at.isoformat()
    status, out, _ = finished("nightly", "--data-dir", data)
    assert (status, "patterns" in out, "FAILED" in out) == (0, True, False)


@pytest.mark.real
async def test_the_second_of_two_ends_with_75(tmp_path: Path) -> None:
    """As soon as it has seen that the first one lives."""
    store = await open_sqlite_store(tmp_path / "data")
    keeper = await take_lease(store, ttl=3.0)
    said = await asyncio.to_thread(finished, "nightly", "--data-dir", str(tmp_path / "data"))
    await keeper.close()
    await store.close()
    assert said[:2] == (75, "")
    assert "another process" in said[2]


async def test_a_failed_step_does_not_keep_the_others_from_running(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The report says which one failed and why, and the command ends with 1."""

    async def broken(_: NightlyJob) -> dict[str, int]:
        raise OSError("no space left on device")

    done: list[str] = []

    async def counted(_: NightlyJob) -> dict[str, int]:
        done.append("counted")
        return {"things": 7}

    keeper = await take_lease(store, ttl=60)
    steps = {"broken": broken, "counted": counted}
    report = await run_steps(a_job(store, keeper), steps)
    await keeper.close()
    assert done == ["counted"]
    assert [each.name for each in report.failed] == ["broken"]
    assert await last_report(store) == report
    told = command.show_result(report)
    assert "FAILED: no space left on device" in told
    assert "7 things" in told


def a_job(store: Store, keeper: LeaseKeeper | None = None) -> NightlyJob:
    async def no_model() -> Any:
        raise AssertionError

    return NightlyJob(
        store=store, memory=Memory(store), open_model=no_model, keeper=keeper,
        knowledge=store.knowledge,
    )  # fmt: skip


@pytest.mark.parametrize("knows", [False, True])
async def test_who_lost_the_lease_writes_nothing_and_keeps_no_report(
    store: Store, knows: bool
) -> None:
    """Another process goes on: what it makes is not mixed with what this one would write."""
    keeper = await take_lease(store, ttl=60)
    job = a_job(store, keeper)

    async def overtaken(job: NightlyJob) -> dict[str, int]:
        await job.commit("w", [Row(CALIBRATION, "", b"{}")])
        seen = await store.leases.read(LEASE)
        taken = await store.leases.take_lease(LEASE, "elsewhere/1/x", seen)
        await store.knowledge.commit(Commit("w", [Row(CALIBRATION, "", b"{}")], lease=taken))
        assert not knows or not await keeper.renew_lease()
        await job.commit("w", [Row(CALIBRATION, "", b"{}"), Row(PATTERN, "mine", b"{}")])
        return {}

    with pytest.raises(NightlyLostError, match="another process took over"):
        await run_steps(job, {"overtaken": overtaken, **STEPS})
    assert await store.knowledge.get("w", PATTERN, ["mine"]) == []
    assert await last_report(store) is None
    await keeper.close()


@pytest.mark.real
def test_a_folder_without_a_store_is_a_clear_error(tmp_path: Path) -> None:
    """Nothing is made where somebody mistyped a name."""
    status, out, err = finished("nightly", "--data-dir", str(tmp_path / "nowhere"))
    assert (status, out) == (1, "")
    assert "there is no store" in err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_again_and_again_until_it_is_stopped(data: str, number: signal.Signals) -> None:
    """A signal in the pause ends it at once and well."""
    process = aftercall("nightly", "--every", "1s", "--json", "--data-dir", data)
    try:
        assert process.stdout is not None
        for _ in range(2):
            NightlyReport.model_validate_json(process.stdout.readline())
    finally:
        process.send_signal(number)
        process.communicate(timeout=200)
    assert process.returncode == 0


@pytest.mark.real
async def test_a_run_that_is_told_to_stop_ends_at_once(store: Store, tmp_path: Path) -> None:
    """Also while it watches whether a holder on another machine lives."""
    assert await store.leases.take_lease(LEASE, "elsewhere/1/x", None) is not None
    process = aftercall(
        "nightly", "--data-dir", str(tmp_path / "data"),
        environ={"AFTERCALL_INDEXING_LEASE_S": "600"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "waiting some 600 s" in await asyncio.to_thread(process.stderr.readline)
        await asyncio.to_thread(eventually, lambda: listens_to_signals(process.pid))
        process.terminate()
        _, err = await asyncio.to_thread(process.communicate, timeout=200)
    finally:
        process.kill()
    assert process.returncode == 143
    assert err.splitlines()[-1] == (
        "aftercall: stopped; what was done holds, and the next run does the rest"
    )


def listens_to_signals(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("24h", 86400), ("1.5d", 129600)])
def test_an_interval_reads_as_people_write_it(text: str, seconds: float) -> None:
    assert command.interval_s(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "0s", "1w", "nan", "9e9h", "1" * 400 + "h"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="24h or 90m"):
        command.interval_s(text)


# The service's own


async def test_a_run_that_is_due_is_started_once(store: Store, tmp_path: Path) -> None:
    """And then not again before the next day."""
    started = asyncio.Queue[int]()

    async def run() -> int:
        await ran(store, timedelta(0))
        started.put_nowait(1)
        return 0

    async with open_nightly(hashing_settings(tmp_path), store, settle=SOON, run=run):
        await asyncio.wait_for(started.get(), 200)
    assert started.empty()


@pytest.mark.parametrize("outcome", [1, OSError("no process")])
async def test_a_run_that_fails_is_logged_and_tried_again(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    outcome: int | OSError,
) -> None:
    """Before the day is over: the task outlives it."""
    monkeypatch.setattr(schedule, "_AGAIN", SOON)
    again = asyncio.Event()
    outcomes: Iterator[int | OSError] = iter([outcome])

    async def run() -> int:
        now = next(outcomes, None)
        if now is None:
            again.set()
            return schedule.BUSY
        if isinstance(now, OSError):
            raise now
        return now

    with caplog.at_level(logging.WARNING, logger="service"):
        async with open_nightly(hashing_settings(tmp_path), store, settle=SOON, run=run):
            await asyncio.wait_for(again.wait(), 200)
    assert any("nightly run" in each.message for each in caplog.records)


@pytest.mark.parametrize(
    ("ago", "left"),
    [
        (timedelta(hours=1), timedelta(hours=23)),
        (timedelta(days=30), timedelta(0)),
        (timedelta(days=-30), DAY),  # the clock was set back
    ],
)
async def test_a_restart_neither_repeats_nor_postpones_a_run(
    store: Store, ago: timedelta, left: timedelta
) -> None:
    """What is left of the day since the last one is waited for, never more than a day."""
    await ran(store, ago)
    until = timedelta(seconds=max(0, await schedule._due_in_s(store, DAY)))
    assert left - timedelta(minutes=1) <= until <= left


@pytest.mark.real
async def test_the_process_works_by_the_settings_of_its_service(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On its folder, with its model, whatever the environment says: secrets, lists, objects too."""
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path / "elsewhere"))
    assert await run_process(hashing_settings(tmp_path), "nightly", "--background") == 0
    assert await last_report(store) is not None
    settings = hashing_settings(
        tmp_path,
        mongo={"uri": "mongodb://user:secret@db/?tls=true"},
        privacy={"secret_names": ["pin", "puk"], "allowlists": {"send": ["subject"]}},
        indexing={"here": False},
        nightly={"every_h": 1.5},
    )
    for name, value in environment_of(settings).items():
        monkeypatch.setenv(name, value)
    assert read_settings() == settings


async def test_a_service_that_stops_stops_its_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is gone when the block ends; switched off, there is none."""
    started: list[Any] = []
    is_there = asyncio.Event()
    create: Callable[..., Any] = asyncio.create_subprocess_exec

    async def sleeping(*_: Any, **__: Any) -> Any:
        started.append(await create(sys.executable, "-c", "import time; time.sleep(600)"))
        is_there.set()
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", sleeping)
    async with open_nightly(hashing_settings(tmp_path), store, settle=SOON):
        await asyncio.wait_for(is_there.wait(), 200)
    assert started[0].returncode == -signal.SIGTERM
    tasks = asyncio.all_tasks()
    async with open_nightly(hashing_settings(tmp_path, nightly={"every_h": 0}), store):
        assert asyncio.all_tasks() == tasks
