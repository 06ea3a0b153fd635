"""The arguments of a command line, made from a template and an input: plain functions, no shell.

Seed 002: `"args_template": ["{tool_dir}/translator.py", "{input}"]`. Each item of the template
becomes exactly one argument, whatever the input holds. In an item stand for:

- `{tool_dir}`: the folder of the tools on this machine. What follows it in the item is a path that
  must stay below the folder;
- `{evolved_file}`: the promoted version's file. An item without it that begins with `{tool_dir}/`,
  the first one, is taken for the original's script, and the evolved file stands in its place;
- `{input}`: the whole input, text as it is, anything else as JSON;
- `{name}`: the member `name` of an input that is an object, in the same way.

An argument that begins with what the input says must not begin with a hyphen, or the program would
read it as an option; it is refused, unless the item `--` stands before it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.executors.failures import ToolRefusedError, rejected
from aftercall.json_values import JsonValue
from aftercall.local_files import (
    MissingFileError,
    UnsafePathError,
    check_relative_path,
    resolve_file,
    resolve_path,
)

MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""Most bytes of one argument that Linux starts a program with (MAX_ARG_STRLEN, with its NUL)."""

MAX_ITEMS = 100
"""Most items of a template."""

DEFAULT_TEMPLATE = ("{evolved_file}", "{input}")
"""For an evolved script whose original's implementation is not known."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
_OF_THIS_MACHINE = ("tool_dir", "evolved_file")


@dataclass(frozen=True, slots=True)
class Places:
    """Where tools lie on this machine: the folder for `{tool_dir}`, the evolved script if any."""

    tool_dir: Path
    evolved_file: Path | None = None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The arguments after the program, and what goes to its standard input, if anything."""

    arguments: tuple[str, ...]
    stdin: bytes | None = None


def read_template(value: JsonValue, *, is_evolved: bool) -> list[str]:
    """The template of an implementation, with the evolved file in the place of the script.

    Raises:
        ToolRefusedError: it is no list of texts, too long, or has no place for the evolved file.
    """
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ToolRefusedError("args_template must be a list of texts, one for each argument")
    if len(value) > MAX_ITEMS:
        raise ToolRefusedError(f"args_template has {len(value)} items; at most {MAX_ITEMS} are run")
    template = [str(item) for item in value]
    mentions = any("{evolved_file}" in item for item in template)
    if not is_evolved and mentions:
        raise ToolRefusedError(
            "args_template names {evolved_file}, but no version is promoted that has a file"
        )
    if is_evolved and not mentions:
        place = next((i for i, x in enumerate(template) if x.startswith("{tool_dir}/")), None)
        if place is None:
            raise ToolRefusedError(
                "args_template has no place for the evolved file: write {evolved_file} where the "
                "script is named, or begin that item with {tool_dir}/"
            )
        template[place] = "{evolved_file}"
    return template


def script_of(item: str, places: Places) -> Path:
    """The script that the first item of a template names.

    Raises:
        ToolRefusedError: it is no script below the folder of the tools, nor the evolved one.
    """
    if item == "{evolved_file}" and places.evolved_file is not None:
        return places.evolved_file
    relative = item.removeprefix("{tool_dir}/")
    if relative == item or _PLACEHOLDER.search(relative):
        raise ToolRefusedError(
            f"the first item of args_template is {item[:200]!r}; it must name the script, as "
            "{tool_dir}/name.py or {evolved_file}, for what stands in a registry may not choose "
            "what an interpreter runs"
        )
    try:
        return resolve_file(places.tool_dir, relative)
    except (MissingFileError, UnsafePathError) as error:
        raise ToolRefusedError(f"the tool's script: {error}") from error


def fill(template: Sequence[str], input_data: JsonValue, places: Places) -> CommandLine:
    """The command line for an input.

    An input that the template names nowhere goes to standard input, as JSON.

    Raises:
        ToolFailedError: the input does not fit the template; nothing ran.
        ToolRefusedError: a path in the template leaves the folder of the tools.
    """
    names = {name for item in template for name in _PLACEHOLDER.findall(item)}
    takes_input = bool(names.difference(_OF_THIS_MACHINE))
    arguments = []
    after_dashes = False
    for item in template:
        arguments.append(_argument(item, input_data, places, may_be_option=after_dashes))
        after_dashes = after_dashes or item == "--"
    if takes_input or input_data is None:
        return CommandLine(tuple(arguments))
    return CommandLine(tuple(arguments), _utf8(_as_json(input_data)))


def _argument(item: str, input_data: JsonValue, places: Places, *, may_be_option: bool) -> str:
    folder, _, path = item.partition("{tool_dir}")
    if folder != item and path:
        argument = _substituted(folder, input_data, places) + _below(path, input_data, places)
    else:
        argument = _substituted(item, input_data, places)
    first = _PLACEHOLDER.match(item)
    from_input = first is not None and first[1] not in _OF_THIS_MACHINE
    if from_input and argument.startswith("-") and not may_be_option:
        raise rejected(
            f"the argument {argument[:50]!r} begins with a hyphen and would be read as an option; "
            "put the item `--` before it in args_template, or text before the placeholder"
        )
    if "\0" in argument:
        raise rejected("the input holds a NUL character, which no argument can hold")
    if (size := len(_utf8(argument))) > MAX_ARGUMENT_BYTES:
        raise rejected(
            f"one argument would have {size:,} bytes, at most {MAX_ARGUMENT_BYTES:,} can be given; "
            "leave the input out of args_template and read it from standard input"
        )
    return argument


def _below(path: str, input_data: JsonValue, places: Places) -> str:
    """What follows `{tool_dir}`, as a path that stays below it once links are followed."""
    if not path.startswith("/"):
        raise ToolRefusedError("after {tool_dir} in an item of args_template must come a slash")
    named = _substituted(path[1:], input_data, places)
    try:
        check_relative_path(named)
        return str(resolve_path(places.tool_dir, places.tool_dir / named))
    except UnsafePathError as error:
        if named == path[1:]:
            raise ToolRefusedError(f"args_template: {error}") from error
        raise rejected(f"the input makes a path that is not allowed: {error}") from error


def _substituted(item: str, input_data: JsonValue, places: Places) -> str:
    # One pass: what the input says is never looked through for further placeholders.
    return _PLACEHOLDER.sub(lambda found: _value(found[1], input_data, places), item)


def _value(name: str, input_data: JsonValue, places: Places) -> str:
    if name == "tool_dir":
        return str(places.tool_dir)
    if name == "evolved_file":
        return str(places.evolved_file)
    if name == "input":
        return "" if input_data is None else _as_text(input_data)
    if not isinstance(input_data, dict) or name not in input_data:
        raise rejected(f"the tool needs {name!r} in its input, which must be an object")
    return _as_text(input_data[name])


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise rejected(f"the input cannot be written as JSON: {error}") from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise rejected(f"the input holds what UTF-8 cannot write: {error}") from error
