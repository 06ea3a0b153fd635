"""What a table costs while its page is open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.running_service import ROOT

pytestmark = pytest.mark.real

_SCRIPT = """
import gc
from nicegui import Client
from nicegui.observables import ObservableCollection
from nicegui.page import page
from service.dashboard.tables import Column, DataTable

def observed():
    return sum(isinstance(each, ObservableCollection) for each in gc.get_objects())

with Client(page("/one"), request=None):
    columns = [Column("name", "Name", "link", lambda _: "/x"), Column("calls", "Calls", "number")]
    table = DataTable("Tools", columns, "name")
    before = observed()
    table.set([{"name": f"tool {number}", "calls": number} for number in range(1_000)])
    assert observed() - before < 10, observed() - before
    assert table.element.props["rows"][7] == ("tool 7", (("tool 7", "/x"), ("7", None, 7)))
"""


def test_no_cell_of_a_table_is_watched(tmp_path: Path) -> None:
    """NiceGUI watches lists and dictionaries, at some 500 bytes each; a table may have 10,000."""
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'sdk'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
