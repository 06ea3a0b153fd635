"""Tools that are command lines (seed 002), run without a shell.

An implementation is an object such as

    {"command": "python", "args_template": ["{tool_dir}/translator.py", "{input}"]}

It comes from a registry that others may write, so it only picks among what is allowed here:
`command` is a key of the executor's own table, never a path or a name that is looked up; the first
argument must be a script below the local folder of tools, or the evolved file below the local root;
symbolic links are followed before that is checked. Needs POSIX. How arguments are made: see
`aftercall.executors.arguments`.
"""

import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.executors import process
from aftercall.executors.arguments import (
    DEFAULT_TEMPLATE,
    CommandLine,
    Places,
    fill,
    read_template,
    script_of,
)
from aftercall.executors.failures import (
    ToolFailedError,
    ToolRefusedError,
    last_chars,
    timed_out,
    tool_error,
)
from aftercall.executors.process import Finished, Limits, OutputTooLargeError
from aftercall.executors.protocol import (
    DEFAULT_TIMEOUT_S,
    ExecutorResult,
    evolved_file_of,
    implementation_of,
    result_of,
    titled,
)
from aftercall.executors.threads import in_thread
from aftercall.json_values import JsonObject, JsonValue, clean_text
from aftercall.local_files import MissingFileError, UnsafePathError, resolve_file
from aftercall.models.calls import ExecutionError
from aftercall.models.tools import Tool
from aftercall.outcomes import typed_error_in_text

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""Of standard output; a tool that writes more fails, for a part of a result is none."""

MAX_STDERR_BYTES = 64 * 1024
"""Of standard error: its end is kept."""

_LARGE_BYTES = 64 * 1024
"""Of output whose reading would hold up an event loop: a megabyte of numbers takes 0.1 s."""

_MESSAGE_CHARS = 2_000
_STDERR_CHARS = 4_000
_PYTHON_SUFFIX = ".py"
_SCRIPT = "{tool_dir}/"

_LAST_LINE = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200}(?:Error|Exception|Timeout|Warning)): .*")
"""How Python, and many programs like it, end a report: `IndexError: list index out of range`."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program that tools may be run with.

    Args:
        program: its path, or a name that is found on the PATH that the executor gives.
        arguments: always given first.
        runs_scripts: whether its first argument is a script, as an interpreter's is: then a
            template must begin with one below the folder of tools, and can set no option of the
            interpreter. False lets a template begin with anything: only for a program that cannot
            be made to run or overwrite something by its arguments.
    """

    program: str | Path
    arguments: Sequence[str] = ()
    runs_scripts: bool = True


class CommandExecutor:
    """Runs the command lines of tools whose files lie on this machine.

    The result is what the tool writes to standard output: read as JSON, or else as text without its
    last line end. An exit status other than 0 is a failure, told by the end of standard error. The
    JSON of a typed error (`Outcome.to_dict`) is that failure, whatever the exit status.

    Args:
        root: the folder that evolved files are relative to: that of `.tool_promotions.json`.
        tool_dir: the folder that `{tool_dir}` stands for; `root` when None.
        commands: what may be run, by the name that an implementation gives: a program, or a
            `Command`. Nothing else is run.
        cwd: the working folder; `root` when None.
        env: added to the environment, which holds nothing but PATH and LANG otherwise: secrets of
            this process are none of a tool's business.
        max_output_bytes: bound of standard output.

    Raises:
        ConfigurationError: a folder is not there, or no command is allowed.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        commands: Mapping[str, Command | str | Path],
        tool_dir: Path | str | None = None,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> None:
        self._root = _folder("root", root)
        self._tool_dir = self._root if tool_dir is None else _folder("tool_dir", tool_dir)
        self._cwd = self._root if cwd is None else _folder("cwd", cwd)
        if not commands:
            raise ConfigurationError("no command is allowed; such as {'python': sys.executable}")
        self._commands = {
            name: command if isinstance(command, Command) else Command(command)
            for name, command in commands.items()
        }
        self._env = {"PATH": os.defpath, "LANG": "C.UTF-8", **(env or {})}
        self._max_output_bytes = max_output_bytes

    @property
    def root(self) -> Path:
        """The folder that evolved files are relative to."""
        return self._root

    @property
    def tool_dir(self) -> Path:
        """The folder that `{tool_dir}` stands for."""
        return self._tool_dir

    def fits(self, tool: Tool) -> bool:
        """Whether the implementation is a command line."""
        implementation = implementation_of(tool)
        return "command" in implementation or evolved_file_of(tool) is not None

    def script_of(self, tool: Tool) -> Path | None:
        """The script that the tool runs as it is registered; None when it runs none here."""
        template = implementation_of(tool).get("args_template")
        items = template if isinstance(template, list) else []
        script = next((x for x in items if isinstance(x, str) and x.startswith(_SCRIPT)), None)
        if script is None:
            return None
        try:
            return resolve_file(self._tool_dir, script.removeprefix(_SCRIPT))
        except (MissingFileError, UnsafePathError):
            return None

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run the command line of the tool.

        Raises:
            ToolFailedError: it failed, took too long, wrote too much, or the input does not fit.
            ToolRefusedError: the command is not allowed here, or a file is missing or elsewhere.
        """
        command, line = self._prepare(tool, input_data)
        try:
            finished = await process.run(
                [str(command.program), *command.arguments, *line.arguments],
                cwd=self._cwd,
                env=self._env,
                stdin=line.stdin,
                limits=Limits(
                    timeout_s=timeout_s,
                    max_stdout_bytes=self._max_output_bytes,
                    max_stderr_bytes=MAX_STDERR_BYTES,
                ),
            )
        except TimeoutError as error:
            raise timed_out(timeout_s, "it was killed, and all that it had started") from error
        except OutputTooLargeError as error:
            told = f"it wrote more than {self._max_output_bytes:,} bytes and was killed"
            raise ToolFailedError(tool_error("OutputTooLarge", told)) from error
        except OSError as error:
            raise ToolRefusedError(
                f"{command.program} cannot be started: {error.strerror or error}"
            ) from error
        if finished.status != 0:
            raise ToolFailedError(_failure(finished))
        if len(finished.stdout) > _LARGE_BYTES:
            return await in_thread(partial(_result, finished))
        return _result(finished)

    def _prepare(self, tool: Tool, input_data: JsonValue) -> tuple[Command, CommandLine]:
        implementation = implementation_of(tool)
        evolved = evolved_file_of(tool)
        name = implementation.get("command")
        template = implementation.get("args_template")
        if name is None and evolved is not None and evolved.endswith(_PYTHON_SUFFIX):
            # Known from the promotions file alone: seed 002 runs it as `python evolved_file`.
            name, template = "python", list(DEFAULT_TEMPLATE)
        command = self._commands.get(name) if isinstance(name, str) else None
        if command is None:
            allowed = ", ".join(sorted(self._commands))
            raise ToolRefusedError(
                f"the command {str(name)[:100]!r} of the tool {titled(tool)} is not allowed here; "
                f"allowed: {allowed}"
            )
        items = read_template(template, is_evolved=evolved is not None)
        places = Places(self._tool_dir, None if evolved is None else self._evolved(evolved, tool))
        if not command.runs_scripts:
            return command, fill(items, input_data, places)
        script = script_of(items[0] if items else "", places)
        line = fill(items[1:], input_data, places)
        return command, CommandLine((str(script), *line.arguments), line.stdin)

    def _evolved(self, name: str, tool: Tool) -> Path:
        try:
            return resolve_file(self._root, name)
        except (MissingFileError, UnsafePathError) as error:
            raise ToolRefusedError(
                f"the promoted file of the tool {titled(tool)}: {error}"
            ) from error


def _folder(what: str, path: Path | str) -> Path:
    try:
        folder = Path(path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigurationError(f"{what} is no folder that is there: {error}") from error
    if not folder.is_dir():
        raise ConfigurationError(f"{what} {str(path)!r} is no folder")
    return folder


def _result(finished: Finished) -> ExecutorResult:
    """What was written, read.

    Raises:
        ToolFailedError: it is the JSON of a typed error.
    """
    text = finished.stdout.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text.removesuffix("\n").removesuffix("\r")
    return result_of(value, _details(finished))


def _details(finished: Finished) -> JsonObject:
    stderr = finished.stderr.decode("utf-8", "replace").strip()
    return {"stderr": clean_text(last_chars(stderr, _STDERR_CHARS))} if stderr else {}


def _failure(finished: Finished) -> ExecutionError:
    """The typed error on standard output, if it is one; else the end of what was written.

    Of that the last line counts, when it says what kind of error it was.
    """
    if typed := typed_error_in_text(finished.stdout.decode("utf-8", "replace")):
        return typed
    text = finished.stderr.decode("utf-8", "replace").strip()
    text = text or finished.stdout.decode("utf-8", "replace").strip()
    details: JsonObject = {"exitStatus": finished.status, "stderr": last_chars(text, _STDERR_CHARS)}
    if finished.status < 0:
        name = _signal_name(-finished.status)
        return tool_error("Killed", f"killed by {name}", code=name, details=details)
    lines = [line for line in text.splitlines() if line.strip()]
    last = _LAST_LINE.fullmatch(lines[-1].strip()) if lines else None
    if last is not None:
        kind, _, message = last[0].partition(": ")
        kind = kind.rpartition(".")[2]
        return tool_error(kind, message, code=finished.status, details=details)
    said = last_chars(text, _MESSAGE_CHARS) or "it wrote nothing"
    message = f"exit status {finished.status}: {said}"
    return tool_error("ExitStatus", message, code=finished.status, details=details)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
