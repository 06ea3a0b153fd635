"""Tools that are command lines (seed 002), run without a shell.

    {"command": "python", "args_template": ["{tool_dir}/translator.py", "{input}"]}

Such an implementation comes from a registry that others may write, so it only picks among what is
allowed here: `command` is a key of the executor's own table; the first argument must be a script
below the local folder of tools, or the evolved file below the local root, links followed. Needs
POSIX.

Each item of the template becomes exactly one argument, whatever the input holds. In an item stand:

- `{tool_dir}`: the folder of the tools on this machine. Anything that follows it in the item is a
  path that must stay below the folder;
- `{evolved_file}`: the promoted version's file. Without it, the first item that begins with
  `{tool_dir}/` is the original's script, and the evolved file stands in its place;
- `{input}`: the whole input, text as it is, anything else as JSON;
- `{name}`: the member `name` of an input that is an object, in the same way.

An input that the template names nowhere goes to standard input, as JSON. An argument that begins
with a part of the input must not begin with a hyphen, or the program would read it as an option; it
is refused, unless the item `--` stands before it.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.background import Finished, OutputTooLargeError, run_program
from aftercall.errors import ConfigurationError
from aftercall.executors.protocol import (
    DEFAULT_TIMEOUT_S,
    EvolvedFileMissingError,
    ExecutorResult,
    ToolRefusedError,
    evolved_file_of,
    implementation_of,
    last_chars,
    rejected_input,
    result_of,
    timed_out,
    tool_title,
)
from aftercall.json_values import JsonObject, JsonValue, clean_text, read_json
from aftercall.models.calls import ExecutionError
from aftercall.models.tools import Tool
from aftercall.outcomes import ToolFailedError, make_error, typed_error_in_text
from aftercall.promotions_file import FilePathError, check_relative_path, resolve_file, resolve_path

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""Of standard output; a tool that writes more fails, for a part of a result is no result."""
_STDERR_CHARS = 4_000
_SCRIPT = "{tool_dir}/"
_EVOLVED = "{evolved_file}"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
_OF_THIS_MACHINE = ("tool_dir", "evolved_file")
_LAST_LINE = re.compile(
    r"(?P<type>[A-Za-z_][\w.]{0,200}(?:Error|Exception|Timeout|Warning)): (?P<message>.*)"
)
"""How Python, and many programs like it, end a report: `IndexError: list index out of range`."""


