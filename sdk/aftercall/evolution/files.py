"""A new version on disk: its file next to the script, its promotion, and its line in the changelog.

`translator_v1_2.py` is version 1.2.0 of `translator.py`. A name is made from the script's own file
name and a version, and from nothing else: neither the id of the tool nor anything that an evolver
states is a path. Files are made, never overwritten.

All that decides is done while the promotions file is locked. A process that is killed leaves at
worst a file that nothing points to, which the next version steps over, or a promotion without its
line in the changelog.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.evolution.checks import MAX_SOURCE_BYTES
from aftercall.evolution.tasks import EvolvingTool
from aftercall.files import append_line
from aftercall.models import Promotion
from aftercall.models.tools import VersionNumber, parse_version, same_version
from aftercall.promotions_file import FilePathError, resolve_path, update_promotions

CHANGELOG_FILE = ".tool_changelog.jsonl"
"""The cumulative changelog of evolutions, next to the promotions file: JSON lines in ASCII, only
appended to."""
_VERSION = "_v([0-9]{1,9})_([0-9]{1,9})(?:_([0-9]{1,9}))?"
_SCRIPT = re.compile(
    rf"(?P<stem>\w[\w.-]{{0,99}}?)(?:{_VERSION})?(?P<suffix>(\.[A-Za-z0-9]{{1,10}})?)"
)
"""A script's name; `translator` is the stem of `translator_v1_1.py` too."""


def commit(
    tool: EvolvingTool,
    script: Path,
    promotions_file: Path,
    *,
    code: str,
    made_from: str,
    reason: str,
    mutation: str,
    known_versions: Sequence[VersionNumber],
) -> tuple[Path, Promotion, list[str]]:
    """Put accepted code in force: its file, its promotion, its line in the changelog.

    Returns the new file, the promotion that holds on this machine, and notes on what went
    otherwise. The new version comes after all `known_versions`, those next to the script, and the
    promoted one. The texts are redacted already; `made_from` is the version that was changed.
    """
    root = promotions_file.parent.resolve(strict=True)
    made: list[Path] = []
    notes: list[str] = []

    def add_promotion(promotions: dict[str, Promotion]) -> Mapping[str, Promotion]:
        # Be they a file, a folder or a link.
        beside = os.listdir(script.parent)  # noqa: PTH208  # names are all that is asked for
        versions = [*known_versions, *filter(None, (version_in(n, script.name) for n in beside))]
        if (before := promotions.get(tool.namespace)) is not None:
            versions.append(parse_version(before.evolved_version))
            if not same_version(before.evolved_version, made_from):
                notes.append(
                    f"it was made from version {made_from} and replaces {before.evolved_version}, "
                    "whose changes it may lack"
                )
        newest = max(versions)
        version = VersionNumber(newest.major, newest.minor + 1)  # seed 002
        made.append(file := create_beside(script, version, code))
        promotion = Promotion(
            evolved_version=str(version),
            evolved_file=file.relative_to(root).as_posix(),
            original_version=tool.version,
            reason=reason,
            mutation=mutation,
            promoted_at=datetime.now(UTC).replace(microsecond=0),  # as exact as the file
        )
        return {**promotions, tool.namespace: promotion}

    try:
        promotion = update_promotions(promotions_file, add_promotion)[tool.namespace]
    except BaseException:
        for file in made:
            file.unlink(missing_ok=True)
        raise
    entry = {
        "at": f"{promotion.promoted_at or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "namespace": tool.namespace,
        "toolId": tool.tool_id,
        "version": promotion.evolved_version,
        "madeFrom": made_from,
        "file": promotion.evolved_file,
        "sha256": hashlib.sha256(code.encode()).hexdigest(),
        "reason": reason,
        "mutation": mutation,
    }
    try:
        append_line(promotions_file.parent / CHANGELOG_FILE, json.dumps(entry).encode() + b"\n")
    except OSError as error:
        notes.append(f"the changelog could not be written ({error})")
    return made[0], promotion, notes


def _stem_and_suffix(script_name: str) -> tuple[str, str]:
    if (found := _SCRIPT.fullmatch(script_name)) is None:
        raise ConfigurationError(
            f"the script's name {script_name[:100]!r} is odd; rename it to letters, digits, `_`, "
            "`-` and `.`, for instance to translator.py"
        )
    return found["stem"], found["suffix"]


def versioned_name(script_name: str, version: VersionNumber) -> str:
    """Return the file name of a version: `translator_v1_2.py`.

    One segment of a path, never hidden.
    """
    stem, suffix = _stem_and_suffix(script_name)
    patch = f"_{version.patch}" if version.patch else ""
    return f"{stem}_v{version.major}_{version.minor}{patch}{suffix}"


def version_in(name: str, script_name: str) -> VersionNumber | None:
    """Return the version that a file name gives; None when it is no version of this script."""
    stem, suffix = _stem_and_suffix(script_name)
    found = re.fullmatch(re.escape(stem) + _VERSION + re.escape(suffix), name)
    return found and VersionNumber(*(int(number or 0) for number in found.groups()))


def resolve_script(script: Path, root: Path) -> Path:
    """Return the script with all links followed, when it is a file below `root`."""
    try:
        resolved = resolve_path(root, script)
    except FilePathError as error:
        raise ConfigurationError(f"the script is not below the promotions file: {error}") from error
    if not resolved.is_file():
        raise ConfigurationError(f"{script} is no file")
    return resolved


def read_source(script: Path) -> str:
    """Return the source of a script; an error where it is too large or cannot be read."""
    try:
        with script.open("rb") as file:
            content = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{script} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_SOURCE_BYTES:
        raise ConfigurationError(f"{script} is larger than {MAX_SOURCE_BYTES:,} bytes; split it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{script} is not UTF-8; save it as UTF-8") from error


def create_beside(script: Path, version: VersionNumber, code: str) -> Path:
    """Write a new version next to a script; on disk when this returns, with the script's mode."""
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
