"""What new code must be before it is kept: acceptable as a text, and passed by the tool's checks.

The evolver sees no secret of the source: placeholders stand for them, and the new version gets the
values back. Its code is parsed, compared and never run, but for the tool's own checks: commands of
the local configuration. **They are no sandbox.** The commands run as the present user, with the
network and every file that the user may read. There is:

- a new temporary folder, which is working folder, home and `TMPDIR`, and is removed afterwards;
- an environment of `PATH`, `LANG` and those; nothing inherited;
- a deadline over all commands, after which the whole process group is killed, as it is after each
  (a child that makes a session of its own escapes this).

Those who let other callers' models write tools should run the whole program in a container.
"""

import ast
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.background import run_program
from aftercall.errors import ConfigurationError
from aftercall.json_values import clean_text
from aftercall.redaction import Redactor
from aftercall.secret_forms import mask_secrets

MAX_SOURCE_BYTES = 256 * 1024
"""Largest source of a tool that is evolved or accepted; a model's answer ends long before."""
_PLACEHOLDER = re.compile(r"\[redacted:source:(\d{1,6})\]")
_MIN_ECHO = 6
"""Shortest secret that is looked for in other texts; shorter ones occur in any text by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How a candidate is checked. Comes from the local configuration, never from a registry.

    Each command is a program with its arguments, in which `{file}` becomes the path of the
    candidate, `{folder}` that of the temporary folder, and `{python}` this interpreter. The `files`
    and folders that they need are copied next to it. `timeout_s` is for all together.
    """

    commands: tuple[tuple[str, ...], ...]
    files: tuple[Path, ...] = ()
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.commands or not all(command and command[0] for command in self.commands):
            raise ConfigurationError(
                'checks need at least one command, such as ("{python}", "{file}", "--self-test")'
            )


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What became of the checks. `output` is data from the checked code, and bounded."""

    passed: bool
    why: str
    output: str


def checks_beside(script: Path) -> Checks | None:
    """Checks by the file `test_<stem>.py` next to a script, run by pytest; None without one.

    The test imports the script by its own name (`import translator`). Looking for it is for the
    local configuration to decide, for it means that a file of this name is run.
    """
    if not (test := script.with_name(f"test_{script.stem}.py")).is_file():
        return None
    command = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name)
    return Checks(commands=(command,), files=(test,))


async def run_checks(checks: Checks, *, file_name: str, code: str) -> CheckReport:
    """Run the checks on a candidate in a folder of their own.

    The file is named as the tool's original script, so that tests which import it find it.
    """
    deadline = time.monotonic() + checks.timeout_s
    try:
        # Checks may leave folders that cannot be entered; those are left to the system.
        with tempfile.TemporaryDirectory(
            prefix="aftercall-checks-", ignore_cleanup_errors=True
        ) as name:
            file = _prepare_folder(Path(name), checks, file_name, code)
            for command in checks.commands:
                report = await _run_check(checks, command, file, deadline)
                if not report.passed:
                    return report
    except OSError as error:
        raise ConfigurationError(f"the checks cannot be prepared: {error}") from error
    return CheckReport(passed=True, why="all checks passed", output="")


def _prepare_folder(folder: Path, checks: Checks, file_name: str, code: str) -> Path:
    file = folder.resolve() / file_name
    for needed in checks.files:
        copy = shutil.copytree if needed.is_dir() else shutil.copy2
        copy(needed, file.parent / needed.name)
    file.write_text(code, encoding="utf-8", newline="")
    file.chmod(0o700)
    return file


async def _run_check(
    checks: Checks, command: tuple[str, ...], file: Path, deadline: float
) -> CheckReport:
    folder = str(file.parent)
    finished = await run_program(
        [
            word.replace("{file}", str(file))
            .replace("{folder}", folder)
            .replace("{python}", sys.executable)
            for word in command
        ],
        cwd=file.parent,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": folder,
            "TMPDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        timeout_s=deadline - time.monotonic(),
        kept_bytes=4_000,  # a traceback ends there
    )
    output = finished.stdout.decode(errors="replace")
    if finished.left_out:
        output = f"[{finished.left_out:,} bytes left out]\n{output}"
    if (status := finished.status) is None:
        ending = f"was not done after {checks.timeout_s:g} s and was killed"
    elif status < 0:
        ending = f"was ended by signal {-status} ({signal.strsignal(-status)})"
    else:
        ending = f"failed with exit code {status}" if status else "passed"
    return CheckReport(status == 0, f"the check `{' '.join(command)[:200]}` {ending}", output)


class RejectedCodeError(ValueError):
    """Code that is not accepted; the message states why, for the one who writes it again."""


def accept_code(code: str, *, known: Sequence[str]) -> str:
    r"""Return the code as it is to be written: lines end in `\n`, the last one too.

    It must differ from the `known` sources. It is parsed and compiled; neither runs it.
    """
    clean = _with_plain_ends(code)
    try:
        content = clean.encode()
    except UnicodeEncodeError as error:
        raise RejectedCodeError("the code holds characters that UTF-8 cannot write") from error
    if (size := len(content)) > MAX_SOURCE_BYTES:
        raise RejectedCodeError(f"the code has {size:,} bytes; at most {MAX_SOURCE_BYTES:,}")
    _check_python(content)
    if any(clean == _with_plain_ends(source) for source in known):
        raise RejectedCodeError("the code is the same as before; change what makes it fail")
    return clean


def _with_plain_ends(code: str) -> str:
    return code.replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"


def _check_python(content: bytes) -> None:
    # As bytes, for a coding comment counts when the file is run.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(content)
            compile(content, "<candidate>", "exec", dont_inherit=True)
        except SyntaxError as error:
            where = "" if error.lineno is None else f" at line {error.lineno}"
            raise RejectedCodeError(f"the code is no Python{where}: {error.msg}") from error
        except (RecursionError, MemoryError) as error:
            raise RejectedCodeError(
                f"the code cannot be parsed ({type(error).__name__}); nest it less deeply"
            ) from error
    if not tree.body:
        raise RejectedCodeError("the code holds no statement")


class HiddenValues:
    """The secrets of one source: the evolver sees placeholders, the new version gets the values.

    A placeholder, such as `[redacted:source:2]`, has the form of any masked value, so that nothing
    masks it again.
    """

    def __init__(self, source: str, redactor: Redactor | None) -> None:
        self._values: list[str] = []
        self._redactor = redactor
        self.source = source if redactor is None else mask_secrets(source, self._placeholder_of)

    def hide_secrets(self, text: str) -> str:
        """Any other text, clean, without the secrets of the source and without its own."""
        for number, value in enumerate(self._values):
            if len(value) >= _MIN_ECHO:
                text = text.replace(value, f"[redacted:source:{number}]")
        return clean_text(text if self._redactor is None else self._redactor.text(text))

    def restore_values(self, code: str) -> str:
        """Code with the values in place of their placeholders."""

        def restore_value(match: re.Match[str]) -> str:
            if int(match[1]) >= len(self._values):
                raise RejectedCodeError(f"{match[0]} stands for nothing in the present source")
            return self._values[int(match[1])]

        return code if self._redactor is None else _PLACEHOLDER.sub(restore_value, code)

    def _placeholder_of(self, value: str) -> str:
        if value not in self._values:
            self._values.append(value)
        return f"[redacted:source:{self._values.index(value)}]"
