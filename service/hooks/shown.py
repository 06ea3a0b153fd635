"""The contents of a coding agent's session: paths, texts of files, options of commands. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
            if call.error is None and role is not None and role.path:
                yield from texts_at(call.arguments, role.path)
            if call.error is None and role is not None and role.role != "fetch":
                yield from _PATH.findall(call.result[:MAX_TEXT])
            if call.error is None and role is not None and role.role == "shell":
                for command in texts_at(call.arguments, role.command):
                    yield from (word for word in _WORD.findall(command) if _IS_PATH.search(word))

    def texts_of(self, path: str) -> Iterator[str]:
        """Yield the contents of a file that the session saw, newest first, without line numbers."""
        for call in reversed(self.session):
            role = self.role_of(call)
            if call.error is not None or role is None:
                continue
            if role.role == "shell":
                if any(
                    path.rpartition("/")[2] in c for c in texts_at(call.arguments, role.command)
                ):
                    yield call.result[: 10 * MAX_TEXT]
            elif role.patch:
                patch = "\n".join(texts_at(call.arguments, role.patch))
                if path in patch:
                    yield "\n".join(line[1:] for line in patch.split("\n") if line[:1] in " +")
            elif role.path and any(
                is_same_path(p, path) for p in texts_at(call.arguments, role.path)
            ):
                yield from texts_at(call.arguments, role.new) if role.new else ()
                if role.role == "read":
                    yield _strip_numbers(call.result[: 10 * MAX_TEXT])


def _strip_numbers(text: str) -> str:
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


def nearest_text(wanted: str, texts: Iterable[str]) -> str | None:
    """Return the lines of the texts that are most similar to the wanted ones."""
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


def doubled_part(path: str) -> tuple[str, str] | None:
    """Return the folder and the part that is named twice: `/a/b` and `b` of `/a/b/b`."""
    parts = path.split("/")
    for size in range(len(parts) // 2, 0, -1):
        if parts[-size:] == parts[-2 * size : -size] and (size > 1 or path.startswith("/")):
            return "/".join(parts[:-size]), "/".join(parts[-size:])
    return None


def near_paths(given: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return at most three seen paths that may be meant, the most similar first.

    A seen path may end with the given path, have its name in another folder, or have a name and a
    folder that differ by a slip.
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
        elif _read_suffix(seen_name) == _read_suffix(name):
            alike = fuzz.ratio(name, seen_name)
            if alike >= _NEAR_NAME and _are_near_folders(folder, seen_folder):
                scored[seen] = alike
    best = sorted((path for path in scored if scored[path]), key=lambda path: -scored[path])
    floor = scored[best[0]] - 25 if best else 0.0
    return tuple(path for path in best[:3] if scored[path] >= floor)


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
        commands = texts_at(call.arguments, role.command)
        if not any(words[0] == program for c in commands for words in programs_of(c)):
            continue
        if options := options_in((call.result or call.error or "")[:MAX_TEXT]):
            return options
    return []
