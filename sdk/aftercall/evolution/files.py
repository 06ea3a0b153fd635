"""A new version on disk: its file beside the script, its promotion, and its line in the changelog.

`translator_v1_2.py` is version 1.2.0 of `translator.py`. A name is made from the script's own file
name and a version, and from nothing else: neither the id of the tool nor anything that an evolver
says is a path. Files are made, never overwritten.

All that decides is done while the promotions file is locked, so of two evolutions at once neither
loses its entry, and of one tool they get versions one after the other. A process that is killed
leaves at worst a file that nothing points to, which the next version steps over, or a promotion
without its line in the changelog, which the next evolution adds.
"""

import hashlib
import json
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from pydantic import ValidationError

from aftercall.errors import ConfigurationError
from aftercall.evolution.checks import MAX_SOURCE_BYTES
from aftercall.models import Promotion
from aftercall.models.base import Name, Text, Timestamp, WireModel
from aftercall.models.tools import VersionNumber, parse_version, same_version
from aftercall.promotions_file import (
    MissingFileError,
    UnsafePathError,
    read_promotions,
    resolve_file,
    update_promotions,
)

if sys.platform != "win32":
    import fcntl

CHANGELOG_FILE = ".tool_changelog.jsonl"
"""The cumulative changelog of evolutions, beside the promotions file: JSON lines in ASCII, appended
to and never rewritten."""

_MAX_STEM_BYTES = 120
"""Longest stem; names may have 255 bytes on most file systems, 143 on an encrypted one."""
_MAX_NUMBER = 999_999_999
"""Largest number in a version, as `aftercall.models.tools` reads it."""
_MAX_TRIES = 100
"""Names that may be taken by others between looking and writing."""
_EFFECTIVE_IDS = os.access in os.supports_effective_ids
_UNSAFE = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9]{1,10})?", re.ASCII)
_VERSION = re.compile(r"_v(\d{1,9})_(\d{1,9})(?:_(\d{1,9}))?", re.ASCII)
_VERSIONED = re.compile(rf"(?P<bare>.+?){_VERSION.pattern}", re.ASCII | re.DOTALL)


class ScriptError(ConfigurationError):
    """A tool's script or its folder is none that can be evolved; the message names the cure."""


