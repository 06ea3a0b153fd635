"""`aftercall demo --history`: what it says, refuses and leaves behind."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from aftercall.cli import main
from service.demo.stage import demo_environment
from tests.service.running_service import aftercall, finished

_PATIENCE_S = 60


@contextmanager
def playing(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process whose temporary folders lie in `folder`."""
    process = aftercall("demo", "--history", *arguments, environ={"TMPDIR": str(folder)})
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=_PATIENCE_S)


@pytest.mark.real
def test_a_history_is_played() -> None:
    """Its progress and the report are shown."""
    status, out, err = finished("demo", "--history", "--calls", "8", "--days", "9", "--exit")
    assert status == 0, err
    for words in ("right at once", "did what was meant", "34 tools"):
        assert words in out
    assert out.count("calls, of about 72") > 1, "no progress where the output is no terminal"
    assert "ingest failed" not in out


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
        out, err = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == 128 + signal.SIGINT
    assert "data are removed" in out + err
    assert "Traceback" not in out + err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["--days", "3"], "add --history"),
        (["--exit"], "add --history"),
        (["--history", "--svg", "x.svg"], "leave out one of them"),
    ],
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
    kept = demo_environment(ours)
    assert set(kept) == {"PATH", "AFTERCALL_EMBEDDING_MODEL"}
