"""The contents of a coding agent's session: paths, texts of files, options of commands. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from rapidfuzz import fuzz

from aftercall.json_values import JsonObject
from service.hooks.clients import HookClient, Role

MAX_TEXT = 20_000
"""Characters of an error, or of one result, that are looked at."""
_MAX_PATHS = 20_000
_NEAR_NAME = 74.0
"""Ratio (0 to 100) of names from which on one passes for a slip of the other: `confg.py` and
`config.py` have 93, `note.txt` and `notes.txt` 94, `main.py` and `utils.py` 57."""
_NEAR_TEXT = 60.0
_PATH = re.compile(
    r"(?<![\w:/.-])(?:\.{0,2}/)?(?:[\w@+.-]+/)*[\w@+-][\w@+.-]*(?:\.\w+|/)?(?![\w/])"
)
_LINE_NUMBER = re.compile(r"^ *(?:\d+[→\t]|L?\d+ ?[|:-] ?)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z0-9][\w-]*")
_WORD = re.compile(r"[\w./@+-]+")
_IS_PATH = re.compile(r"/|\w\.\w")
_PROGRAM_BREAK = re.compile(r"&&|\|\||[;|\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """An earlier call of the session, as it was recorded."""

    tool: str
    arguments: JsonObject
    is_own: bool = True
    """Whether it is a tool of the client itself, not of an MCP server."""
    result: str
    """Its text; empty where it has none."""
    error: str | None = None


Session: TypeAlias = Sequence[ShownCall]
"""Oldest first."""


class SessionView:
    """The contents of a session, looked up on demand."""

    def __init__(self, client: HookClient, session: Session) -> None:
        self.client = client
        self.session = session

    def role_of(self, call: ShownCall) -> Role | None:
        """Return the purpose of an earlier call's tool, if it is the client's own."""
        return self.client.roles.get(call.tool) if call.is_own else None

    def tool_for(self, *roles: str) -> tuple[str, Role] | None:
        """Return the client's tool for the first of the roles that it has one for."""
        for wanted in roles:
            for name, role in self.client.roles.items():
                if role.role == wanted and name in (self.client.schemas or self.client.roles):
                    return name, role
        return None

    def list_paths(self) -> Iterator[str]:
        """Yield the paths that worked or that a result showed, the newest first.

        Some come twice.
        """
        for call in reversed(self.session):
            role = self.role_of(call)
            if call.error is not None or role is None:
                continue
            if role.path:
                yield from texts_at(call.arguments, role.path)
            if role.role != "fetch":
                yield from _PATH.findall(call.result[:MAX_TEXT])
            if role.role == "shell":
                for command in texts_at(call.arguments, role.command):
                    words: list[str] = _WORD.findall(command)
                    yield from filter(_IS_PATH.search, words)

    def texts_of(self, path: str) -> Iterator[str]:
        """Yield the contents of a file that the session saw, newest first, without line numbers."""
        for call in reversed(self.session):
            role = self.role_of(call)
            if call.error is not None or role is None:
                continue
            result = call.result[: 10 * MAX_TEXT]
            if role.role == "shell":
                name = path.rpartition("/")[2]
                commands = texts_at(call.arguments, role.command)
                if any(name in command for command in commands):
                    yield result
            elif role.patch:
                patch = "\n".join(texts_at(call.arguments, role.patch))
                if path in patch:
                    yield _new_lines(patch)
            elif role.path:
                paths = texts_at(call.arguments, role.path)
                if not any(is_same_path(each, path) for each in paths):
                    continue
                if role.new:
                    yield from texts_at(call.arguments, role.new)
                if role.role == "read":
                    yield _strip_numbers(result)


def _new_lines(patch: str) -> str:
    """Return the lines of a file that a patch leaves or adds."""
    lines = patch.split("\n")
    return "\n".join(line[1:] for line in lines if line[:1] in " +")


def _strip_numbers(text: str) -> str:
    """Return a file's text without the line numbers that a client shows it with."""
    bare, numbered = _LINE_NUMBER.subn("", text)
    breaks = text.strip("\n").count("\n")
    return bare if numbered >= breaks / 2 else text


def texts_at(arguments: object, name: str) -> list[str]:
    """Return the texts under a name, at any depth: of `commands`, each of its list."""
    found: list[str] = []
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            if key == name and isinstance(value, str):
                found.append(value)
            elif key == name and isinstance(value, list):
                found += [each for each in value if isinstance(each, str)]
            if isinstance(value, dict | list):
                found += texts_at(value, name)
    elif isinstance(arguments, list):
        for each in arguments:
            if isinstance(each, dict):
                found += texts_at(each, name)
    return found


