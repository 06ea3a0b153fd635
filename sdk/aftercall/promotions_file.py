"""The file `.tool_promotions.json` (seed 002): read with the entry of every fault, written at once.

It holds an object, with an entry for each namespace. Its `evolved_file` is relative to the folder
of the file, and null only for a promoted version that is a registered tool of its own. A path in
such a file is data: it may name a file below the folder and nothing else, links followed.

What is wrong with a file or a promotion is a `PromotionsFileError` or another `ConfigurationError`,
what is wrong with a path a `FilePathError`.
"""

import json
import os
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path, PureWindowsPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from aftercall.errors import ConfigurationError
from aftercall.explain import explain_error
from aftercall.files import hold_lock, replace_file
from aftercall.json_values import unique_members
from aftercall.models.base import Name, Text, Timestamp
from aftercall.models.tools import Promotion, Tool, Version

_NAME: TypeAdapter[str] = TypeAdapter(Name)


class PromotionsFileError(ConfigurationError):
    """A promotions file is wrong; nothing of it was read. `entry` is the namespace at fault."""

    def __init__(self, problem: str, entry: str | None = None) -> None:
        super().__init__(problem if entry is None else f"entry {entry[:80]!r}: {problem}")
        self.entry = entry


def parse_promotions(text: str) -> dict[str, Promotion]:
    """Return the promotions in the text of a file, by namespace, in its order."""
    try:
        root = json.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise PromotionsFileError(f"no JSON: {error}") from error
    if not isinstance(root, dict):
        raise PromotionsFileError("the file must be an object, in braces")
    found: dict[str, Promotion] = {}
    for name, members in root.items():
        if not isinstance(members, dict):
            raise PromotionsFileError("the entry must be an object, in braces", name)
        try:
            _NAME.validate_python(name)
            entry = _Entry.model_validate(members)
            # What the service takes is narrower than what the file's form states.
            found[name] = Promotion.model_validate(dict(entry))
        except ValidationError as error:
            raise PromotionsFileError(_entry_problem(error), name) from error
    return found


def render_promotions(promotions: Mapping[str, Promotion]) -> str:
    """Return the text of a file, exactly as the seed writes it; times in whole seconds of UTC.

    A promotion without `promoted_at` is refused, and so is what `parse_promotions` would refuse.
    """
    entries = {}
    for name, promotion in promotions.items():
        try:
            entry = _Entry.model_validate(dict(promotion))
        except ValidationError as error:
            raise ConfigurationError(f"entry {name!r}: {_entry_problem(error)}") from error
        moment = entry.promoted_at.replace(microsecond=0, tzinfo=None).isoformat()
        entries[name] = dict(entry) | {"promoted_at": f"{moment}Z"}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


def _entry_problem(error: ValidationError) -> str:
    explained = explain_error(error, _Entry)
    # Without a field it is the entry's own name.
    is_named = bool(error.errors(include_url=False)[0]["loc"])
    return explained if is_named else f"the name of a namespace {explained}"


def read_promotions(path: Path, *, missing_ok: bool = False) -> dict[str, Promotion]:
    """Return the promotions in a file; with `missing_ok` none when there is no such file."""
    try:
        return parse_promotions(path.read_bytes().decode("utf-8-sig"))
    except PromotionsFileError as error:
        problem = str(error)
    except (OSError, UnicodeDecodeError) as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return {}
        problem = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
    raise PromotionsFileError(f"{path}: {problem}")


def promoted_tool(original: Tool, promotion: Promotion) -> Tool:
    """Return what a promotion puts instead of a tool: the same tool in another version.

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
    """Write a file; a reader sees the old one or the new one, whole."""
    content = render_promotions(promotions).encode()
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        replace_file(target, content)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def update_promotions(
    path: Path, change: Callable[[dict[str, Promotion]], Mapping[str, Promotion]]
) -> dict[str, Promotion]:
    """Read, change and write a file while no other process does so; what was written.

    A missing file counts as empty.
    """
    try:
        with hold_lock(path.parent):
            after = dict(change(read_promotions(path, missing_ok=True)))
            write_promotions(path, after)
    except OSError as error:
        raise ConfigurationError(f"{path.parent} cannot be locked: {error}") from error
    return after


def missing_files(promotions: Mapping[str, Promotion], root: Path) -> dict[str, str]:
    """Why the file of a promotion cannot be used, by namespace; only of those where that is so.

    They are missing below `root`, or lead out of it by a link. A version without a file is left
    out.
    """
    found = {}
    for namespace, promotion in promotions.items():
        try:
            if promotion.evolved_file is not None:
                resolve_file(root, promotion.evolved_file)
        except FilePathError as error:
            found[namespace] = str(error)
    return found


class FilePathError(ValueError):
    """The path names no file below its folder; the message states why, and what to write."""


def check_relative_path(text: str) -> str:
    """`text` itself, when it can only name something below the folder it is read in.

    It is neither empty nor absolute, does not leave the folder by `..`, and holds no backslash, no
    drive and no control character.
    """
    names_none = not text.strip() or not text.strip("./")
    leaves = text.startswith("/") or PureWindowsPath(text).drive or ".." in text.split("/")
    is_odd = any(char == "\\" or unicodedata.category(char) in {"Cc", "Cs"} for char in text)
    if names_none or leaves or is_odd:
        raise FilePathError(
            f"the path {text[:200]!r} names no file below its folder; write it relative to the "
            "folder, its parts separated by /, like tools/translator_v1_1.py"
        )
    return text


def resolve_path(root: Path, path: Path) -> Path:
    """`path` with every symbolic link followed, when it lies below `root`; it need not exist."""
    try:
        folder, target = root.resolve(), path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        raise FilePathError(f"{str(path)[:300]!r} cannot be followed: {error}") from error
    if not target.is_relative_to(folder):
        raise FilePathError(f"{str(path)[:300]!r} lies outside {str(root)!r}")
    return target


def resolve_file(root: Path, relative: str) -> Path:
    """Return the regular file that `relative` names below `root`, links followed."""
    path = root / check_relative_path(relative)
    file = resolve_path(root, path)
    try:
        is_file = file.is_file()
    except OSError as error:  # longer than the file system takes
        raise FilePathError(f"{str(path)[:300]!r} cannot be read: {error.strerror}") from error
    if not is_file:
        raise FilePathError(f"there is no file {str(path)[:300]!r}")
    return file


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")  # keys in the seed's order
    evolved_version: Version
    evolved_file: Annotated[Text, AfterValidator(check_relative_path)] | None
    original_version: Version
    reason: Text
    mutation: Text
    promoted_at: Timestamp
