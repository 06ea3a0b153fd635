"""What the session itself knows of a failure of a coding agent's own tool. Pure.

A file that was not read is to be read first; a text that is not in its file has a near one that the
session saw; a path that is missing has a near one that a listing showed; an option has a help text
that the session read. What the session did not show is not guessed at: then it is said where to
look. All of it is advice.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from rapidfuzz import fuzz

from aftercall.json_values import JsonObject, quoted
from service.hooks.clients import HookClient, Role
from service.hooks.events import HookCall

AdviceKind = Literal[
    "read_first", "near_text", "near_path", "options", "program", "other_tool", "folder"
]
_MAX_TEXT = 20_000
"""Characters of an error, or of one result, that are looked at."""
_MAX_SHOWN = 700
_MAX_PATHS = 20_000
_NEAR_NAME = 74.0
"""Ratio (0 to 100) of names from which on one passes for a slip of the other: `confg.py` and
`config.py` have 93, `note.txt` and `notes.txt` 94, `main.py` and `utils.py` 57."""
_NEAR_TEXT = 60.0
_NEAR_OPTION = 60.0
_PATH = re.compile(
    r"(?<![\w:/.-])(?:\.{0,2}/)?(?:[\w@+.-]+/)*[\w@+-][\w@+.-]*(?:\.\w+|/)?(?![\w/])"
)
_LINE_NUMBER = re.compile(r"^ *(?:\d+[→\t]|L?\d+ ?[|:-] ?)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z0-9][\w-]*")
_WORD = re.compile(r"[\w./@+-]+")
_IS_PATH = re.compile(r"/|\w\.\w")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Delete) File: (.+)$", re.MULTILINE)
_MISSED = re.compile(r"expected lines in [^\n]*:\n(.+)", re.DOTALL)
_PROGRAM_BREAK = re.compile(r"&&|\|\||[;|\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """An earlier call of the session, as it was recorded."""

    tool: str
    arguments: JsonObject
    is_own: bool = True
    """Whether it is a tool of the client itself, not of an MCP server."""
    result: str
    """Its text; empty where it has none."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAdvice:
    """What to do about a failure, in words and as data."""

    kind: AdviceKind
    text: str
    tool: str | None = None
    """The tool to call first, or instead."""
    parameters: JsonObject | None = None
    values: tuple[str, ...] = ()
    """Paths, options or a text of which one is meant."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    kind: str
    pattern: re.Pattern[str]


Session: TypeAlias = Sequence[SessionCall]
"""Oldest first."""


@cache
def _sentences() -> tuple[_Sentence, ...]:
    text = (files("service.hooks") / "sentences.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["sentences"]
    return tuple(_Sentence(row["kind"], re.compile(row["pattern"], re.MULTILINE)) for row in rows)


def advise(client: HookClient, call: HookCall, session: Session) -> SessionAdvice | None:
    """Return what the session knows of a failed call; None where it is nothing."""
    if call.role is None or not call.error or call.interrupted or isinstance(call.arguments, str):
        return None
    error = call.error[:_MAX_TEXT]
    known = _Known(client, session)
    for sentence in _sentences():
        match = sentence.pattern.search(error)
        if match is None or (sentence.kind in _OF_FILES and call.is_shell):
            continue
        if sentence.kind in _OF_SHELLS and not call.is_shell:
            continue
        groups = {name: text for name, text in match.groupdict().items() if text}
        advice = _ANSWERS[sentence.kind](known, call, error, groups)
        if advice is not None:
            return advice
    return None


_OF_FILES = frozenset({"unread", "ambiguous", "text", "broken"})
_OF_SHELLS = frozenset({"option", "program"})


class _Known:
    """What a session showed, looked up when it is asked for."""

    def __init__(self, client: HookClient, session: Session) -> None:
        self.client = client
        self.session = session

    def role_of(self, call: SessionCall) -> Role | None:
        return self.client.roles.get(call.tool) if call.is_own else None

    def tool_for(self, *roles: str) -> tuple[str, Role] | None:
        """Return the client's tool for the first of the roles that it has one for."""
        for wanted in roles:
            for name, role in self.client.roles.items():
                if role.role == wanted and name in (self.client.schemas or self.client.roles):
                    return name, role
        return None

    def paths(self) -> Iterator[str]:
        """The paths that worked or that a result showed, the newest first; some come twice."""
        for call in reversed(self.session):
            role = self.role_of(call)
            if call.error is None and role is not None and role.path:
                yield from texts_at(call.arguments, role.path)
            if call.error is None and role is not None and role.role != "fetch":
                yield from _PATH.findall(call.result[:_MAX_TEXT])
            if call.error is None and role is not None and role.role == "shell":
                for command in texts_at(call.arguments, role.command):
                    yield from (word for word in _WORD.findall(command) if _IS_PATH.search(word))

    def texts_of(self, path: str) -> Iterator[str]:
        """What the session saw of a file, the newest first, without line numbers."""
        for call in reversed(self.session):
            role = self.role_of(call)
            if call.error is not None or role is None:
                continue
            if role.role == "shell":
                if any(
                    path.rpartition("/")[2] in c for c in texts_at(call.arguments, role.command)
                ):
                    yield call.result[: 10 * _MAX_TEXT]
            elif role.patch:
                patch = "\n".join(texts_at(call.arguments, role.patch))
                if path in patch:
                    yield "\n".join(line[1:] for line in patch.split("\n") if line[:1] in " +")
            elif role.path and any(
                is_same_path(p, path) for p in texts_at(call.arguments, role.path)
            ):
                yield from texts_at(call.arguments, role.new) if role.new else ()
                if role.role == "read":
                    yield _unnumbered(call.result[: 10 * _MAX_TEXT])


