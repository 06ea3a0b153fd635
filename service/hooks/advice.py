"""What the session itself knows of a failure of a coding agent's own tool. Pure.

A file that was not read is to be read first; a text that is not in its file has a near one that the
session saw; a path that is missing has a near one that a listing showed; an option has a help text
that the session read. What the session did not show is not guessed at: then it is stated where to
look. All of it is advice.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from rapidfuzz import fuzz

from aftercall.json_values import JsonObject, quote_text
from service.hooks.clients import HookClient, Role
from service.hooks.events import HookCall
from service.hooks.shown import (
    MAX_TEXT,
    Session,
    Shown,
    doubled_part,
    help_of,
    near_paths,
    nearest_text,
    options_in,
    programs_of,
    texts_at,
)

AdviceKind = Literal[
    "read_first", "near_text", "near_path", "options", "program", "other_tool", "folder"
]
_MAX_SHOWN = 700
_NEAR_OPTION = 60.0
_PATCHED = re.compile(r"^\*\*\* (?:Update|Delete) File: (.+)$", re.MULTILINE)
_MISSED = re.compile(r"expected lines in [^\n]*:\n(.+)", re.DOTALL)


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


@cache
def _sentences() -> tuple[_Sentence, ...]:
    text = (files("service.hooks") / "sentences.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["sentences"]
    return tuple(_Sentence(row["kind"], re.compile(row["pattern"], re.MULTILINE)) for row in rows)


def advise(client: HookClient, call: HookCall, session: Session) -> SessionAdvice | None:
    """Return what the session knows of a failed call; None where it is nothing."""
    if call.role is None or not call.error or call.interrupted or isinstance(call.arguments, str):
        return None
    error = call.error[:MAX_TEXT]
    known = Shown(client, session)
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
    known: Shown, call: HookCall, _error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    path, reader = _path_of(call), known.tool_for("read", "shell")
    if path is None or reader is None:
        return None
    name, role = reader
    parameters = _reading(role, path)
    return SessionAdvice(
        kind="read_first",
        text=f"call {name} with {quote_text(parameters, 300)} first, then the same call again",
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


def _text(known: Shown, call: HookCall, error: str, groups: dict[str, str]) -> SessionAdvice | None:
    """Return the near text that the session saw of the file; else: look at the file again."""
    path, wanted = _path_of(call), _old_of(call, error)
    if path is None or not wanted:
        return None
    if (near := nearest_text(wanted, known.texts_of(path))) is None:
        return _unread(known, call, error, groups)
    return SessionAdvice(
        kind="near_text",
        text=f"this session saw in {quote_text(path, 200)} a near text, which may be what is "
        f"meant: {quote_text(near, _MAX_SHOWN)}",
        values=(near,),
    )


def _ambiguous(
    known: Shown, call: HookCall, error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    """Return the line before each place, which shows them apart."""
    path, wanted = _path_of(call), _old_of(call, error)
    if path is None or not wanted:
        return None
    for text in known.texts_of(path):
        before = [line for line in _lines_before(text, wanted) if line.strip()]
        if len(set(before)) > 1:
            shown = "; ".join(quote_text(line.strip(), 120) for line in before[:5])
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
        text=f"look at {quote_text(path, 200)} by {reader[0]}, and take along lines around the one "
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
    known: Shown, call: HookCall, _error: str, _groups: dict[str, str]
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
    known: Shown, call: HookCall, _error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return the near path that the session saw; else: look at the folder."""
    given = groups.get("path") or _path_of(call)
    if given is None or (call.is_shell and not _is_of_call(call, given)):
        return None
    given = given.rstrip("/.,")
    if (doubled := doubled_part(given)) is not None:
        return SessionAdvice(
            kind="folder",
            text=f"the shell stands in {quote_text(doubled[0], 200)} already, so that the path "
            f"names {quote_text(doubled[1], 200)} twice: leave it out, "
            "or go to the folder above first",
            values=doubled,
        )
    near = near_paths(given, known.paths())
    if near:
        shown = " or ".join(quote_text(each, 200) for each in near)
        return SessionAdvice(
            kind="near_path",
            text=f"{quote_text(given, 200)} is not there; this session saw {shown}",
            values=near,
        )
    return _look_around(known, given)


def _look_around(known: Shown, given: str) -> SessionAdvice | None:
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
    shown = f" with {quote_text(parameters, 200)}" if parameters else ""
    return SessionAdvice(
        kind="read_first",
        text=f"{quote_text(given, 200)} is not there, and this session saw nothing near it: look "
        f"for it by {tool}{shown}",
        tool=tool,
        parameters=parameters,
    )


def _is_of_call(call: HookCall, path: str) -> bool:
    """Return whether a command named the path, or its end.

    What it met by itself is its own matter.
    """
    commands = texts_at(call.arguments, call.role.command) if call.role is not None else []
    name = path.rstrip("/").rpartition("/")[2]
    return any(path in command or (len(name) > 2 and name in command) for command in commands)


def _option(
    known: Shown, call: HookCall, error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return what the program's help stated in the session, or in the error itself.

    Else: ask for it.
    """
    given = groups["option"]
    commands = texts_at(call.arguments, call.role.command) if call.role is not None else []
    programs = [words for command in commands for words in programs_of(command)]
    program = next((words for words in programs if _takes(words, given)), None)
    if program is None:
        return None
    words = " ".join(program[:2] if len(program) > 1 and program[1].isalpha() else program[:1])
    options = options_in(error) or help_of(known, program[0])
    options = [each for each in options if each.lstrip("-") != given.lstrip("-")]
    near = sorted(options, key=lambda each: -fuzz.ratio(given, each))
    if not near:
        return SessionAdvice(
            kind="options",
            text=f"{quote_text(words, 60)} has no {quote_text(given, 60)}: leave it out, or see "
            f"{quote_text(words + ' --help', 60)}",
            values=("",),
        )
    best = [each for each in near if fuzz.ratio(given, each) >= _NEAR_OPTION][:2]
    shown = ", ".join(quote_text(each, 40) for each in (best or near)[:12])
    said = "the near one" if best else "it takes"
    return SessionAdvice(
        kind="options",
        text=f"{quote_text(words, 60)} has no {quote_text(given, 60)}; "
        f"by its own help, {said}: {shown}",
        values=tuple((best or near)[:12]),
    )


def _takes(words: list[str], option: str) -> bool:
    return any(option in word for word in words[1:])


def _program(
    known: Shown, _call: HookCall, _error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return a near program that ran in the session."""
    given = groups.get("program") or groups["program2"]
    ran = {
        words[0]: None
        for each in known.session
        if each.error is None and (role := known.role_of(each)) and role.role == "shell"
        for command in texts_at(each.arguments, role.command)
        for words in programs_of(command)
    }
    near = [each for each in ran if each != given and _is_near_program(given, each)]
    if not near:
        return None
    return SessionAdvice(
        kind="program",
        text=f"{quote_text(given, 60)} is not installed; "
        f"{quote_text(near[-1], 60)} ran in this session",
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
