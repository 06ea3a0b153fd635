"""A night that is killed and started again ends as one that was not."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ingest.nightly.expiry
import ingest.nightly.patterns
import ingest.nightly.statistics
import ingest.nightly.vanished
from ingest.nightly.run import run_night
from mongo.protocol import LogStore
from tests.ingest.nightly_world import NOW, Killed, Killing, a_night, contents, fill, with_store

ROOT = Path(__file__).parents[2]
SCENARIO = Path(__file__).with_name("nightly_scenario.py")


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches in a small store, so that there are many places to be killed at."""
    monkeypatch.setattr(ingest.nightly.statistics, "PAGE", 15)
    monkeypatch.setattr(ingest.nightly.statistics, "_FLUSH", 30)
    monkeypatch.setattr(ingest.nightly.statistics, "_ROWS_AT_ONCE", 20)
    monkeypatch.setattr(ingest.nightly.expiry, "BATCH", 10)
    monkeypatch.setattr(ingest.nightly.patterns, "_PAGE", 50)
    monkeypatch.setattr(ingest.nightly.vanished, "_PAGE", 50)


async def run(store: LogStore) -> None:
    report = await run_night(a_night(store))
    assert report.failed == []


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
async def test_a_night_killed_at_any_call_of_the_store_ends_the_same(
    tmp_path: Path, small_steps: None, before: bool
) -> None:
    """Statistics, patterns, facts, and what has expired: whatever was done, none is done twice."""
    await fill(tmp_path / "filled")
    shutil.copytree(tmp_path / "filled", tmp_path / "whole")
    await with_store(tmp_path / "whole", run)
    expected = contents(tmp_path / "whole")
    at = 0
    while True:
        at += 1
        folder = tmp_path / f"killed-{at}"
        shutil.copytree(tmp_path / "filled", folder)

        async def killed(store: LogStore, at: int = at) -> bool:
            killing: Any = Killing(store, at, before)
            try:
                await run_night(a_night(killing))
            except Killed:
                return True
            return False

        was_killed = await with_store(folder, killed)
        if not was_killed:
            break
        await with_store(folder, run)
        assert contents(folder) == expected, f"killed at call {at}"
        shutil.rmtree(folder)
    assert at > 50


def kill_after(folder: Path, lines: int) -> None:
    """Start a night in a process of its own, and kill it after so many lines."""
    with subprocess.Popen(
        [sys.executable, SCENARIO, folder], stdout=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdout is not None
        seen = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        child.stdout.read()
    assert seen[0] == b"statistics 0\n"
    assert child.returncode in (-signal.SIGKILL, 0)


def finish(folder: Path) -> None:
    """A night in a process of its own, to its end."""
    subprocess.run([sys.executable, SCENARIO, folder], check=True, env=environment())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NIGHTLY_NOW": NOW.isoformat()}


@pytest.mark.real
async def test_a_process_killed_in_the_middle_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    """With SIGKILL, at several places, one after the other on the same store; its lease is free."""
    await fill(tmp_path / "filled")
    shutil.copytree(tmp_path / "filled", tmp_path / "whole")
    await with_store(tmp_path / "whole", run)
    killed = tmp_path / "filled"
    for lines in (3, 9, 14, 20):
        await asyncio.to_thread(kill_after, killed, lines)
    await asyncio.to_thread(finish, killed)
    assert contents(killed) == contents(tmp_path / "whole")