def _unnumbered(text: str) -> str:
    """Return a file's text without the line numbers that a client shows it with."""
    bare, numbered = _LINE_NUMBER.subn("", text)
    return bare if numbered >= text.strip("\n").count("\n") / 2 else text


def texts_at(arguments: object, name: str) -> list[str]:
    """Return the texts under a name, at any depth: of `commands`, each of its list."""
    if isinstance(arguments, dict):
        found = []
        for key, value in arguments.items():
            if key == name and isinstance(value, str):
                found.append(value)
            elif key == name and isinstance(value, list):
                found += [each for each in value if isinstance(each, str)]
            if isinstance(value, dict | list):
                found += texts_at(value, name)
        return found
    if isinstance(arguments, list):
        return [
            text for each in arguments if isinstance(each, dict) for text in texts_at(each, name)
        ]
    return []


def is_same_path(one: str, other: str) -> bool:
    """Return whether two paths are the same, or one is the end of the other."""
    one, other = one.removeprefix("./").rstrip("/"), other.removeprefix("./").rstrip("/")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _path_of(call: HookCall) -> str | None:
    role = call.role
    if role is not None and role.patch:
        patch = "\n".join(texts_at(call.arguments, role.patch))
        match = _PATCHED.search(patch)
        return match[1].strip() if match else None
    found = texts_at(call.arguments, role.path) if role is not None and role.path else []
    return found[0] if found else None


def _old_of(call: HookCall, error: str) -> str | None:
    """Return the text that the call looked for in its file; of a patch, what its client missed."""
    role = call.role
    if role is not None and role.patch:
        missed = _MISSED.search(error)
        return missed[1] if missed else None
    found = texts_at(call.arguments, role.old) if role is not None and role.old else []
    return found[0] if found else None


