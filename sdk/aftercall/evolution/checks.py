"""A tool's own checks: commands of the local configuration, run on a candidate before it is kept.

Checks run the new code, and that is the only thing that does. **This is no sandbox.** The commands
run as the present user, with the network and every file that the user may read. What there is:

- no shell reads the commands; a new temporary folder is working folder, home and `TMPDIR`, and is
  removed afterwards;
- an environment of `PATH`, `LANG` and those, and of what the configuration adds; nothing inherited;
- a deadline over all commands, after which the whole process group is killed (a child that makes a
  session of its own escapes this), as it is after each command, whatever that left running;
- limits by `ulimit` on processor time, memory, file size and open files, of each process;
- output of which the end is kept.

Those who let strangers' models write tools should run the whole program in a container.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aftercall.background import run_program
from aftercall.errors import ConfigurationError

_KEPT_BYTES = 4_000
"""Of the end of what checks print; a traceback ends there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How a candidate is checked. Comes from the local configuration, never from a registry.

    Args:
        commands: each a program with its arguments. `{file}` in an argument becomes the path of the
            candidate, `{folder}` that of the temporary folder; `{python}` is this interpreter.
        files: files and folders that the checks need; copied next to the candidate.
        env: added to the environment.
        timeout_s: seconds for all commands together.
        cpu_s: processor seconds of each process; None for no limit, as in the three below.
        memory_bytes: address space of each process. Programs such as Node reserve far more than
            they use, and need None.
        file_bytes: largest file that may be written, and most that may be printed.
        open_files: most files that a process may hold open.
    """

    commands: tuple[tuple[str, ...], ...]
    files: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    cpu_s: int | None = 60
    memory_bytes: int | None = 2 * 1024**3
    file_bytes: int | None = 64 * 1024**2
    open_files: int | None = 256

    def __post_init__(self) -> None:
        if not self.commands or not all(command and command[0] for command in self.commands):
            raise ConfigurationError(
                'checks need at least one command, such as ("{python}", "{file}", "--self-test")'
            )
        if self.timeout_s <= 0:
            raise ConfigurationError(f"timeout_s must be more than 0, not {self.timeout_s}")

    def limited(self, command: list[str]) -> list[str]:
        """The command behind the limits of the system; one that is not available is left out."""
        limits = {
            "c": 0,
            "t": self.cpu_s,
            "v": self.memory_bytes and self.memory_bytes // 1024,
            "f": self.file_bytes and self.file_bytes // 512,
            "n": self.open_files,
        }
        taken = "".join(
            f"ulimit -{flag} {most} 2>/dev/null; "
            for flag, most in limits.items()
            if most is not None
        )
        # Not between fork and exec, where a process with threads can deadlock.
        return ["/bin/sh", "-c", f'{taken}unset PWD; exec "$@"', "sh", *command]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What became of the checks. `output` is data from the checked code, and bounded."""

    passed: bool
    why: str
    output: str


def checks_beside(script: Path, **settings: float | None) -> Checks | None:
    """Checks by the file `test_<stem>.py` beside a script, run by pytest; None when there is none.

    The test imports the script by its own name (`import translator`). Looking for it is for the
    local configuration to decide, for it means that a file of this name is run.

    Args:
        script: the tool's original script.
        settings: further arguments of `Checks`, such as `timeout_s`.
    """
    test = script.with_name(f"test_{script.stem}.py")
    if not test.is_file():
        return None
    command = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name)
    return Checks(commands=(command,), files=(test,), **settings)  # type: ignore[arg-type]  # numbers


async def run_checks(checks: Checks, *, file_name: str, code: str) -> CheckReport:
    """Run the checks on a candidate in a folder of their own.

    Args:
        checks: what to run.
        file_name: the candidate's name in the folder: that of the tool's original script, so that
            tests which import it find it.
        code: the candidate. What checks do to its file changes nothing here.

    Raises:
        ConfigurationError: the folder cannot be made, or a file that the checks need is missing.
    """
    deadline = time.monotonic() + checks.timeout_s
    try:
        # Checks may leave folders that cannot be entered; those are left to the system.
        with tempfile.TemporaryDirectory(
            prefix="aftercall-checks-", ignore_cleanup_errors=True
        ) as name:
            file = _prepared(Path(name), checks, file_name, code)
            for command in checks.commands:
                report = await _run(checks, command, file, deadline)
                if not report.passed:
                    return report
    except OSError as error:
        raise ConfigurationError(f"the checks cannot be prepared: {error}") from error
    return CheckReport(passed=True, why="all checks passed", output="")


def _prepared(folder: Path, checks: Checks, file_name: str, code: str) -> Path:
    file = folder.resolve() / file_name
    for needed in checks.files:
        if needed.is_dir():
            shutil.copytree(needed, file.parent / needed.name)
        else:
            shutil.copy2(needed, file.parent / needed.name)
    file.write_text(code, encoding="utf-8", newline="")
    file.chmod(0o700)
    return file


async def _run(
    checks: Checks, command: tuple[str, ...], file: Path, deadline: float
) -> CheckReport:
    folder = str(file.parent)
    words = {"{file}": str(file), "{folder}": folder, "{python}": sys.executable}
    shown = f"the check `{' '.join(command)[:200]}`"
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
        **checks.env,
    }
    finished = await run_program(
        checks.limited([_filled(word, words) for word in command]),
        cwd=file.parent,
        env=env,
        timeout_s=deadline - time.monotonic(),
        kept_bytes=_KEPT_BYTES,
    )
    output = finished.stdout.decode(errors="replace")
    if finished.left_out:
        output = f"[{finished.left_out:,} bytes left out]\n{output}"
    return CheckReport(
        finished.status == 0, f"{shown} {_ending(finished.status, checks.timeout_s)}", output
    )


def _filled(word: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word


def _ending(status: int | None, timeout_s: float) -> str:
    if status is None:
        return f"was not done after {timeout_s:g} s and was killed"
    if status >= 0:
        return f"failed with exit code {status}" if status else "passed"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
