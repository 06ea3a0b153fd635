"""The frame of the command line, to which other distributions add commands.

A command is an object of the form of `Command`, named in the entry point group
`aftercall.commands`. Its module is imported to list it, so heavy imports belong into `run`.
"""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

from aftercall.errors import AftercallError

GROUP = "aftercall.commands"
_GROUPS: Mapping[str, Sequence[str]] = {
    "to try it, and to put it in front of your tools": (
        "demo", "gateway", "install", "uninstall", "bundle", "status",
    ),
    "for agents and their prompts": ("known-tools", "mcp", "tools", "import"),
    "for the makers of tools": ("recommendations", "promotions", "rules"),
    "for who runs a service": (
        "serve", "settings", "keys", "audit", "export", "forget", "nightly", "rebuild", "worker",
    ),
}  # fmt: skip
"""Who needs which command; those of other distributions stand below."""
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand.

    `add_arguments` declares its options, and `run` gives the exit code; an `AftercallError`, whose
    message names what is wrong and the cure, is shown in one line.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def read_name(text: str) -> str:
    """Return an argument that names something; the type of such arguments."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def read_number(
    least: float, most: float, *, whole: bool = True, above: bool = False
) -> Callable[[str], float]:
    """Return the type of arguments that are a number from `least` to `most`.

    It gives an int where `whole`, else a float; `least` itself is no such number if `above`.
    """
    kind = "a whole number" if whole else "a number"
    bounds = f"above {least:,}, at most {most:,}" if above else f"from {least:,} to {most:,}"

    def read(text: str) -> float:
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = math.nan
        if not text.isascii():  # digits of other scripts are a mistake of the keyboard
            number = math.nan
        if not least <= number <= most or (above and number == least):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {kind} {bounds}")
        return number

    return read


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's: 0 done, 1 failed, 130 interrupted.

    `SystemExit` with 2 for a wrong command line, with 0 after `--help` and `--version`.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    found = discover_commands()
    # Only the module of the command that is meant is imported; all of them for the list.
    meant = {words[0]: found[words[0]]} if words and words[0] in found else found
    commands: dict[str, Command] = {}
    for name, entry_point in meant.items():
        try:
            command = entry_point.load()
            command.add_arguments(argparse.ArgumentParser(add_help=False))
            commands[name] = command
        except Exception as problem:  # noqa: BLE001  # another distribution's fault, of any kind
            shown = f"{type(problem).__name__}: {problem}"
            print(f"aftercall: the command {name!r} cannot be loaded: {shown}", file=sys.stderr)
    if meant and not commands:
        return _FAILED
    parser = _make_parser(commands)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return _USAGE
    try:
        return commands[args.command].run(args)
    except AftercallError as error:
        print(f"aftercall: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (`head`, a pager) has gone; Python must not try to flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED


def discover_commands() -> Mapping[str, EntryPoint]:
    """Return the commands of all installed distributions by name, sorted."""
    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry for entry in entries}


def one_line(text: str, most: int = 200) -> str:
    """Text of someone else for a terminal: on one line, without control characters, cut."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else "\ufffd" for char in line)[:most]


def _list_commands(commands: Mapping[str, Command]) -> str:
    """Return the commands by who needs them, one a line."""
    grouped = {name for names in _GROUPS.values() for name in names}
    groups = {**_GROUPS, "others": [name for name in commands if name not in grouped]}
    width = max(map(len, commands), default=0)
    lines = []
    for title, names in groups.items():
        there = [name for name in names if name in commands]
        rows = [f"  {name:<{width}}  {commands[name].help}" for name in there]
        lines += [f"{title}:", *rows, ""] if rows else []
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    known: list[str]

    def error(self, message: str) -> NoReturn:
        words = re.findall(r"(?:choice: '|arguments: )([^\s']+)", message)
        near = [each for word in words for each in get_close_matches(word, self.known, 1)]
        super().error(f"{message}\nDid you mean {near[0]}?" if near else message)


def _make_parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="aftercall",
        description="Aftercall: every tool call teaches the next one.",
        epilog=(
            f"{_list_commands(commands)}\n"
            "`aftercall COMMAND --help` shows the options of a command."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"aftercall {version('aftercall')}")
    added = parser.add_subparsers(
        metavar="COMMAND",
        dest="command",
        title="commands",
        parser_class=argparse.ArgumentParser,
        help="one of those below",
    )
    parser.known = [*commands]
    for name, command in commands.items():
        # argparse reads "%" as the start of a format.
        text = command.help.replace("%", "%%")
        part = added.add_parser(name, description=text)
        command.add_arguments(part)
        parser.known += part._option_string_actions  # noqa: SLF001 - argparse has no other way
    return parser
