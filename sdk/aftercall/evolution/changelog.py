"""The cumulative changelog of evolutions: JSON lines, appended to and never rewritten.

One object a line, in ASCII: whatever a reason or a mutation says, it cannot end its line, begin
another entry, or mean anything to a terminal or a Markdown reader that shows the file.
"""

import json
import os
import sys
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from aftercall.errors import ConfigurationError
from aftercall.models.base import Name, Text, Timestamp, WireModel

if sys.platform != "win32":
    import fcntl

CHANGELOG_FILE = ".tool_changelog.jsonl"
"""Its name, beside the promotions file."""

_MAX_READ_BYTES = 64 * 1024 * 1024


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


def append_entries(path: Path, entries: list[ChangelogEntry]) -> None:
    """Append entries by one write; one that was only found is left out where it stands already.

    Raises:
        OSError: it cannot be written, or `path` is a link.
    """
    if sys.platform == "win32":
        raise ConfigurationError("evolving files needs a POSIX system")
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        new = _unknown(entries, path)
        if not new:
            return
        # Half a line that a killed process left must not swallow this one.
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        lines = "".join(_line(entry) for entry in new)
        with os.fdopen(os.dup(descriptor), "ab") as file:
            file.write((b"\n" if torn else b"") + lines.encode("ascii"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_changelog(path: Path) -> list[ChangelogEntry]:
    """The entries of a changelog, oldest first; none when there is no file.

    Lines that are no entries, such as one that a killed process left half written, are skipped.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_READ_BYTES)
    except FileNotFoundError:
        return []
    entries = []
    for line in content.split(b"\n"):
        try:
            entries.append(ChangelogEntry.model_validate_json(line, extra="ignore"))
        except ValidationError:
            continue
    return entries


def _unknown(entries: list[ChangelogEntry], path: Path) -> list[ChangelogEntry]:
    if all(entry.source == "evolved" for entry in entries):
        return entries
    known = {(entry.namespace, entry.version) for entry in read_changelog(path)}
    return [
        entry
        for entry in entries
        if entry.source == "evolved" or (entry.namespace, entry.version) not in known
    ]


def _line(entry: ChangelogEntry) -> str:
    return json.dumps(entry.model_dump(mode="json"), ensure_ascii=True) + "\n"
