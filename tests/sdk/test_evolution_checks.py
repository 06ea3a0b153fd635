"""Accepting code: what must be true of its text, and a tool's own checks with all their limits."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from aftercall.errors import ConfigurationError
from aftercall.evolution import Checks, checks_beside
from aftercall.evolution.checks import (
    MAX_SOURCE_BYTES,
    CheckReport,
    HiddenValues,
    RejectedCodeError,
    accept,
    run_checks,
)
from aftercall.redaction import DEFAULT_REDACTOR

OLD = "def shout(text):\n    return text.upper()\n"
NEW = "def shout(text=''):\n    return text.upper()\n"


def accepted(code: str, language: str = "python") -> str:
    return accept(code, known=(OLD,), language=language)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def shout(:\n", "no Python at line 1"),
        ("return 1\n", "no Python at line 1: 'return' outside function"),
        ("Sure! Here is the code:\n\ndef shout(): ...\n", "no Python at line 1"),
        ("# only a remark\n", "no statement"),
        ("", "no statement"),
        (OLD, "the same as before"),
        ("# better\ndef shout( text ):\n\n    return text.upper()  # loud\n", "the same as before"),
        ("a = 1\0\n", "line 1 holds the unseen character U.0000"),
        ("a = 1\nb = '\u202e'\n", "line 2 holds the unseen character U.202E"),
        ("a = '\ud800'\n", "UTF-8 cannot write"),
        ("a = " + "(" * 5000 + ")" * 5000 + "\n", "no Python|cannot be parsed"),
        ("a = " + "-" * 100_000 + "1\n", "no Python|cannot be parsed"),
        ("a = 1\n" * MAX_SOURCE_BYTES, "bytes; at most"),
        ("# coding: no-such-coding\na = 1\n", "no Python"),
    ],
)
def test_code_that_is_not_whole_new_and_readable_is_rejected(code: str, said: str) -> None:
    with pytest.raises(RejectedCodeError, match=said):
        accepted(code)


def test_secrets_of_a_source_are_hidden_and_come_back() -> None:
    """The evolver never sees them."""
    secret = "ghp_" + "a1B2c3D4e5" * 4
    source = (
        f'import os\nAPI = "{secret}"\ntoken = os.getenv("TOKEN_NAME")\n# password: hunter22x\n'
    )
    hidden = HiddenValues(source, DEFAULT_REDACTOR)
    assert secret not in hidden.source
    assert "hunter22x" not in hidden.source
    assert hidden.restore(hidden.source) == source
    assert hidden.restore(hidden.source + "more = 1\n") == source + "more = 1\n"
    assert secret not in hidden.hide(f"it printed {secret}!")
    with pytest.raises(RejectedCodeError, match="stands for nothing"):
        hidden.restore('x = "[redacted:source:99]"')


async def run(script: str, *, code: str = NEW, **settings: object) -> CheckReport:
    """Check `code` by a Python program."""
    checks = Checks(commands=(("{python}", "-c", script, "{file}"),), **settings)  # type: ignore[arg-type]
    return await run_checks(checks, file_name="shout.py", code=code)


def gone(pid: int) -> bool:
    """Whether a process has ended; waits for the system to notice, for 10 seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False


async def test_checks_see_the_candidate_under_the_scripts_name() -> None:
    """In a folder of its own, which is working folder and home, and is gone afterwards."""
    report = await run(
        "import shout, os, sys; assert shout.shout() == '';"
        "assert sys.argv[1] == os.path.join(os.getcwd(), 'shout.py');"
        "assert os.environ['HOME'] == os.environ['TMPDIR'] == os.getcwd();"
        "print(os.getcwd()); sys.exit(3)"
    )
    assert report.why.endswith("failed with exit code 3")
    assert not os.path.exists(report.output.strip())  # noqa: ASYNC240, PTH110  # of a test


async def test_all_commands_must_pass_in_order() -> None:
    checks = Checks(
        commands=(("true",), ("sh", "-c", "echo second >&2; exit 7"), ("sh", "-c", "echo third"))
    )
    report = await run_checks(checks, file_name="shout.py", code=NEW)
    assert report == CheckReport(
        False, "the check `sh -c echo second >&2; exit 7` failed with exit code 7", "second\n"
    )


async def test_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    report = await run(
        "import os, sys; print(sorted(os.environ)); sys.exit(1)", env={"MODE": "test"}
    )
    names = set(eval(report.output))  # noqa: S307  # a list that the line above printed
    assert names <= {
        "PATH",
        "LANG",
        "LC_CTYPE",
        "HOME",
        "TMPDIR",
        "PYTHONDONTWRITEBYTECODE",
        "MODE",
    }
    assert "MODE" in names


FORK = (
    "import os, subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(child.pid, flush=True)\n"
)


async def test_a_check_that_hangs_is_killed_with_its_children() -> None:
    for seconds in (1.5, 10, 60):
        report = await run(FORK + "time.sleep(600)", timeout_s=seconds)
        assert not report.passed
        assert f"not done after {seconds:g} s and was killed" in report.why
        if report.output:  # else its child was not there yet
            break
    assert gone(int(report.output))


async def test_a_cancelled_evolution_ends_its_checks(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    task = asyncio.create_task(run(script))
    while not mark.exists() or not mark.read_text():  # noqa: ASYNC110  # by another process
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(int(mark.read_text()))


async def test_megabytes_of_output_are_kept_in_part() -> None:
    """The end, and how much is missing."""
    report = await run(
        "import sys; print('begin'); sys.stdout.write('x' * 20_000_000); print('end');"
        "sys.stdout.flush(); sys.exit(1)"
    )
    assert report.output.endswith("end\n")
    assert report.output.startswith("[19,996,010 bytes left out]\n")
    assert len(report.output) < 5000


@pytest.mark.parametrize(
    ("script", "least"),
    [
        ("x = bytearray({})", 2 * 10**8),
        ("open('big', 'wb').truncate({})", 10**6),
        ("fs = [open('/dev/null') for _ in range({})]", 10),
    ],
)
async def test_limits_of_the_system_hold(script: str, least: int) -> None:
    """Memory, file size and open files."""
    memory = 512 * 1024**2
    assert (await run(script.format(least), memory_bytes=memory)).passed
    assert not (await run(script.format(100 * least), memory_bytes=memory)).passed


async def test_files_that_checks_need_come_along(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "case.txt").write_text("loud")
    report = await run(
        "import shout; assert shout.shout(open('data/case.txt').read()) == 'LOUD'",
        files=(tmp_path / "data",),
    )
    assert report.passed
    with pytest.raises(ConfigurationError, match="cannot be prepared"):
        await run("", files=(tmp_path / "none",))


async def test_a_test_file_beside_the_tool_is_run_by_pytest(tmp_path: Path) -> None:
    script = tmp_path / "shout.py"
    script.write_text(OLD)
    assert checks_beside(script) is None
    (tmp_path / "test_shout.py").write_text(
        "import shout\n\ndef test_nothing_is_no_error():\n    assert shout.shout() == ''\n"
    )
    checks = checks_beside(script)
    assert checks is not None
    assert (await run_checks(checks, file_name="shout.py", code=NEW)).passed
    report = await run_checks(checks, file_name="shout.py", code=OLD)
    assert not report.passed
    assert "test_nothing_is_no_error" in report.output


@pytest.mark.parametrize(
    "settings", [{"commands": ()}, {"commands": ((),)}, {"commands": (("true",),), "timeout_s": 0}]
)
def test_checks_that_check_nothing_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Checks(**settings)  # type: ignore[arg-type]
