"""What was acknowledged survives `kill -9`, exactly once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mongo.sqlite import open_sqlite_store
from tests.mongo.log_store_samples import WORKSPACE
from tests.mongo.sqlite_inside import execute

SCENARIO = Path(__file__).with_name("crash_scenario.py")


def acknowledged_before_kill(data_dir: Path, round_number: int, enough: int) -> list[str]:
    """The ids that a child acknowledged before it was killed in the middle of its work."""
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
async def test_every_acknowledged_execution_survives_sigkill_exactly_once(tmp_path: Path) -> None:
    """After kills under load: all acknowledged are there, none doubled, the queue consistent."""
    acknowledged: list[str] = []
    for round_number in range(3):
        acknowledged += acknowledged_before_kill(tmp_path, round_number, enough=300)
    assert len(set(acknowledged)) == len(acknowledged) >= 900
    async with await open_sqlite_store(tmp_path) as store:
        found = await store.get_executions(WORKSPACE, acknowledged)
        assert [each.execution.execution_id for each in found] == acknowledged
        assert len({each.position for each in found}) == len(acknowledged)
        counts = await store.counts()
        # Each document stands for one indexed execution: both were written, or neither.
        assert counts.documents == counts.executions - counts.pending > 0
    assert execute(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    (stored,) = execute(
        tmp_path,
        "SELECT count(*), count(DISTINCT execution_id), (SELECT count(*) FROM pending), "
        "(SELECT count(*) FROM documents) FROM executions",
    )
    assert stored == (counts.executions, counts.executions, counts.pending, counts.documents)
