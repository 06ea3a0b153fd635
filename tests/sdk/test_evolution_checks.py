"""Accepting code: what must be true of its text, and a tool's own checks with all their limits."""

import os
from pathlib import Path

import pytest

from aftercall.errors import ConfigurationError
from aftercall.evolution import Checks, checks_beside
from aftercall.evolution.checks import (
    MAX_SOURCE_BYTES,
    CheckReport,
    HiddenValues,
    RejectedCodeError,
    accept_code,
    run_checks,
)
from aftercall.redaction import DEFAULT_REDACTOR

OLD = "def shout(text):\n    return text.upper()\n"
NEW = "def shout(text=''):\n    return text.upper()\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def shout(:\n", "no Python at line 1"),
        ("return 1\n", "no Python at line 1: 'return' outside function"),
        ("Sure! Here is the code:\n\ndef shout(): ...\n", "no Python at line 1"),
        ("# only a remark\n", "no statement"),
        ("", "no statement"),
        (OLD, "the same as before"),
        ("a = 1\0\n", "no Python"),
        ("a = '\ud800'\n", "UTF-8 cannot write"),
        ("a = " + "(" * 5000 + ")" * 5000 + "\n", "no Python|cannot be parsed"),
        ("a = " + "-" * 100_000 + "1\n", "no Python|cannot be parsed"),
        ("a = 1\n" * MAX_SOURCE_BYTES, "bytes; at most"),
        ("# coding: no-such-coding\na = 1\n", "no Python"),
    ],
)
def test_code_that_is_not_whole_new_and_readable_is_rejected(code: str, said: str) -> None:
    with pytest.raises(RejectedCodeError, match=said):
        accept_code(code, known=(OLD,))


def test_secrets_of_a_source_are_hidden_and_come_back() -> None:
    """The evolver never sees them."""
    secret = "ghp_" + "a1B2c3D4e5" * 4
    source = (
        f'import os\nAPI = "{secret}"\ntoken = os.getenv("TOKEN_NAME")\n# password: hunter22x\n'
    )
    hidden = HiddenValues(source, DEFAULT_REDACTOR)
    assert secret not in hidden.source
    assert "hunter22x" not in hidden.source
    assert hidden.restore_values(hidden.source) == source
    assert hidden.restore_values(hidden.source + "more = 1\n") == source + "more = 1\n"
    assert secret not in hidden.hide_secrets(f"it printed {secret}!")
    with pytest.raises(RejectedCodeError, match="stands for nothing"):
        hidden.restore_values('x = "[redacted:source:99]"')


async def run(script: str, *, code: str = NEW, **settings: object) -> CheckReport:
    """Check `code` by a Python program."""
    checks = Checks(commands=(("{python}", "-c", script, "{file}"),), **settings)  # type: ignore[arg-type]
    return await run_checks(checks, file_name="shout.py", code=code)


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
    report = await run("import os, sys; print(sorted(os.environ)); sys.exit(1)")
    names = set(eval(report.output))  # noqa: S307  # a list that the line above printed
    assert names <= {"PATH", "LANG", "LC_CTYPE", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}


async def test_a_check_that_hangs_is_killed() -> None:
    report = await run("import time; time.sleep(600)", timeout_s=0.5)
    assert not report.passed
    assert "not done after 0.5 s and was killed" in report.why


async def test_megabytes_of_output_are_kept_in_part() -> None:
    """The end, and how much is missing."""
    report = await run(
        "import sys; print('begin'); sys.stdout.write('x' * 20_000_000); print('end');"
        "sys.stdout.flush(); sys.exit(1)"
    )
    assert report.output.endswith("end\n")
    assert report.output.startswith("[19,996,010 bytes left out]\n")
    assert len(report.output) < 5000


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
        "import shout\n\ndef test_a_word():\n    assert shout.shout('a') == 'A'\n\n"
        "def test_nothing_is_no_error():\n    assert shout.shout() == ''\n"
    )
    report = await run_checks(checks_beside(script), file_name="shout.py", code=OLD)
    assert not report.passed
    assert "test_nothing_is_no_error" in report.output
    assert "1 failed, 1 passed" in report.output


@pytest.mark.parametrize("settings", [{"commands": ()}, {"commands": ((),)}])
def test_checks_that_check_nothing_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Checks(**settings)  # type: ignore[arg-type]
