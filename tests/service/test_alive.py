"""Signs of life of processes that listen nowhere."""

import time
from pathlib import Path

import pytest

from service.alive import STALE_S, main, showing_life, silence_s
from tests.service.running_service import eventually


def test_a_process_shows_that_it_lives_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a health check asks, and the answer after an orderly end."""
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path / "data"))
    with showing_life(tmp_path / "data", "worker"):
        eventually(lambda: silence_s(tmp_path / "data", "worker") is not None)
        assert main("worker") == 0
        assert main("nightly") == 1
    assert main("worker") == 1
    assert capsys.readouterr().err.splitlines() == [
        "nightly: no sign of life",
        "worker: no sign of life",
    ]
    assert list((tmp_path / "data").iterdir()) == []


def test_a_process_that_stands_still_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sign of long ago, one of before the last boot, and one that was half written."""
    monkeypatch.setenv("AFTERCALL_DATA_DIR", str(tmp_path))
    file = tmp_path / "worker.alive"
    for sign in (time.monotonic() - STALE_S - 1, time.monotonic() + 1000, ""):
        file.write_text(str(sign))
        assert main("worker") == 1
    assert "no sign of life for 61 s" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """Then nobody can ask, and the work goes on."""
    (tmp_path / "file").write_text("")
    with showing_life(tmp_path / "file", "worker"):
        assert silence_s(tmp_path / "file", "worker") is None