class ChangelogEntry(WireModel):
    """One evolution. Texts are redacted already."""

    at: Timestamp
    namespace: Name
    tool_id: Name
    version: Name
    made_from: Name | None
    file: Text | None
    sha256: str | None
    reason: Text
    mutation: Text
    source: Literal["evolved", "found"] = "evolved"
    """`found`: the promotions file held it and this file did not; another program promoted it, or
    the process ended between the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedCode:
    """Accepted code and why it was made. Texts are redacted already."""

    tool_id: str
    namespace: str
    code: str
    original_version: str
    made_from: str
    """The version whose source it was made from."""
    reason: str
    mutation: str


def commit(
    candidate: AcceptedCode,
    script: Path,
    promotions_file: Path,
    known_versions: Sequence[VersionNumber],
) -> tuple[Path, Promotion, list[str]]:
    """Put accepted code in force: its file, its promotion, its line in the changelog.

    Returns the new file, the promotion that holds on this machine, and notes on what went
    otherwise. The new version comes after all `known_versions`, those beside the script, and the
    promoted one.
    """
    root = promotions_file.parent.resolve(strict=True)
    now = datetime.now(UTC).replace(microsecond=0)  # as exact as the file
    namespace = candidate.namespace
    file: Path | None = None
    before: Promotion | None = None

    def change(promotions: dict[str, Promotion]) -> Mapping[str, Promotion]:
        nonlocal file, before
        before = promotions.get(namespace)
        versions = [*known_versions, *versions_beside(script)]
        versions += [parse_version(before.evolved_version)] if before else []
        version, file = _create(script, max(versions), candidate.code)
        promotion = Promotion(
            evolved_version=str(version),
            evolved_file=file.relative_to(root).as_posix(),
            original_version=candidate.original_version,
            reason=candidate.reason,
            mutation=candidate.mutation,
            promoted_at=now,
        )
        return {**promotions, namespace: promotion}

    try:
        promotion = update_promotions(promotions_file, change)[namespace]
    except BaseException:
        if file is not None:
            _remove(file, root, namespace, promotions_file)
        raise
    notes = []
    if before and not same_version(before.evolved_version, candidate.made_from):
        notes.append(
            f"it was made from version {candidate.made_from} and replaces "
            f"{before.evolved_version}, whose changes it may lack"
        )
    entries = [_entry(candidate, before, root, found=True)] if before else []
    entries.append(_entry(candidate, promotion, root, found=False))
    try:
        append_entries(promotions_file.parent / CHANGELOG_FILE, entries)
    except (ConfigurationError, OSError) as error:
        notes.append(
            f"the changelog could not be written ({error}); the next evolution of this namespace "
            "adds what is missing"
        )
    return cast("Path", file), promotion, notes


def _create(script: Path, highest: VersionNumber, code: str) -> tuple[VersionNumber, Path]:
    version = highest
    for _ in range(_MAX_TRIES):
        version = version.next_minor
        if version.minor > _MAX_NUMBER:
            break
        # Other programs make files of such names, or names differ by case only.
        with suppress(FileExistsError):
            return version, create_beside(script, version, code)
    raise ConfigurationError(
        f"there is no free version after {highest}; remove or rename the files that have them"
    )


def _remove(file: Path, root: Path, namespace: str, promotions_file: Path) -> None:
    # A file that nothing points to does no harm.
    with suppress(ConfigurationError, OSError):
        present = read_promotions(promotions_file, missing_ok=True).get(namespace)
        if present is None or present.evolved_file != file.relative_to(root).as_posix():
            file.unlink(missing_ok=True)


def _entry(
    candidate: AcceptedCode, promotion: Promotion, root: Path, *, found: bool
) -> ChangelogEntry:
    digest = None
    with suppress(MissingFileError, UnsafePathError, OSError):
        file = resolve_file(root, promotion.evolved_file or "")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return ChangelogEntry(
        at=promotion.promoted_at or datetime.now(UTC).replace(microsecond=0),
        namespace=candidate.namespace,
        tool_id=candidate.tool_id,
        version=promotion.evolved_version,
        made_from=None if found else candidate.made_from,
        file=promotion.evolved_file,
        sha256=digest,
        reason=promotion.reason,
        mutation=promotion.mutation,
        source="found" if found else "evolved",
    )


def append_entries(path: Path, entries: list[ChangelogEntry]) -> None:
    """Append entries by one write; one that was only found is left out where it stands already."""
    if sys.platform == "win32":
        raise ConfigurationError("evolving files needs a POSIX system")
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o644), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = {(entry.namespace, entry.version) for entry in read_changelog(path)}
        lines = "".join(
            json.dumps(entry.model_dump(mode="json"), ensure_ascii=True) + "\n"
            for entry in entries
            if entry.source == "evolved" or (entry.namespace, entry.version) not in known
        )
        # Half a line that a killed process left must not swallow this one.
        size = file.seek(0, os.SEEK_END)
        is_torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write(("\n" * is_torn + lines).encode("ascii"))
        os.fsync(file)


def read_changelog(path: Path) -> list[ChangelogEntry]:
    """The entries of a changelog, oldest first; none when there is no file.

    Lines that are no entries, such as one that a killed process left half written, are skipped.
    """
    entries = []
    with suppress(FileNotFoundError):
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValidationError):
                entries.append(ChangelogEntry.model_validate_json(line, extra="ignore"))
    return entries


def stem_of(script_name: str) -> str:
    """What all versions of a script begin with: its name without suffix and version, made safe.

    Letters, digits and `_`, `.`, `-` stay. Of other names a hash is added, so that no two scripts
    share their versions' names.
    """
    stem = Path(script_name).stem
    found = _VERSIONED.fullmatch(stem)  # `translator` for `translator_v1_1.py` too
    bare = found["bare"] if found else stem
    safe = _UNSAFE.sub("_", unicodedata.normalize("NFC", bare)).lstrip(".-_")
    safe = safe.encode(errors="replace")[:_MAX_STEM_BYTES].decode(errors="ignore")
    if safe == bare and safe:
        return safe
    digest = hashlib.sha256(bare.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{safe or 'tool'}_{digest}"


def versioned_name(script_name: str, version: VersionNumber) -> str:
    """The file name of a version: `translator_v1_2.py`; one segment of a path, never hidden."""
    suffix = Path(script_name).suffix
    if not _SUFFIX.fullmatch(suffix):
        raise ScriptError(f"the script's suffix {suffix!r} is odd; rename it, for instance to .py")
    patch = f"_{version.patch}" if version.patch else ""
    return f"{stem_of(script_name)}_v{version.major}_{version.minor}{patch}{suffix}"


def version_in(name: str, script_name: str) -> VersionNumber | None:
    """The version that a file name gives; None when it is no version of this script."""
    stem, suffix = stem_of(script_name), Path(script_name).suffix
    if not (name.startswith(f"{stem}_v") and name.endswith(suffix)):
        return None
    found = _VERSION.fullmatch(name[len(stem) : len(name) - len(suffix)])
    return found and VersionNumber(*(int(number or 0) for number in found.groups()))


def versions_beside(script: Path) -> list[VersionNumber]:
    """The versions of a script that exist in its folder, be they a file, a folder or a link."""
    names = os.listdir(script.parent)  # noqa: PTH208  # names are all that is asked for
    return [version for name in names if (version := version_in(name, script.name))]


def resolve_script(script: Path, root: Path) -> Path:
    """The script with all links followed."""
    try:
        folder = script.parent.resolve(strict=True)
        resolved = script.resolve(strict=True)
        top = root.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        raise ScriptError(f"the script {script} cannot be found: {error}") from error
    if resolved.parent != folder:
        raise ScriptError(f"{script} is a link into another folder; name the file itself")
    if not resolved.is_relative_to(top):
        raise ScriptError(
            f"{script} is not below {root}, where the promotions file is; move either of them"
        )
    if not resolved.is_file():
        raise ScriptError(f"{script} is no file")
    for place in (folder, top):
        if not os.access(place, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE_IDS):
            raise ScriptError(f"no file can be made in {place}; allow this process to write there")
    return resolved


def read_source(script: Path) -> str:
    """The source of a script; a `ScriptError` where it is too large or cannot be read."""
    try:
        with script.open("rb") as file:
            content = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise ScriptError(f"{script} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_SOURCE_BYTES:
        raise ScriptError(f"{script} is larger than {MAX_SOURCE_BYTES:,} bytes; split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScriptError(f"{script} is not UTF-8; save it as UTF-8") from error


def create_beside(script: Path, version: VersionNumber, code: str) -> Path:
    """Write a new version beside a script; on disk when this returns, with the script's mode."""
    path = script.parent / versioned_name(script.name, version)
    mode = stat.S_IMODE(script.stat().st_mode) & 0o777
    with path.open("xb") as file:
        try:
            file.write(code.encode())
            path.chmod(mode)
            file.flush()
            os.fsync(file)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path