def _unread(
    known: _Known, call: HookCall, _error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    path, reader = _path_of(call), known.tool_for("read", "shell")
    if path is None or reader is None:
        return None
    name, role = reader
    parameters = _reading(role, path)
    return SessionAdvice(
        kind="read_first",
        text=f"call {name} with {quoted(parameters, 300)} first, then the same call again",
        tool=name,
        parameters=parameters,
    )


def _reading(role: Role, path: str) -> JsonObject:
    """Return the parameters that read a file."""
    if role.call:
        filled: JsonObject = json.loads(json.dumps(role.call).replace('"$path"', json.dumps(path)))
        return filled
    if role.role == "shell":
        return {role.command: f"cat {shlex.quote(path)}"}
    return {role.path: path}


def _text(
    known: _Known, call: HookCall, error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """The near text that the session saw of the file; else: look at the file again."""
    path, wanted = _path_of(call), _old_of(call, error)
    if path is None or not wanted:
        return None
    if (near := nearest_text(wanted, known.texts_of(path))) is None:
        return _unread(known, call, error, groups)
    return SessionAdvice(
        kind="near_text",
        text=f"this session saw in {quoted(path, 200)} a near text, which may be what is meant: "
        f"{quoted(near, _MAX_SHOWN)}",
        values=(near,),
    )


def nearest_text(wanted: str, texts: Iterable[str]) -> str | None:
    """Return the lines of the texts that are likest the wanted ones; the first of equals."""
    lines = wanted.strip("\n").split("\n")
    best, found = _NEAR_TEXT, None
    for text in texts:
        if wanted in text:
            continue  # it was there once, and is there no longer
        of_text = text.split("\n")
        first = next((line.strip() for line in lines if line.strip()), "")
        starts = range(max(1, len(of_text) - len(lines) + 1))
        likely = sorted(starts, key=lambda at: -fuzz.ratio(first, of_text[at].strip()))[:40]
        for at in likely:
            window = "\n".join(of_text[at : at + len(lines)])
            score = fuzz.ratio(wanted[:4_000], window[:4_000])
            if score > best:
                best, found = score, window
        if found is not None and best >= 95:
            break
    return found


def _ambiguous(
    known: _Known, call: HookCall, error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    """The line before each place, which tells them apart."""
    path, wanted = _path_of(call), _old_of(call, error)
    if path is None or not wanted:
        return None
    for text in known.texts_of(path):
        before = [line for line in _lines_before(text, wanted) if line.strip()]
        if len(set(before)) > 1:
            shown = "; ".join(quoted(line.strip(), 120) for line in before[:5])
            return SessionAdvice(
                kind="near_text",
                text="the places differ in the line before them; take one of these along in the "
                f"text to replace: {shown}",
                values=tuple(before[:5]),
            )
    reader = known.tool_for("search", "read")
    if reader is None:
        return None
    return SessionAdvice(
        kind="read_first",
        text=f"look at {quoted(path, 200)} by {reader[0]}, and take along lines around the one "
        "place that is meant",
        tool=reader[0],
        parameters=_reading(reader[1], path) if reader[1].path else None,
    )


def _lines_before(text: str, wanted: str) -> Iterator[str]:
    at = text.find(wanted)
    while at >= 0:
        yield text[:at].rstrip("\n").rpartition("\n")[2]
        at = text.find(wanted, at + max(1, len(wanted)))


def _broken(
    known: _Known, call: HookCall, _error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    shell = known.tool_for("shell")
    if shell is None:
        return None
    return SessionAdvice(
        kind="other_tool",
        text=f"the program behind {call.tool} cannot be started here, whatever the parameters are: "
        f"use {shell[0]} instead (`grep -rn`, `find`), until the client is started again",
        tool=shell[0],
    )


def _path(
    known: _Known, call: HookCall, _error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """The near path that the session saw; else: look at the folder."""
    given = groups.get("path") or _path_of(call)
    if given is None or (call.is_shell and not _is_of_call(call, given)):
        return None
    given = given.rstrip("/.,")
    if (doubled := _doubled(given)) is not None:
        return SessionAdvice(
            kind="folder",
            text=f"the shell stands in {quoted(doubled[0], 200)} already, so that the path names "
            f"{quoted(doubled[1], 200)} twice: leave it out, or go to the folder above first",
            values=doubled,
        )
    near = near_paths(given, known.paths())
    if near:
        shown = " or ".join(quoted(each, 200) for each in near)
        return SessionAdvice(
            kind="near_path",
            text=f"{quoted(given, 200)} is not there; this session saw {shown}",
            values=near,
        )
    return _look_around(known, given)


def _look_around(known: _Known, given: str) -> SessionAdvice | None:
    lister = known.tool_for("list", "shell")
    name = given.rpartition("/")[2]
    if lister is None or not name:
        return None
    tool, role = lister
    parameters: JsonObject | None = None
    if role.role == "shell":
        parameters = {role.command: f"find . -iname '*{name.partition('.')[0]}*'"}
    elif tool.lower() == "glob":
        parameters = {"pattern": f"**/*{name.partition('.')[0]}*"}
    shown = f" with {quoted(parameters, 200)}" if parameters else ""
    return SessionAdvice(
        kind="read_first",
        text=f"{quoted(given, 200)} is not there, and this session saw nothing near it: look for "
        f"it by {tool}{shown}",
        tool=tool,
        parameters=parameters,
    )


def _is_of_call(call: HookCall, path: str) -> bool:
    """Whether a command named the path, or its end; what it met by itself is its own matter."""
    commands = texts_at(call.arguments, call.role.command) if call.role is not None else []
    name = path.rstrip("/").rpartition("/")[2]
    return any(path in command or (len(name) > 2 and name in command) for command in commands)


def _doubled(path: str) -> tuple[str, str] | None:
    """Return the folder and the part that is named twice: `/a/b` and `b` of `/a/b/b`."""
    parts = path.split("/")
    for size in range(len(parts) // 2, 0, -1):
        if parts[-size:] == parts[-2 * size : -size] and (size > 1 or path.startswith("/")):
            return "/".join(parts[:-size]), "/".join(parts[-size:])
    return None


def near_paths(given: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return at most three seen paths that may be meant, the likest first.

    One ends with the given path; has its name in another folder; or has a name and a folder that
    differ by a slip.
    """
    folder, _, name = given.rpartition("/")
    scored: dict[str, float] = {}
    for path, _ in zip(_with_folders(paths), range(_MAX_PATHS), strict=False):
        seen = path.rstrip("/")
        if seen in scored or seen == given or not seen or seen in (".", ".."):
            continue
        seen_folder, _, seen_name = seen.rpartition("/")
        scored[seen] = 0.0
        if seen.endswith(f"/{given.removeprefix('./')}") and "/" in given:
            scored[seen] = 300.0
        elif seen_name == name and not given.endswith(f"/{seen}"):
            scored[seen] = 150.0 + fuzz.ratio(folder, seen_folder) / 2
        elif _suffix(seen_name) == _suffix(name):
            alike = fuzz.ratio(name, seen_name)
            if alike >= _NEAR_NAME and _are_near_folders(folder, seen_folder):
                scored[seen] = alike
    best = sorted((path for path in scored if scored[path]), key=lambda path: -scored[path])
    floor = scored[best[0]] - 25 if best else 0.0
    return tuple(path for path in best[:3] if scored[path] >= floor)


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    """Each path, then the folders that it lies in, from the inside."""
    for path in paths:
        yield path
        folder = path.rstrip("/").rpartition("/")[0]
        while folder.rpartition("/")[0]:
            yield folder
            folder = folder.rpartition("/")[0]


def _are_near_folders(one: str, other: str) -> bool:
    if not one or not other or is_same_path(one, other):
        return True
    return fuzz.ratio(one, other) >= _NEAR_NAME


def _suffix(name: str) -> str:
    return name.rpartition(".")[2] if "." in name else ""


def _option(
    known: _Known, call: HookCall, error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """What the program's help said in the session, or in the error itself; else: ask for it."""
    given = groups["option"]
    commands = texts_at(call.arguments, call.role.command) if call.role is not None else []
    programs = [words for command in commands for words in _programs(command)]
    program = next((words for words in programs if _takes(words, given)), None)
    if program is None:
        return None
    words = " ".join(program[:2] if len(program) > 1 and program[1].isalpha() else program[:1])
    options = _options_in(error) or _help_of(known, program[0])
    options = [each for each in options if each.lstrip("-") != given.lstrip("-")]
    near = sorted(options, key=lambda each: -fuzz.ratio(given, each))
    if not near:
        return SessionAdvice(
            kind="options",
            text=f"{quoted(words, 60)} has no {quoted(given, 60)}: leave it out, or see "
            f"{quoted(words + ' --help', 60)}",
            values=("",),
        )
    best = [each for each in near if fuzz.ratio(given, each) >= _NEAR_OPTION][:2]
    shown = ", ".join(quoted(each, 40) for each in (best or near)[:12])
    said = "the near one" if best else "it takes"
    return SessionAdvice(
        kind="options",
        text=f"{quoted(words, 60)} has no {quoted(given, 60)}; by its own help, {said}: {shown}",
        values=tuple((best or near)[:12]),
    )


def _programs(command: str) -> list[list[str]]:
    """Return the words of each simple command of a shell line."""
    return [words for part in _PROGRAM_BREAK.split(command) if (words := part.split())]


def _takes(words: list[str], option: str) -> bool:
    return any(option in word for word in words[1:])


def _options_in(text: str) -> list[str]:
    if not re.search(r"(?im)^\s*(?:usage|flags|options)\b|usage:", text):
        return []
    return list(dict.fromkeys(_OPTION.findall(text)))


def _help_of(known: _Known, program: str) -> list[str]:
    for call in reversed(known.session):
        role = known.role_of(call)
        if role is None or role.role != "shell":
            continue
        commands = texts_at(call.arguments, role.command)
        if not any(words[0] == program for c in commands for words in _programs(c)):
            continue
        if options := _options_in((call.result or call.error or "")[:_MAX_TEXT]):
            return options
    return []


def _program(
    known: _Known, _call: HookCall, _error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """A near program that ran in the session."""
    given = groups.get("program") or groups["program2"]
    ran = {
        words[0]: None
        for each in known.session
        if each.error is None and (role := known.role_of(each)) and role.role == "shell"
        for command in texts_at(each.arguments, role.command)
        for words in _programs(command)
    }
    near = [each for each in ran if each != given and _is_near_program(given, each)]
    if not near:
        return None
    return SessionAdvice(
        kind="program",
        text=f"{quoted(given, 60)} is not installed; {quoted(near[-1], 60)} ran in this session",
        values=(near[-1],),
    )


def _is_near_program(given: str, other: str) -> bool:
    return other.rstrip("0123456789.") == given or fuzz.ratio(given, other) >= 80


_ANSWERS = {
    "unread": _unread,
    "text": _text,
    "ambiguous": _ambiguous,
    "broken": _broken,
    "path": _path,
    "option": _option,
    "program": _program,
}
