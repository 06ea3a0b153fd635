"""What was acknowledged survives `kill -9`, exactly once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mongo.sqlite import open_sqlite_store
from tests.mongo.log_store_samples import SEARCH, WORKSPACE
from tests.mongo.sqlite_inside import QUEUES, execute

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
    """After kills under load: all acknowledged are there, none doubled, the queue consistent."""
    told: list[str] = []
    for round_number in range(3):
        told += acknowledged_before_kill(tmp_path, round_number, enough=300)
    marked = [line.removeprefix("mark ") for line in told if line.startswith("mark ")]
    said = {line.removeprefix("correction ") for line in told if line.startswith("correction ")}
    acknowledged = [line for line in told if " " not in line]
    assert len(set(acknowledged)) == len(acknowledged) > 500
    async with await open_sqlite_store(tmp_path) as store:
        found = await store.get_executions(WORKSPACE, acknowledged)
        assert [each.execution.execution_id for each in found] == acknowledged
        assert len({each.position for each in found}) == len(acknowledged)
        counts = await store.counts()
        # Each document stands for one indexed execution: both were written, or neither.
        pending = len(await store.pending(WORKSPACE, counts.executions))
        assert counts.documents == counts.executions - pending > 0
        marks = await store.list_marks(SEARCH, 1_000_000)
        assert {each.mark_id for each in marks} >= set(marked)
        assert len(marked) > 0
        # Each mark was counted by the commit that took it off the queue, and by no other.
        waiting = await store.pending_marks(WORKSPACE, len(marks))
        [counted] = await store.get_statistics([SEARCH])
        assert int(counted.data) == len(marks) - len(waiting)
        corrections = await store.list_corrections(WORKSPACE, 1_000_000)
        assert {each.correction_id for each in corrections} >= said
        assert len(said) > 0
        # And each correction by the commit that tied it to its tool.
        untied = await store.pending_corrections(WORKSPACE, len(corrections))
        [healthy] = await store.get_health([SEARCH])
        assert int(healthy.data) == len(corrections) - len(untied)
        tied = await store.list_corrections(WORKSPACE, len(corrections), tool=SEARCH)
        assert len(tied) == int(healthy.data)
        held = await store.get_promotion(WORKSPACE, "search")
        [latest] = await store.promotion_history(WORKSPACE, "search", 1)
        assert held == latest.promoted
    assert execute(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    queues = " + ".join(f"(SELECT count(*) FROM {queue})" for queue in QUEUES)  # noqa: S608
    (stored,) = execute(
        tmp_path,
        f"SELECT count(*), count(DISTINCT execution_id), {queues}, "  # noqa: S608
        "(SELECT count(*) FROM documents) FROM executions",
    )
    assert stored == (counts.executions, counts.executions, counts.pending, counts.documents)
