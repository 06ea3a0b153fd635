"""The nightly run as a command and as a service's own: when it is done, and what it says."""

import argparse
import asyncio
import json
import logging
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingest.nightly.run import REPORT_FACT, STEP_NAMES, NightlyReport, take_night
from mongo.sqlite import FILE_NAME, open_sqlite_store
from mongo.sqlite.store import SqliteLogStore
from service import nightly as schedule
from service.cli.nightly import STEPS, interval_s, steps
from service.environment import environment_of, read_settings
from service.nightly import nightly, run_process
from tests.ingest.nightly_world import facts
from tests.service.running_service import (
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
async def store(tmp_path: Path) -> AsyncIterator[SqliteLogStore]:
    opened = await open_sqlite_store(tmp_path / "data")
    yield opened
    await opened.close()


async def ran(store: SqliteLogStore, ago: timedelta) -> None:
    report = NightlyReport(started_at=datetime.now(UTC) - ago, seconds=1)
    await store.put_fact(REPORT_FACT, report.model_dump_json())


def filled(folder: Path) -> Path:
    """A data folder with something learned in it."""
    settings = hashing_settings(folder)
    with running(settings) as service:
        for _ in range(3):
            assert service.record(failure()).status_code == 202
        eventually(lambda: service.client.get("/status").json()["pendingIndexing"] == 0)
    return settings.data.dir


# The command


@pytest.mark.real
def test_the_command_reports_and_ends_well(tmp_path: Path) -> None:
    """For a person, or as JSON; progress goes to stderr."""
    data = filled(tmp_path)
    status, out, err = finished("nightly", "--data-dir", str(data), "--json")
    assert status == 0, err
    report = NightlyReport.model_validate_json(out)
    assert [each.problem for each in report.steps] == [None] * 7
    assert "nightly: patterns" in err
    status, out, _ = finished("nightly", "--data-dir", str(data))
    assert status == 0
    assert "statistics" in out
    assert "executions" in out


@pytest.mark.real
def test_it_runs_beside_the_service_which_sees_what_it_made(tmp_path: Path) -> None:
    """The folder is the service's own; the run needs neither its lock nor its vectors."""
    settings = hashing_settings(tmp_path)
    with running(settings) as service:
        service.record(failure())
        eventually(lambda: service.client.get("/status").json()["pendingIndexing"] == 0)
        status, _, err = finished("nightly", "--data-dir", str(settings.data.dir))
        assert status == 0, err
        [pattern] = service.client.get("/patterns").json()["patterns"]
        assert pattern["count"] == 1
        assert service.client.get("/stats/usage").json()["computedAt"] is not None


@pytest.mark.real
async def test_the_second_of_two_ends_with_75(tmp_path: Path) -> None:
    """As soon as it has seen that the first one lives."""
    data = await asyncio.to_thread(filled, tmp_path)
    store = await open_sqlite_store(data)
    keeper = await take_night(store, ttl=3.0)
    status, out, err = await asyncio.to_thread(finished, "nightly", "--data-dir", str(data))
    await keeper.close()
    await store.close()
    assert (status, out) == (75, "")
    assert "another process" in err


@pytest.mark.real
def test_a_failed_step_ends_with_1(tmp_path: Path) -> None:
    """The others are done; the report says which one failed and why."""
    data = filled(tmp_path)
    with sqlite3.connect(data / FILE_NAME) as connection:
        connection.execute("INSERT INTO facts VALUES ('expiring:default', 'no intent')")
    connection.close()
    status, out, _ = finished("nightly", "--data-dir", str(data))
    assert status == 1
    assert out.count("FAILED") == 1


@pytest.mark.real
def test_only_some_steps_are_run_when_it_is_told_so(tmp_path: Path) -> None:
    """In their own order; the night is due all the same, as its report was not kept."""
    data = filled(tmp_path)
    only = ("--only", "expiry,statistics")
    status, out, err = finished("nightly", *only, "--data-dir", str(data), "--json")
    assert status == 0, err
    report = NightlyReport.model_validate_json(out)
    assert [each.name for each in report.steps] == ["statistics", "expiry"]
    assert REPORT_FACT not in facts(data)


def test_a_step_that_is_none_is_refused_with_those_there_are(tmp_path: Path) -> None:
    """Before anything is opened."""
    status, _, err = finished("nightly", "--only", "statistic", "--data-dir", str(tmp_path / "no"))
    assert status == 2
    assert "'statistic' is no step of the nightly run; there are statistics, patterns" in err


def test_the_steps_that_can_be_named_are_those_there_are() -> None:
    """The command names them without importing them."""
    assert STEPS == STEP_NAMES
    assert steps("axes, statistics") == ("axes", "statistics")


@pytest.mark.real
def test_a_folder_without_a_store_is_a_clear_error(tmp_path: Path) -> None:
    """Nothing is made where somebody mistyped a name."""
    status, out, err = finished("nightly", "--data-dir", str(tmp_path / "nowhere"))
    assert (status, out) == (1, "")
    assert "there is no store" in err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_again_and_again_until_it_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    """Also when the store is away at first; a signal in the pause ends it at once and well."""
    data = tmp_path / "data"
    process = aftercall("nightly", "--every", "1s", "--json", "--data-dir", str(data))
    try:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "tried again" in process.stderr.readline()
        filled(tmp_path)
        for _ in range(2):
            NightlyReport.model_validate_json(process.stdout.readline())
    finally:
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.real
async def test_a_run_that_is_told_to_stop_ends_at_once(tmp_path: Path) -> None:
    """Also while it watches whether a holder on another machine lives."""
    data = await asyncio.to_thread(filled, tmp_path)
    store = await open_sqlite_store(data)
    # A holder on another machine: it has to be watched for its whole life.
    assert await store.take_lease("nightly", "elsewhere/1/x", None) is not None
    process = aftercall(
        "nightly", "--data-dir", str(data), environ={"AFTERCALL_INDEXING_LEASE_S": "600"}
    )
    try:
        await asyncio.to_thread(eventually, lambda: listens_to_signals(process.pid))
        process.terminate()
        _, err = await asyncio.to_thread(process.communicate, timeout=10)
    finally:
        process.kill()
        await store.close()
    assert process.returncode == 143
    assert err.splitlines()[-1] == (
        "aftercall: stopped; what was done holds, and the next run does the rest"
    )


def listens_to_signals(pid: int) -> bool:
    """Whether a process has a handler for SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def test_the_help_names_the_exit_codes() -> None:
    status, out, _ = finished("nightly", "--help")
    assert status == 0
    assert "75" in out
    assert "--every" in out
    assert "--only" in out


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("24h", 86400), ("1.5d", 129600)])
def test_an_interval_reads_as_people_write_it(text: str, seconds: float) -> None:
    assert interval_s(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "0s", "1w", "nan", "9e9h", "1" * 400 + "h"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="24h or 90m"):
        interval_s(text)


# The service's own


async def test_a_run_that_is_due_is_started(store: SqliteLogStore, tmp_path: Path) -> None:
    """And then not again before the next day."""
    started = asyncio.Queue[int]()

    async def run() -> int:
        await ran(store, timedelta(0))
        started.put_nowait(1)
        return 0

    async with nightly(hashing_settings(tmp_path), store, settle=SOON, run=run):
        await asyncio.wait_for(started.get(), 20)
    assert started.empty()


async def test_a_run_that_another_service_made_meanwhile_is_not_repeated(
    store: SqliteLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked again before it is started."""
    looks = iter([timedelta(0), DAY])
    looked = asyncio.Event()

    async def until_due(*_: object) -> timedelta:
        left = next(looks, None)
        if left is None:
            looked.set()
            return DAY
        return left

    async def run() -> int:
        raise AssertionError("it was done by another one")

    monkeypatch.setattr(schedule, "_until_due", until_due)
    async with nightly(hashing_settings(tmp_path), store, settle=SOON, run=run):
        await asyncio.wait_for(looked.wait(), 20)


@pytest.mark.parametrize("outcome", [1, OSError("no process")])
async def test_a_run_that_fails_is_told_and_tried_again(
    store: SqliteLogStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    outcome: int | OSError,
) -> None:
    """Before the day is over: the task outlives it."""
    monkeypatch.setattr(schedule, "_AGAIN", SOON)
    again = asyncio.Event()
    runs = 0

    async def run() -> int:
        nonlocal runs
        runs += 1
        if runs > 1:
            again.set()
            return 75
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    with caplog.at_level(logging.WARNING, logger="service"):
        async with nightly(hashing_settings(tmp_path), store, settle=SOON, run=run):
            await asyncio.wait_for(again.wait(), 20)
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
    store: SqliteLogStore, ago: timedelta, left: timedelta
) -> None:
    """What is left of the day since the last one is waited for, never more than a day."""
    await ran(store, ago)
    until = max(timedelta(0), await schedule._until_due(store, DAY))
    assert left - timedelta(minutes=1) <= until <= left


