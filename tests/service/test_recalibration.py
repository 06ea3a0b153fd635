"""Confidence follows what became of suggestions, by itself and in its own workspace only."""

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall.wire import SuggestRequest
from ingest import fitting_process
from ingest.fitting_process import FittingError, FittingProcess
from ingest.recalibration import last_recalibration, recalibrate
from mongo.errors import StoreUnavailableError
from mongo.records import JudgedSuggestion
from mongo.sqlite import open_sqlite_store
from mongo.sqlite.store import SqliteLogStore
from retrieval.confidence import Scaling
from retrieval.memory import Memory
from service import recalibrating as task
from service.recalibrating import recalibrating
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    hashing_settings,
    on_loop,
    running,
)

SOON = timedelta(milliseconds=1)
DAY = timedelta(days=1)
JUDGED = [JudgedSuggestion(0.9, "failure", f"agent-{number % 9}") for number in range(90)]


def question(tool: str) -> dict[str, Any]:
    """A value that the error itself puts right, so that no history is needed."""
    return {
        "execution": {
            "agent": "newcomer",
            "toolName": tool,
            "parameters": {"query": "x", "topK": 50},
            "error": {"message": "Invalid parameter: topK must be <= 10"},
        },
        "annotations": {"readOnlyHint": True},
    }


def best(service: RunningService, tool: str) -> dict[str, Any]:
    """The best suggestion for the question about a tool."""
    suggestion: dict[str, Any] = service.client.post("/suggest", json=question(tool)).json()[
        "suggestions"
    ][0]
    return suggestion


def elsewhere(service: RunningService, tool: str) -> float:
    """The confidence that another workspace gets for the same question."""
    asked = SuggestRequest.model_validate(question(tool))
    answer = on_loop(service, service.services.suggester.suggest("elsewhere", asked))
    return answer.suggestions[0].confidence


def follow(service: RunningService, outcome: str, times: int) -> None:
    """Follow suggestions; half the outcomes are reported, half come with executions."""
    for number in range(times):
        suggestion = best(service, f"followed_{uuid4().hex[:8]}")
        if number % 2:
            report = {"outcome": outcome, "executionId": str(uuid4())}
            path = f"/suggestions/{suggestion['suggestionId']}/outcome"
            assert service.client.post(path, json=report).status_code == 204
        else:
            failed = {"error": {"message": "no"}} if outcome == "failure" else {}
            service.record(
                execution(
                    outcome=outcome, suggestionId=suggestion["suggestionId"],
                    agent=f"agent-{number}", **failed,
                )
            )  # fmt: skip
    eventually(lambda: service.client.get("/status").json()["pendingIndexing"] == 0)


def recalibrated(service: RunningService) -> dict[str, Scaling]:
    """What the nightly run changes."""
    return on_loop(service, recalibrate(service.services.store, service.services.memory))


@pytest.mark.parametrize(("outcome", "direction"), [("failure", -1), ("success", 1)])
def test_outcomes_move_the_confidence_of_their_workspace_and_of_no_other(
    tmp_path: Path, outcome: str, direction: int
) -> None:
    """Down where suggestions failed and up where they held, for tools nobody asked about yet."""
    with running(hashing_settings(tmp_path)) as service:
        follow(service, outcome, 60)
        before, other = best(service, "unseen"), elsewhere(service, "unseen")
        status = service.client.get("/status").json()["calibration"]
        assert status["source"] == "shipped"
        assert (status["outcomes"], status["shift"], status["slope"]) == (0, 0, 1)
        assert set(recalibrated(service)) == {"default"}
        after = best(service, "unseen")
        assert (after["confidence"] - before["confidence"]) * direction > 0
        assert elsewhere(service, "unseen") == other
        status = service.client.get("/status").json()["calibration"]
        assert (status["source"], status["outcomes"]) == ("own", 60)
        assert (status["shift"], status["slope"]) != (0, 1)
        assert datetime.fromisoformat(status["fittedAt"]) <= datetime.now(UTC)
        assert recalibrated(service) == {}


