"""The file `.tool_promotions.json` (seed 002): read with the line of every fault, written at once.

It holds an object: under the name of each namespace an object of six keys, `evolved_version`,
`evolved_file`, `original_version`, `reason`, `mutation`, `promoted_at`, all of them required.
`evolved_file` is relative to the folder of the file; it is null only for a promoted version that is
a registered tool of its own.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from aftercall.errors import ConfigurationError
from aftercall.local_files import (
    MissingFileError,
    UnsafePathError,
    check_relative_path,
    resolve_file,
)
from aftercall.models.base import Name
from aftercall.models.tools import Promotion, Tool

__all__ = [
    "MAX_PROMOTIONS_CHARS",
    "PROMOTIONS_FILE",
    "MissingFile",
    "PromotionsFileError",
    "missing_files",
    "parse_promotions",
    "read_promotions",
    "render_promotions",
    "update_promotions",
    "write_promotions",
]

MAX_PROMOTIONS_CHARS = 8 * 1024 * 1024
"""Most characters of a file: as much as one request to the service may carry."""

KEYS = (
    "evolved_version", "evolved_file", "original_version", "reason", "mutation", "promoted_at",
)  # fmt: skip
"""The keys of an entry, in the seed's order."""

T = TypeVar("T")

_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_NAME: TypeAdapter[str] = TypeAdapter(Name)


class PromotionsFileError(ConfigurationError):
    """A promotions file is wrong; nothing of it was read.

    `line` counts from 1 and is None where no line is to blame, `entry` is the namespace, when the
    fault lies in one. `file` is its name, where the text is known to be of one.
    """

    def __init__(
        self,
        problem: str,
        *,
        line: int | None = None,
        entry: str | None = None,
        file: str | None = None,
    ) -> None:
        place = [] if file is None else [file]
        if line is not None:
            place.append(f"line {line}")
        if entry is not None:
            place.append(f"entry {_quoted(entry)}")
        super().__init__(f"{', '.join(place)}: {problem}" if place else problem)
        self.problem = problem
        self.line = line
        self.entry = entry
        self.file = file


def parse_promotions(text: str) -> dict[str, Promotion]:
    """The promotions in the text of a file, by namespace, in its order.

    Raises:
        PromotionsFileError: the text is no JSON or too large, a key is unknown, missing or stands
            twice, or a value is wrong: a version that is no version, a time that is no time, an
            `evolved_file` that is absolute or leaves the folder. Line and entry are named.
    """
    if len(text) > MAX_PROMOTIONS_CHARS:
        raise PromotionsFileError(
            f"the file has {len(text):,} characters; at most {MAX_PROMOTIONS_CHARS:,} are read"
        )
    return _Reader(text).promotions()


def render_promotions(promotions: Mapping[str, Promotion]) -> str:
    """The text of a file, exactly as the seed writes it; times in whole seconds of UTC.

    Raises:
        ConfigurationError: a promotion has no `promoted_at`, or an `evolved_file` that
            `parse_promotions` would refuse.
    """
    entries = {name: _rendered(name, promotion) for name, promotion in promotions.items()}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


class _Reader:
    """Reads one text; keeps the place of every key, so that a fault can be shown where it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def promotions(self) -> dict[str, Promotion]:
        found, at = self._object(self._skip(0), None, self._entry)
        if at < len(self._text):
            self._fail(at, None, "the file goes on after its last `}`")
        return {name: promotion for name, (_, promotion) in found.items()}

    def _entry(self, name: str, name_at: int, at: int) -> tuple[Promotion, int]:
        try:
            _NAME.validate_python(name)
        except ValidationError as error:
            self._fail(name_at, name, f"the name of a namespace {_said(error)}")

        def read_field(key: str, key_at: int, at: int) -> tuple[str | None, int]:
            if key not in KEYS:
                self._fail(
                    key_at, name, f"the key {_quoted(key)} is unknown; known: {', '.join(KEYS)}"
                )
            return self._field(name, key, at)

        found, end = self._object(at, name, read_field)
        if missing := [key for key in KEYS if key not in found]:
            self._fail(name_at, name, f"without {', '.join(missing)}; each entry has all six keys")
        fields = {key: value for key, (_, value) in found.items()}
        try:
            promotion = Promotion.model_validate(fields)
        except ValidationError as error:
            key = _key_of(error)
            self._fail(found[key][0] if key in found else name_at, name, f"{key} {_said(error)}")
        if promotion.evolved_file is not None:
            try:
                check_relative_path(promotion.evolved_file)
            except UnsafePathError as error:
                self._fail(found["evolved_file"][0], name, f"evolved_file: {error}")
        return promotion, end

    def _field(self, entry: str, key: str, at: int) -> tuple[str | None, int]:
        if self._text.startswith('"', at):
            return self._string(at, entry)
        if key == "evolved_file" and self._text.startswith("null", at):
            return None, at + len("null")
        return self._fail(at, entry, f"{key} must be text in double quotes")

    def _object(
        self, at: int, entry: str | None, read_value: Callable[[str, int, int], tuple[T, int]]
    ) -> tuple[dict[str, tuple[int, T]], int]:
        """The members of the object at `at`, each with the place of its key; where it ends."""
        if not self._text.startswith("{", at):
            what = "the file" if entry is None else "the entry"
            self._fail(at, entry, f"{what} must be an object, in braces")
        members: dict[str, tuple[int, T]] = {}
        at = self._skip(at + 1)
        if self._text.startswith("}", at):
            return members, self._skip(at + 1)
        while True:
            if not self._text.startswith('"', at):
                self._fail(at, entry, "a key in double quotes is expected here")
            key_at = at
            key, at = self._string(at, entry)
            if key in members:
                owner = key if entry is None else entry
                self._fail(key_at, owner, f"the key {_quoted(key)} stands here a second time")
            if not self._text.startswith(":", at):
                self._fail(at, entry, f"a colon is expected after the key {_quoted(key)}")
            value, at = read_value(key, key_at, self._skip(at + 1))
            members[key] = key_at, value
            at = self._skip(at)
            if self._text.startswith("}", at):
                return members, self._skip(at + 1)
            if not self._text.startswith(",", at):
                self._fail(at, entry, "a comma or `}` is expected here")
            at = self._skip(at + 1)

    def _string(self, at: int, entry: str | None) -> tuple[str, int]:
        try:
            text, end = _DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._fail(error.pos, entry, f"no JSON: {error.msg}")
        return str(text), self._skip(end)

    def _skip(self, at: int) -> int:
        blanks = _BLANKS.match(self._text, at)
        return blanks.end() if blanks else at

    def _fail(self, at: int, entry: str | None, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        raise PromotionsFileError(problem, line=line, entry=entry)


def _rendered(name: str, promotion: Promotion) -> dict[str, Any]:
    if promotion.promoted_at is None:
        raise ConfigurationError(f"entry {_quoted(name)}: promoted_at is not known; set it")
    if promotion.evolved_file is not None:
        try:
            check_relative_path(promotion.evolved_file)
        except UnsafePathError as error:
            raise ConfigurationError(f"entry {_quoted(name)}: evolved_file: {error}") from error
    fields: dict[str, Any] = {key: getattr(promotion, key) for key in KEYS}
    return fields | {"promoted_at": _time(promotion.promoted_at)}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _quoted(text: str) -> str:
    """Quoted on one line, at most some 80 characters of it: it may hold anything."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _key_of(error: ValidationError) -> str:
    """The first key at fault, as the file writes it."""
    name = str(error.errors()[0]["loc"][0])
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: "_" + found[0].lower(), name)