def is_same_path(one: str, other: str) -> bool:
    """Return whether two paths are the same, or one is the end of the other."""
    one = one.removeprefix("./").rstrip("/")
    other = other.removeprefix("./").rstrip("/")
    if one == other:
        return True
    return one.endswith(f"/{other}") or other.endswith(f"/{one}")


def nearest_text(wanted: str, texts: Iterable[str]) -> str | None:
    """Return the lines of the texts that are most similar to the wanted ones."""
    lines = wanted.strip("\n").split("\n")
    size = len(lines)
    first = next((line.strip() for line in lines if line.strip()), "")
    best, found = _NEAR_TEXT, None
    for text in texts:
        if wanted in text:
            continue  # the file had it once, and has it no longer
        of_text = text.split("\n")
        alike = [fuzz.ratio(first, line.strip()) for line in of_text]
        starts = range(max(1, len(of_text) - size + 1))
        likely = sorted(starts, key=lambda at: -alike[at])
        for at in likely[:40]:
            window = "\n".join(of_text[at : at + size])
            score = fuzz.ratio(wanted[:4_000], window[:4_000])
            if score > best:
                best, found = score, window
        if found is not None and best >= 95:
            break
    return found


def doubled_part(path: str) -> tuple[str, str] | None:
    """Return the folder and the part that is named twice: `/a/b` and `b` of `/a/b/b`."""
    parts = path.split("/")
    least = 1 if path.startswith("/") else 2
    for size in range(len(parts) // 2, least - 1, -1):
        last = parts[-size:]
        before = parts[-2 * size : -size]
        if last == before:
            return "/".join(parts[:-size]), "/".join(last)
    return None


def near_paths(given: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return at most three seen paths that may be meant, the most similar first.

    A seen path may end with the given path, have its name in another folder, or have a name and a
    folder that differ by a slip.
    """
    scores: dict[str, float] = {}
    for path in islice(_with_folders(paths), _MAX_PATHS):
        seen = path.rstrip("/")
        if seen not in scores and seen not in ("", ".", "..", given):
            scores[seen] = _score_path(given, seen)
    found = [path for path, score in scores.items() if score]
    best = sorted(found, key=lambda path: -scores[path])
    if not best:
        return ()
    floor = scores[best[0]] - 25
    return tuple(path for path in best[:3] if scores[path] >= floor)


def _score_path(given: str, seen: str) -> float:
    """Return how likely a seen path is meant by a given one; 0 if it is not near."""
    folder, _, name = given.rpartition("/")
    seen_folder, _, seen_name = seen.rpartition("/")
    end = given.removeprefix("./")
    if "/" in given and seen.endswith(f"/{end}"):
        return 300.0
    if seen_name == name and not given.endswith(f"/{seen}"):
        return 150.0 + fuzz.ratio(folder, seen_folder) / 2
    if _read_suffix(seen_name) != _read_suffix(name):
        return 0.0
    alike = fuzz.ratio(name, seen_name)
    is_near = alike >= _NEAR_NAME and _are_near_folders(folder, seen_folder)
    return alike if is_near else 0.0


def _with_folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path, then the folders that it lies in, from the inside."""
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


def _read_suffix(name: str) -> str:
    return name.rpartition(".")[2] if "." in name else ""


def programs_of(command: str) -> list[list[str]]:
    """Return the words of each simple command of a shell line."""
    return [words for part in _PROGRAM_BREAK.split(command) if (words := part.split())]


def options_in(text: str) -> list[str]:
    """Return the options that a help text names; none if the text is no help."""
    if not re.search(r"(?im)^\s*(?:usage|flags|options)\b|usage:", text):
        return []
    return list(dict.fromkeys(_OPTION.findall(text)))


def help_of(known: SessionView, program: str) -> list[str]:
    """Return the options of a program by the last help text that the session read of it."""
    for call in reversed(known.session):
        role = known.role_of(call)
        if role is None or role.role != "shell":
            continue
        programs: list[str] = []
        for command in texts_at(call.arguments, role.command):
            programs += [words[0] for words in programs_of(command)]
        if program not in programs:
            continue
        text = call.result or call.error or ""
        options = options_in(text[:MAX_TEXT])
        if options:
            return options
    return []
