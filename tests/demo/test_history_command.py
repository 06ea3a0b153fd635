"""`aftercall demo --history`: what it says, refuses and leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from aftercall.cli import main
from service.demo.stage import environment
from tests.service.running_service import execution, finished, hashing_settings, running

_PATIENCE_S = 60


@contextmanager
def playing(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process whose temporary folders lie in `folder`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "aftercall.cli", "demo", "--history", *arguments],
        env={**os.environ, "AFTERCALL_EMBEDDING_MODEL": "hashing", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=_PATIENCE_S)
        if process.stdout:
            process.stdout.close()


@pytest.mark.real
def test_a_history_is_played_and_kept(tmp_path: Path) -> None:
    """The report is shown, and how to see the data again."""
    kept = tmp_path / "kept"
    status, out, err = finished(
        "demo", "--history", "--calls", "8", "--days", "9", "--exit", "--keep", str(kept)
    )
    assert status == 0, err
    for words in ("right at once", "did what was meant", "Tasks that ended well", "34 tools"):
        assert words in out
    assert f"aftercall serve --data-dir {kept / 'data'}" in out
    assert out.count("calls, of about 72") > 1, "no progress where the output is no terminal"
    assert (kept / "data").is_dir()
    assert "patterns" in (kept / "nightly.log").read_text("utf-8")


@pytest.mark.real
def test_the_dashboard_is_served_until_it_is_interrupted(tmp_path: Path) -> None:
    """Its address answers; after Ctrl-C nothing is left, which is said."""
    with playing(tmp_path, "--calls", "5", "--days", "7") as process:
        lines = iter(process.stdout or ())
        address = next(line.strip() for line in lines if line.strip().endswith("/dashboard"))
        status = httpx2.get(address.replace("/dashboard", "/status"), timeout=30).json()
        assert status["executions"] > 20
        process.send_signal(signal.SIGINT)
        rest = "".join(lines)
        assert process.wait(timeout=_PATIENCE_S) == 0
    assert "data are removed" in rest
    assert not list(tmp_path.iterdir())


@pytest.mark.real
def test_an_interruption_in_the_middle_is_clean(tmp_path: Path) -> None:
    """It ends with 130, in words, and leaves neither data nor a service."""
    with playing(tmp_path, "--calls", "2000") as process:
        deadline = time.monotonic() + _PATIENCE_S
        while not list(tmp_path.glob("aftercall-demo-*/data/*")) and time.monotonic() < deadline:
            time.sleep(0.05)  # between two looks
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == 128 + signal.SIGINT
    assert "data are removed" in out
    assert "Traceback" not in out
    assert not list(tmp_path.iterdir())


@pytest.mark.real
def test_a_service_that_holds_calls_is_asked_for(tmp_path: Path) -> None:
    """Made-up calls do not mix with real ones by mistake; who says so may mix them."""
    with running(hashing_settings(tmp_path)) as service:
        asked = ("demo", "--history", "--calls", "3", "--days", "7", "--url", service.url)
        status, out, err = finished(*asked)
        assert (status, "right at once" in out, err) == (0, True, "")
        assert f"{service.url}/dashboard" in out

        service.record(execution())
        held = service.client.get("/status").json()["executions"]
        status, out, err = finished(*asked)
        assert (status, out) == (1, "")
        assert f"holds {held:,} executions" in err
        assert "--yes" in err

        status, _, err = finished(*asked, "--days", "5", "--yes")
        assert status == 1, "another history of the same seed has the same ids"
        assert "choose another --seed" in err

        status, _, err = finished(*asked, "--seed", "8", "--yes")
        assert status == 0, err
        assert service.client.get("/status").json()["executions"] > held


@pytest.mark.real
def test_a_service_that_is_away_is_named() -> None:
    """One line that says where nobody answers."""
    status, out, err = finished("demo", "--history", "--url", "http://127.0.0.1:9")
    assert (status, out) == (1, "")
    assert "127.0.0.1:9" in err
    assert "Traceback" not in err


def test_a_folder_that_holds_something_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The history goes into an empty folder, so that nothing is overwritten."""
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert main(["demo", "--history", "--keep", str(tmp_path)]) == 1
    assert "is not empty; name another folder with --keep" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--days", "3"], "add --history"),
        (["--exit"], "add --history"),
        (["--history", "--yes"], "name it with --url"),
        (["--history", "--url", "http://127.0.0.1:9", "--keep", "x"], "leave out --keep or --url"),
    ],
    ids=["days alone", "exit alone", "yes alone", "keep and url"],
)
def test_options_that_do_not_go_together_are_told(
    arguments: list[str], cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the cure, and nothing is started."""
    assert main(["demo", *arguments]) == 2
    assert cure in capsys.readouterr().err


@pytest.mark.parametrize("words", ["0", "-3", "many", "1e3", "99999999999999", "٣"])
def test_numbers_out_of_bounds_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The bounds stand in the error."""
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--history", f"--calls={words}"])
    assert ended.value.code == 2
    assert "whole number from 1 to 20,000" in capsys.readouterr().err


def test_its_own_service_is_given_no_servers() -> None:
    """Of the environment the model alone counts."""
    ours = {
        "PATH": "/bin",
        "AFTERCALL_MONGO_URI": "mongodb://real/",
        "AFTERCALL_DATA_DIR": "/real",
        "AFTERCALL_EMBEDDING_MODEL": "hashing",
    }
    kept = environment(ours)
    assert set(kept) == {"PATH", "AFTERCALL_EMBEDDING_MODEL"}
