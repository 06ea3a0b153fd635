"""What was acknowledged survives `kill -9`, exactly once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mongo.sqlite.store import open_sqlite_store
from tests.mongo.sqlite_inside import execute
from tests.mongo.store_samples import WORKSPACE, closing, read_all, scan_all

SCENARIO = Path(__file__).with_name("crash_scenario.py")


def acknowledged_before_kill(data_dir: Path, round_number: int, enough: int) -> list[str]:
    """What a child acknowledged before it was killed in the middle of its work, a line each."""
    with subprocess.Popen(
        [sys.executable, SCENARIO, data_dir, str(round_number)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(enough)]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


@pytest.mark.real
async def test_what_was_acknowledged_survives_sigkill_exactly_once(tmp_path: Path) -> None:
    """After kills under load: all that was acknowledged is there, and learned up to the cursor."""
    lines: list[str] = []
    for round_number in range(3):
        lines += acknowledged_before_kill(tmp_path, round_number, enough=300)
    commands = [line.removeprefix("command ") for line in lines if line.startswith("command ")]
    acknowledged = [line for line in lines if " " not in line]
    assert len(set(acknowledged)) == len(acknowledged) > 500
    assert commands
    async with closing(await open_sqlite_store(tmp_path)) as store:
        events = await read_all(store.events)
        found = {(event.kind, event.id): event for event in events}
        assert len(found) == len(events)
        assert all(("execution", each) in found for each in acknowledged)
        assert all(("tool", each) in found for each in commands)
        # The state of each command came with its event, or neither did.
        latest = {f"t-{int(e.id[3:]) % 7}": e for e in events if e.kind == "tool"}
        state = await store.events.state(WORKSPACE, "tool")
        assert {row.key: (row.data, row.position) for row in state} == {
            key: (event.data, event.position) for key, event in latest.items()
        }
        # Rows, counts and the cursor moved together.
        position = (await store.knowledge.cursors())[WORKSPACE].position
        learned = [event for event in events if event.position <= position]
        rows = await scan_all(store.knowledge, "document", limit=1_000)
        assert {row.key for row in rows} == {event.id for event in learned}
        [counted] = await store.counters.sums(WORKSPACE, ["calls"], since=0, until=9)
        assert counted.number == len(learned) > 0
        counts = (await store.events.heads())[WORKSPACE].counts
        assert sum(counts.values()) == len(events)
    for name in ("aftercall.sqlite3", "generation-1.sqlite3"):
        assert execute(tmp_path, "PRAGMA integrity_check", name=name) == [("ok",)]
