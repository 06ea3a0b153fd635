"""A tool's own checks: commands of the local configuration, run on a candidate before it is kept.

Checks run the new code, and that is the only thing that does. **This is no sandbox.** The commands
run as the present user, with the network and every file that the user may read. What there is:

- no shell; a new temporary folder as working folder, home and `TMPDIR`, removed afterwards;
- an environment of `PATH`, `LANG` and those, and of what the configuration adds; nothing inherited;
- a deadline over all commands, after which the whole process group is killed (a child that makes a
  session of its own escapes this), as it is after each command, whatever that left running;
- limits by `setrlimit` on processor time, memory, file size and open files, of each process;
- output that is read to its end and kept in part.

Whoever lets strangers' models write tools should run the whole program in a container.
"""

import asyncio
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from aftercall.errors import ConfigurationError

_LIMITER = Path(__file__).with_name("check_limits.py")
_POLL_S = 0.05
_KEPT = 2_000
"""Bytes kept of the beginning and of the end of what checks print; a traceback ends there."""
_MAX_DRAIN = 64


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
        file_bytes: largest file that may be written.
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
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(_run, checks, file_name, code, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()  # or the commands would go on until their deadline
        await asyncio.wait([work])
        raise


def _run(checks: Checks, file_name: str, code: str, stop: threading.Event) -> CheckReport:
    if sys.platform == "win32":
        raise ConfigurationError("checks need a POSIX system, for its process groups and limits")
    deadline = time.monotonic() + checks.timeout_s
    try:
        # Checks may leave folders that cannot be entered; those are left to the system.
        with tempfile.TemporaryDirectory(
            prefix="aftercall-checks-", ignore_cleanup_errors=True
        ) as name:
            folder = Path(name).resolve()
            file = folder / file_name
            _copy(checks.files, folder)
            file.write_text(code, encoding="utf-8", newline="")
            file.chmod(0o700)
            for command in checks.commands:
                report = _command(checks, command, file, deadline, stop)
                if not report.passed:
                    return report
    except OSError as error:
        raise ConfigurationError(f"the checks cannot be prepared: {error}") from error
    return CheckReport(passed=True, why="all checks passed", output="")


def _copy(files: tuple[Path, ...], folder: Path) -> None:
    for file in files:
        if file.is_dir():
            shutil.copytree(file, folder / file.name)
        else:
            shutil.copy2(file, folder / file.name)


def _command(
    checks: Checks, command: tuple[str, ...], file: Path, deadline: float, stop: threading.Event
) -> CheckReport:
    words = {"{file}": str(file), "{folder}": str(file.parent), "{python}": sys.executable}
    line = [_filled(word, words) for word in command]
    limits = {
        "cpu_s": checks.cpu_s,
        "memory_bytes": checks.memory_bytes,
        "file_bytes": checks.file_bytes,
        "open_files": checks.open_files,
    }
    process = subprocess.Popen(  # noqa: S603  # a command of the local configuration, no shell
        [sys.executable, "-I", "-S", str(_LIMITER), json.dumps(limits), *line],
        cwd=file.parent,
        env=_environment(checks, file.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept = _Kept()
    with process:  # closes the pipe
        assert process.stdout is not None  # noqa: S101  # asked for above
        try:
            ended = _watch(process, process.stdout, kept, deadline, stop)
        finally:
            _kill_group(process)
            process.wait()
        _drain(process.stdout, kept)
    output = kept.text()
    shown = " ".join(command)[:200]
    if not ended:
        why = f"the check `{shown}` was not done after {checks.timeout_s:g} s and was killed"
        return CheckReport(passed=False, why=why, output=output)
    if process.returncode:
        return CheckReport(
            passed=False, why=f"the check `{shown}` {_ending(process.returncode)}", output=output
        )
    return CheckReport(passed=True, why="passed", output=output)


def _filled(word: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word


def _environment(checks: Checks, folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        **checks.env,
    }


def _watch(
    process: "subprocess.Popen[bytes]",
    pipe: IO[bytes],
    kept: "_Kept",
    deadline: float,
    stop: threading.Event,
) -> bool:
    """Read what a process prints until it ends; False when it must be ended.

    Its end is asked for, not the pipe's: a child in the background may hold the pipe for ever.
    """
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not stop.is_set() and (left_s := deadline - time.monotonic()) > 0:
            if process.poll() is not None:
                return True
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(_POLL_S, left_s))
            elif selector.select(min(_POLL_S, left_s)) and not kept.read(pipe):
                selector.unregister(pipe)
    return False


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    # The group outlives its leader while a child is left in it. PermissionError: what is left of it
    # is not ours (a set-uid program), or, on macOS, only zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _drain(pipe: IO[bytes], kept: "_Kept") -> None:
    """Read what is still in the pipe, which an escaped child may go on filling."""
    with suppress(BlockingIOError):
        for _ in range(_MAX_DRAIN):
            if not kept.read(pipe):
                return


def _ending(code: int) -> str:
    if code > 0:
        return f"failed with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


class _Kept:
    """The beginning and the end of a stream of any length."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._left_out = 0

    def read(self, pipe: IO[bytes]) -> bool:
        """Take what there is; False at the end of the stream."""
        try:
            content = os.read(pipe.fileno(), 65536)
        except BlockingIOError:
            return True
        room = _KEPT - len(self._head)
        self._head += content[:room]
        tail = self._tail + content[room:] if room > 0 else self._tail + content
        self._left_out += max(0, len(tail) - _KEPT)
        self._tail = tail[-_KEPT:]
        return bool(content)

    def text(self) -> str:
        left_out = f"\n[{self._left_out:,} bytes left out]\n" if self._left_out else ""
        head = self._head.decode(errors="replace")
        return head + left_out + self._tail.decode(errors="replace")