class CommandExecutor:
    """Runs the command lines of tools whose files lie on this machine.

    The result is what the tool writes to standard output: read as JSON, or else as text without its
    last line end. An exit status other than 0 is a failure, with the end of standard error. The
    JSON of a typed error (`Outcome.to_dict`) is that failure, whatever the exit status.

    Evolved files are relative to `root`, the folder of `.tool_promotions.json`; `{tool_dir}` stands
    for `tool_dir`, or for `root`. `commands` are the interpreters that may be run, by the name that
    an implementation gives: a path, or a name on the PATH that a tool gets. `env` is added to PATH
    and LANG: secrets of this process are none of a tool's business.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        commands: Mapping[str, str | Path],
        tool_dir: Path | str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.root = _resolve_folder("root", root)
        self.tool_dir = self.root if tool_dir is None else _resolve_folder("tool_dir", tool_dir)
        if not commands:
            raise ConfigurationError("no command is allowed; such as {'python': sys.executable}")
        self._commands = {name: str(program) for name, program in commands.items()}
        self._env = {"PATH": os.defpath, "LANG": "C.UTF-8", **(env or {})}

    def fits(self, tool: Tool) -> bool:
        """Return whether the implementation is a command line."""
        return "command" in implementation_of(tool) or evolved_file_of(tool) is not None

    def script_of(self, tool: Tool) -> Path | None:
        """Return the script that the tool runs as it is registered; None when it runs none here."""
        template = implementation_of(tool).get("args_template")
        items = template if isinstance(template, list) else []
        script = next((x for x in items if isinstance(x, str) and x.startswith(_SCRIPT)), None)
        if script is None:
            return None
        try:
            return _resolve_file(self.tool_dir, script.removeprefix(_SCRIPT), "the tool's script")
        except ToolRefusedError:
            return None

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> ExecutorResult:
        """Run the command line of the tool; raises as `Executor.execute`."""
        words, stdin = self._prepare_command(tool, input_data)
        try:
            finished = await run_program(
                words,
                cwd=self.root,
                env=self._env,
                timeout_s=timeout_s,
                stdin=stdin,
                max_stdout_bytes=MAX_OUTPUT_BYTES,
            )
        except OutputTooLargeError as error:
            problem = f"it wrote more than {MAX_OUTPUT_BYTES:,} bytes and was killed"
            raise ToolFailedError(make_error("OutputTooLarge", problem)) from error
        except OSError as error:
            raise ToolRefusedError(
                f"{words[0]} cannot be started: {error.strerror or error}"
            ) from error
        if finished.status is None:
            raise timed_out(timeout_s, "it was killed, and all that it had started")
        if finished.status != 0:
            raise ToolFailedError(_read_failure(finished, finished.status))
        # Reading it would hold up the event loop: a megabyte of numbers takes 0.1 s.
        return await asyncio.to_thread(_read_result, finished)

    def _prepare_command(self, tool: Tool, input_data: JsonValue) -> tuple[list[str], bytes]:
        implementation = implementation_of(tool)
        evolved = evolved_file_of(tool)
        name = implementation.get("command")
        items = implementation.get("args_template")
        if name is None and evolved is not None and evolved.endswith(".py"):
            # Known from the promotions file alone: seed 002 runs it as `python evolved_file`.
            name, items = "python", [_EVOLVED, "{input}"]
        program = self._commands.get(name) if isinstance(name, str) else None
        if program is None:
            allowed = ", ".join(sorted(self._commands))
            raise ToolRefusedError(
                f"the command {str(name)[:100]!r} of the tool {tool_title(tool)} is not allowed "
                f"here; allowed: {allowed}"
            )
        template, file = _read_template(items, is_evolved=evolved is not None), None
        if evolved is not None:
            try:
                file = _resolve_file(
                    self.root, evolved, f"the promoted file of the tool {tool_title(tool)}"
                )
            except ToolRefusedError as error:
                raise EvolvedFileMissingError(error.error.message) from error
        filling = _Filling(input_data, self.tool_dir, file)
        script = str(filling.script_path(template[0] if template else ""))
        template = template[1:]
        return [program, script, *filling.fill_arguments(template)], filling.standard_input(
            template
        )


def _resolve_folder(what: str, path: Path | str) -> Path:
    try:
        folder = Path(path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigurationError(f"{what} is no folder that is there: {error}") from error
    if not folder.is_dir():
        raise ConfigurationError(f"{what} {str(path)!r} is no folder")
    return folder


def _resolve_file(folder: Path, name: str, what: str) -> Path:
    try:
        return resolve_file(folder, name)
    except FilePathError as error:
        raise ToolRefusedError(f"{what}: {error}") from error


def _read_template(value: JsonValue, *, is_evolved: bool) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ToolRefusedError("args_template must be a list of texts, one for each argument")
    template = [str(item) for item in value]
    mentions = any(_EVOLVED in item for item in template)
    if mentions and not is_evolved:
        raise ToolRefusedError(
            "args_template names {evolved_file}, but no version is promoted that has a file"
        )
    if is_evolved and not mentions:
        place = next((i for i, x in enumerate(template) if x.startswith(_SCRIPT)), None)
        if place is None:
            raise ToolRefusedError(
                "args_template has no place for the evolved file: write {evolved_file} where the "
                "script is named, or begin that item with {tool_dir}/"
            )
        template[place] = _EVOLVED
    return template


@dataclass(frozen=True, slots=True)
class _Filling:
    input_data: JsonValue
    tool_dir: Path
    evolved_file: Path | None

    def script_path(self, item: str) -> Path:
        if item == _EVOLVED and self.evolved_file is not None:
            return self.evolved_file
        relative = item.removeprefix(_SCRIPT)
        if relative == item or _PLACEHOLDER.search(relative):
            raise ToolRefusedError(
                f"the first item of args_template is {item[:200]!r}; it must name the script, as "
                "{tool_dir}/name.py or {evolved_file}, for what stands in a registry may not "
                "choose what an interpreter runs"
            )
        return _resolve_file(self.tool_dir, relative, "the tool's script")

    def fill_arguments(self, template: Sequence[str]) -> list[str]:
        dashes = template.index("--") if "--" in template else len(template)
        return [
            self._fill_argument(item, may_be_option=place > dashes)
            for place, item in enumerate(template)
        ]

    def standard_input(self, template: Sequence[str]) -> bytes:
        names = {name for item in template for name in _PLACEHOLDER.findall(item)}
        if self.input_data is None or names.difference(_OF_THIS_MACHINE):
            return b""
        return json.dumps(self.input_data).encode()

    def _fill_argument(self, item: str, *, may_be_option: bool) -> str:
        before, _, path = item.partition("{tool_dir}")
        argument = (
            self._fill_item(before) + self._path_below(path) if path else self._fill_item(item)
        )
        first = _PLACEHOLDER.match(item)
        from_input = first is not None and first[1] not in _OF_THIS_MACHINE
        if from_input and argument.startswith("-") and not may_be_option:
            raise rejected_input(
                f"the argument {argument[:50]!r} begins with a hyphen and would be read as an "
                "option; put the item `--` before it in args_template, or text before the "
                "placeholder"
            )
        if "\0" in argument:
            raise rejected_input("the input holds a NUL character, which no argument can hold")
        return argument

    def _path_below(self, path: str) -> str:
        """Return what follows `{tool_dir}`, as a path that stays below it."""
        if not path.startswith("/"):
            raise ToolRefusedError("after {tool_dir} in an item of args_template must come a slash")
        named = self._fill_item(path[1:])
        try:
            check_relative_path(named)
            return str(resolve_path(self.tool_dir, self.tool_dir / named))
        except FilePathError as error:
            if named == path[1:]:
                raise ToolRefusedError(f"args_template: {error}") from error
            raise rejected_input(f"the input makes a path that is not allowed: {error}") from error

    def _fill_item(self, item: str) -> str:
        # One pass: what the input states is never looked through for further placeholders.
        return _PLACEHOLDER.sub(lambda found: self._input_value(found[1]), item)

    def _input_value(self, name: str) -> str:
        data = self.input_data
        if name in _OF_THIS_MACHINE:
            return str(self.tool_dir if name == "tool_dir" else self.evolved_file)
        if name == "input":
            return "" if data is None else _text_of(data)
        if not isinstance(data, dict) or name not in data:
            raise rejected_input(f"the tool needs {name!r} in its input, which must be an object")
        return _text_of(data[name])


def _text_of(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_result(finished: Finished) -> ExecutorResult:
    """Return what was written, read; ToolFailedError when it is the JSON of a typed error."""
    text = finished.stdout.decode("utf-8", "replace")
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        value = text.removesuffix("\n").removesuffix("\r")
    stderr = last_chars(finished.stderr.decode("utf-8", "replace").strip(), _STDERR_CHARS)
    return result_of(value, {"stderr": clean_text(stderr)} if stderr else {})


def _read_failure(finished: Finished, status: int) -> ExecutionError:
    """Return the typed error on standard output, if it is one; else the end of what was written.

    Of that the last line counts, when it states what kind of error it was.
    """
    stdout = finished.stdout.decode("utf-8", "replace").strip()
    if typed := typed_error_in_text(stdout):
        return typed
    text = finished.stderr.decode("utf-8", "replace").strip() or stdout
    details: JsonObject = {"exitStatus": status, "stderr": last_chars(text, _STDERR_CHARS)}
    if status < 0:
        name = {each.value: each.name for each in signal.Signals}.get(-status, f"signal {-status}")
        return make_error("Killed", f"killed by {name}", code=name, details=details)
    if text and (last := _LAST_LINE.fullmatch(text.splitlines()[-1].strip())):
        return make_error(last[1].rpartition(".")[2], last[2], code=status, details=details)
    shown = last_chars(text, 2_000) or "it wrote nothing"
    return make_error("ExitStatus", f"exit status {status}: {shown}", code=status, details=details)