async def test_a_last_run_that_cannot_be_read_counts_as_none(
    store: SqliteLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """And is told."""
    await store.put_fact(REPORT_FACT, "yesterday")
    with caplog.at_level(logging.WARNING, logger="service"):
        assert await schedule._until_due(store, DAY) == timedelta(0)
    assert [each.message for each in caplog.records] == ["the last nightly run is not known"]


async def test_it_can_be_switched_off(store: SqliteLogStore, tmp_path: Path) -> None:
    """No hours between runs: no runs."""
    tasks = asyncio.all_tasks()
    async with nightly(hashing_settings(tmp_path, nightly={"every_h": 0}), store):
        assert asyncio.all_tasks() == tasks


@pytest.mark.real
async def test_the_process_works_beside_the_service_and_by_its_settings(
    store: SqliteLogStore, tmp_path: Path
) -> None:
    """On its folder, with its model, whatever the environment says."""
    assert await run_process(hashing_settings(tmp_path)) == 0
    fact = await store.get_fact(REPORT_FACT)
    assert fact is not None
    assert json.loads(fact)["steps"]


@pytest.mark.real
async def test_a_process_of_some_steps_is_no_night(store: SqliteLogStore, tmp_path: Path) -> None:
    """A service has a long tail counted without postponing the night."""
    assert await run_process(hashing_settings(tmp_path), only=["statistics"]) == 0
    assert await store.get_fact(REPORT_FACT) is None


async def test_a_service_that_stops_stops_its_run(
    store: SqliteLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is gone when the block ends."""
    started: list[Any] = []
    is_there = asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def sleeping(*_: Any, **__: Any) -> Any:
        started.append(await create(sys.executable, "-c", "import time; time.sleep(600)"))
        is_there.set()
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", sleeping)
    async with nightly(hashing_settings(tmp_path), store, settle=SOON):
        await asyncio.wait_for(is_there.wait(), 20)
    assert started[0].returncode == -signal.SIGTERM


def test_a_process_of_our_own_reads_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets, lists and objects too."""
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
