"""Advice from the session itself about a failure of a coding agent's own tool. Pure.

A file that was not read is to be read first; a text that is not in its file has a near one that the
session saw; a path that is missing has a near one that a listing showed; an option has a help text
that the session read. Nothing is guessed that the session did not show: then the advice is where to
look.
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
    SessionView,
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
    """Advice about a failure, in words and as data."""

    kind: AdviceKind
    text: str
    tool: str | None = None
    """The tool to call first, or instead."""
    parameters: JsonObject | None = None
    values: tuple[str, ...] = ()
    """Paths, options or texts; one of them is meant."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    kind: str
    pattern: re.Pattern[str]


@cache
def _read_sentences() -> tuple[_Sentence, ...]:
    text = (files("service.hooks") / "sentences.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["sentences"]
    return tuple(_Sentence(row["kind"], re.compile(row["pattern"], re.MULTILINE)) for row in rows)


def advise_session(client: HookClient, call: HookCall, session: Session) -> SessionAdvice | None:
    """Return the session's advice about a failed call; None if it has none."""
    if call.role is None or not call.error or call.interrupted or isinstance(call.arguments, str):
        return None
    error = call.error[:MAX_TEXT]
    known = SessionView(client, session)
    for sentence in _read_sentences():
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
    """Return the text that the call looked for in its file; for a patch, the missed text."""
    role = call.role
    if role is not None and role.patch:
        missed = _MISSED.search(error)
        return missed[1] if missed else None
    found = texts_at(call.arguments, role.old) if role is not None and role.old else []
    return found[0] if found else None


def _advise_reading(
    known: SessionView, call: HookCall, _error: str, _groups: dict[str, str]
) -> SessionAdvice | None:
    path, reader = _path_of(call), known.tool_for("read", "shell")
    if path is None or reader is None:
        return None
    name, role = reader
    parameters = _reading_call(role, path)
    return SessionAdvice(
        kind="read_first",
        text=f"call {name} with {quote_text(parameters, 300)} first, then the same call again",
        tool=name,
        parameters=parameters,
    )


def _reading_call(role: Role, path: str) -> JsonObject:
    """Return the parameters that read a file."""
    if role.call:
        filled: JsonObject = json.loads(json.dumps(role.call).replace('"$path"', json.dumps(path)))
        return filled
    if role.role == "shell":
        return {role.command: f"cat {shlex.quote(path)}"}
    return {role.path: path}


def _advise_text(
    known: SessionView, call: HookCall, error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return the near text that the session saw of the file; else the advice to read it again."""
    path, wanted = _path_of(call), _old_of(call, error)
    if path is None or not wanted:
        return None
    if (near := nearest_text(wanted, known.texts_of(path))) is None:
        return _advise_reading(known, call, error, groups)
    return SessionAdvice(
        kind="near_text",
        text=f"this session saw in {quote_text(path, 200)} a near text, which may be what is "
        f"meant: {quote_text(near, _MAX_SHOWN)}",
        values=(near,),
    )


def _advise_place(
    known: SessionView, call: HookCall, error: str, _groups: dict[str, str]
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
        parameters=_reading_call(reader[1], path) if reader[1].path else None,
    )


def _lines_before(text: str, wanted: str) -> Iterator[str]:
    at = text.find(wanted)
    while at >= 0:
        yield text[:at].rstrip("\n").rpartition("\n")[2]
        at = text.find(wanted, at + max(1, len(wanted)))


def _advise_other_tool(
    known: SessionView, call: HookCall, _error: str, _groups: dict[str, str]
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


def _advise_path(
    known: SessionView, call: HookCall, _error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return the near path that the session saw; else the advice to look at the folder."""
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
    near = near_paths(given, known.list_paths())
    if near:
        shown = " or ".join(quote_text(each, 200) for each in near)
        return SessionAdvice(
            kind="near_path",
            text=f"{quote_text(given, 200)} is not there; this session saw {shown}",
            values=near,
        )
    return _look_around(known, given)


def _look_around(known: SessionView, given: str) -> SessionAdvice | None:
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

    Other paths that a command meets are its own matter.
    """
    commands = texts_at(call.arguments, call.role.command) if call.role is not None else []
    name = path.rstrip("/").rpartition("/")[2]
    return any(path in command or (len(name) > 2 and name in command) for command in commands)


def _advise_option(
    known: SessionView, call: HookCall, error: str, groups: dict[str, str]
) -> SessionAdvice | None:
    """Return the options from the program's help in the session, or from the error itself.

    Else the advice is to ask for the help.
    """
    given = groups["option"]
    program = _program_with(call, given)
    if program is None:
        return None
    has_subcommand = len(program) > 1 and program[1].isalpha()
    words = " ".join(program[: 2 if has_subcommand else 1])
    refused = f"{quote_text(words, 60)} has no {quote_text(given, 60)}"
    options = options_in(error) or help_of(known, program[0])
    name = given.lstrip("-")
    others = [each for each in options if each.lstrip("-") != name]
    if not others:
        manual = quote_text(f"{words} --help", 60)
        return SessionAdvice(
            kind="options", text=f"{refused}: leave it out, or see {manual}", values=("",)
        )
    alike = {each: fuzz.ratio(given, each) for each in others}
    near = sorted(others, key=lambda each: -alike[each])
    best = [each for each in near if alike[each] >= _NEAR_OPTION]
    values = best[:2] or near[:12]
    shown = ", ".join(quote_text(each, 40) for each in values)
    what = "the near one" if best else "it takes"
    return SessionAdvice(
        kind="options", text=f"{refused}; by its own help, {what}: {shown}", values=tuple(values)
    )


def _program_with(call: HookCall, option: str) -> list[str] | None:
    """Return the words of the call's first simple command that has an option."""
    if call.role is None:
        return None
    for command in texts_at(call.arguments, call.role.command):
        for words in programs_of(command):
            if _has_option(words, option):
                return words
    return None


def _has_option(words: list[str], option: str) -> bool:
    return any(option in word for word in words[1:])


def _advise_program(
    known: SessionView, _call: HookCall, _error: str, groups: dict[str, str]
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
    "unread": _advise_reading,
    "text": _advise_text,
    "ambiguous": _advise_place,
    "broken": _advise_other_tool,
    "path": _advise_path,
    "option": _advise_option,
    "program": _advise_program,
}