def _said(error: ValidationError) -> str:
    message: str = error.errors(include_url=False)[0]["msg"]
    return message.removeprefix("Value error, ")


try:
    import fcntl
except ImportError:  # Windows: one process at a time may change a file
    fcntl = None  # type: ignore[assignment]  # asked for before each use


PROMOTIONS_FILE = ".tool_promotions.json"
"""Its name, in the folder that the evolved files are relative to (seed 002)."""

_MAX_BYTES = 4 * MAX_PROMOTIONS_CHARS
"""Most bytes that so many characters can have in UTF-8."""


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A promotion whose file cannot be used, and why not."""

    namespace: str
    evolved_file: str
    problem: str


def read_promotions(path: Path, *, missing_ok: bool = False) -> dict[str, Promotion]:
    """The promotions in a file; with `missing_ok` none when there is no such file.

    Raises:
        PromotionsFileError: as `parse_promotions`, or the file is not there, cannot be read or is
            not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, for ever
            raise PromotionsFileError("it is no file", file=str(path))
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        if missing_ok:
            return {}
        raise PromotionsFileError("there is no file of this name", file=str(path)) from error
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
        raise PromotionsFileError(problem, file=str(path)) from error
    if len(content) > _MAX_BYTES:
        raise PromotionsFileError(f"it has more than {_MAX_BYTES:,} bytes", file=str(path))
    try:
        return parse_promotions(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = "it is not UTF-8; save it as UTF-8"
        raise PromotionsFileError(problem, line=line, file=str(path)) from error
    except PromotionsFileError as error:
        raise PromotionsFileError(
            error.problem, line=error.line, entry=error.entry, file=str(path)
        ) from error


def promoted_tool(original: Tool, promotion: Promotion) -> Tool:
    """What a promotion puts in the place of a tool: the same tool in another version.

    Its implementation gets the key `evolved_file`, when the promotion has a file; one that is no
    object gives way.
    """
    implementation = original.implementation
    if promotion.evolved_file is not None:
        known = implementation if isinstance(implementation, dict) else {}
        implementation = {**known, "evolved_file": promotion.evolved_file}
    return original.model_copy(
        update={
            "version": promotion.evolved_version,
            "is_evolved": True,
            "implementation": implementation,
        }
    )


def write_promotions(path: Path, promotions: Mapping[str, Promotion]) -> None:
    """Write a file; whoever reads it meanwhile sees the old one or the new one, whole.

    Raises:
        ConfigurationError: as `render_promotions`, or the file cannot be written.
    """
    content = render_promotions(promotions).encode()
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        _replace(target, content)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def update_promotions(
    path: Path, change: Callable[[dict[str, Promotion]], Mapping[str, Promotion]]
) -> dict[str, Promotion]:
    """Read, change and write a file while no other process does so; what was written.

    Args:
        path: the file; a missing one counts as empty.
        change: gets the promotions and returns those to write.

    Raises:
        ConfigurationError: as `read_promotions` and `write_promotions`.
    """
    with _locked(path.parent):
        after = dict(change(read_promotions(path, missing_ok=True)))
        write_promotions(path, after)
    return after


def missing_files(promotions: Mapping[str, Promotion], root: Path) -> list[MissingFile]:
    """The promotions whose file is missing below `root`, or leads out of it by a symbolic link.

    Promotions without a file are none of them.
    """
    found = []
    for namespace, promotion in promotions.items():
        if promotion.evolved_file is None:
            continue
        try:
            resolve_file(root, promotion.evolved_file)
        except (MissingFileError, UnsafePathError) as error:
            found.append(MissingFile(namespace, promotion.evolved_file, str(error)))
    return found


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f"{target.name}.{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # folders cannot be opened on Windows
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone among those who change a promotions file in `folder`; waits for the others."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ConfigurationError(f"{folder} is no folder that can be opened: {error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, also when killed
        yield
    finally:
        os.close(descriptor)
