"""A moment of the soak: two services under load and faults, and every count to the last one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.real
def test_what_was_acknowledged_under_faults_is_there_once(tmp_path: Path) -> None:
    """Kills, pauses, cut connections and a full disk; `make prove` has a minute of it."""
    file = tmp_path / "figures.json"
    options = ["--quick", "--minutes", "0.15", "--every", "1", "--rate", "40", "--model", "hashing"]
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", *options, "--json", file],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sides = json.loads(file.read_text())["sides"]
    assert all(side["events"]["execution"] and side["faults"] for side in sides.values())
    assert sides["killed"]["faults"].get("kill")