def test_a_confidence_comes_with_its_interval(service: RunningService) -> None:
    """Around it, of probabilities, and not of a single point; none where nothing is calibrated."""
    suggestion = best(service, "interval")
    low, high = suggestion["confidenceInterval"]
    assert 0 <= low < suggestion["confidence"] < high <= 1
    asked = question("interval")
    asked["execution"] |= {"error": {"message": "503 Service Unavailable", "code": 503}}
    waits = service.client.post("/suggest", json=asked).json()["suggestions"]
    assert [each["action"] for each in waits] == ["retry_unchanged"]
    assert [each["confidenceInterval"] for each in waits] == [None]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteLogStore]:
    opened = await open_sqlite_store(tmp_path)
    yield opened
    await opened.close()


async def test_a_store_that_fails_is_asked_again_at_the_next_run(
    store: SqliteLogStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The task outlives it, and the log has it."""
    asked = 0
    asked_again = asyncio.Event()

    async def failing_once() -> list[str]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise StoreUnavailableError("away")
        asked_again.set()
        return []

    monkeypatch.setattr(store, "workspaces_with_outcomes", failing_once)
    with caplog.at_level(logging.WARNING, logger="service"):
        async with recalibrating(store, Memory(store), SOON, settle=SOON):
            await asyncio.wait_for(asked_again.wait(), 20)
    assert [each.message for each in caplog.records] == ["recalibration failed"]


async def test_a_run_that_is_due_is_made_and_remembered(store: SqliteLogStore) -> None:
    """As of now, for the next start to see."""
    assert await last_recalibration(store) is None
    before = datetime.now(UTC)
    await recalibrate(store, Memory(store))
    last = await last_recalibration(store)
    assert last is not None
    assert before <= last <= datetime.now(UTC)


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
    then = datetime.now(UTC) - ago
    await recalibrate(store, Memory(store), clock=lambda: then)
    until = max(timedelta(0), await task._until_due(store, DAY))
    assert left - timedelta(minutes=1) <= until <= left


async def test_a_last_run_that_cannot_be_read_counts_as_none(
    store: SqliteLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """And is told."""
    await store.put_fact("recalibrated", "yesterday")
    with caplog.at_level(logging.WARNING, logger="service"):
        assert await task._until_due(store, DAY) == timedelta(0)
    assert [each.message for each in caplog.records] == ["last recalibration is not known"]


async def test_it_can_be_switched_off(store: SqliteLogStore) -> None:
    """No hours between runs: no runs."""
    tasks = asyncio.all_tasks()
    async with recalibrating(store, Memory(store), timedelta(0)):
        assert asyncio.all_tasks() == tasks


async def test_a_service_that_stops_does_not_wait_for_a_fit(
    store: SqliteLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that fits is gone, and nothing was changed."""
    fitting = asyncio.Event()
    started: list[Process] = []

    async def never_ready() -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import time; time.sleep(600)", stdin=PIPE, stdout=PIPE
        )
        started.append(process)
        fitting.set()
        return process

    async def judged(*_: object) -> list[JudgedSuggestion]:
        return JUDGED

    async def workspaces() -> list[str]:
        return ["default"]

    monkeypatch.setattr(store, "workspaces_with_outcomes", workspaces)
    monkeypatch.setattr(store, "judged_suggestions", judged)
    monkeypatch.setattr(fitting_process, "_start", never_ready)
    memory = Memory(store)
    async with asyncio.timeout(60), recalibrating(store, memory, SOON, settle=SOON):
        await fitting.wait()
    assert [process.returncode is None for process in started] == [False]
    assert (await memory.calibration("default")).scaling == Scaling()
    assert await last_recalibration(store) is None


async def test_a_process_fits_several_workspaces() -> None:
    """One after the other, as the pure function does."""
    async with FittingProcess() as fitting:
        first = await fitting.refit(Scaling(), JUDGED)
        assert first.outcomes == len(JUDGED)
        assert first.score(2.0) < 2.0
        assert await fitting.refit(first, JUDGED) == first


async def test_a_process_that_cannot_be_started_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of our own, for the next run to try again."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with FittingProcess() as fitting:
        with pytest.raises(FittingError, match="no process"):
            await fitting.refit(Scaling(), JUDGED)


async def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for whoever asks again."""

    async def dead() -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", "raise SystemExit(3)", stdin=PIPE, stdout=PIPE
        )

    monkeypatch.setattr(fitting_process, "_start", dead)
    async with FittingProcess() as fitting:
        for _ in range(2):
            with pytest.raises(FittingError):
                await fitting.refit(Scaling(), JUDGED)
