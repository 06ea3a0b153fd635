"""Versioned files beside a tool's script: `translator_v1_2.py` is version 1.2.0 of `translator.py`.

A name is made from the script's own file name and a version, and from nothing else: neither the id
of the tool nor anything that an evolver says is a path. Files are made, never overwritten.
"""

import errno
import hashlib
import os
import re
import stat
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.evolution.acceptance import MAX_SOURCE_BYTES
from aftercall.versions import VersionNumber

_MAX_STEM_BYTES = 120
"""Longest stem; names may have 255 bytes on most file systems, 143 on an encrypted one."""

_EFFECTIVE_IDS = os.access in os.supports_effective_ids

_UNSAFE = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9]{1,10})?", re.ASCII)
_VERSION = re.compile(r"_v(\d{1,9})_(\d{1,9})(?:_(\d{1,9}))?", re.ASCII)


class ScriptError(ConfigurationError):
    """A tool's script or its folder is none that can be evolved; the message names the cure."""


def stem_of(script_name: str) -> str:
    """What all versions of a script begin with: its name without suffix and version, made safe.

    Letters, digits and `_`, `.`, `-` stay. Of other names a hash is added, so that no two scripts
    share their versions' names.
    """
    bare = _bare_stem(script_name)
    safe = _UNSAFE.sub("_", unicodedata.normalize("NFC", bare)).lstrip(".-_")
    safe = safe.encode(errors="replace")[:_MAX_STEM_BYTES].decode(errors="ignore")
    if safe == bare and safe:
        return safe
    digest = hashlib.sha256(bare.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{safe or 'tool'}_{digest}"


def versioned_name(script_name: str, version: VersionNumber) -> str:
    """The file name of a version: `translator_v1_2.py`; one segment of a path, never a hidden file.

    Raises:
        ScriptError: the script's suffix is not one of letters and digits.
    """
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
    """The versions of a script that exist in its folder, as whatever: file, folder or link.

    Raises:
        OSError: the folder cannot be read.
    """
    names = os.listdir(script.parent)  # noqa: PTH208  # names are all that is asked for
    return [version for name in names if (version := version_in(name, script.name))]


def resolve_script(script: Path, root: Path) -> Path:
    """The script with all links followed.

    Raises:
        ScriptError: there is no such file, it is not below `root`, it is a link into another
            folder, or its folder or `root` cannot be written to.
    """
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
    """The source of a script.

    Raises:
        ScriptError: it cannot be read, is too large or not UTF-8.
    """
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
    """Write a new version beside a script; on disk when this returns, with the script's mode.

    Raises:
        FileExistsError: there is something of this name, be it a link that leads nowhere.
        OSError: it cannot be written; nothing is left of it.
    """
    if sys.platform == "win32":
        raise ConfigurationError("evolving files needs a POSIX system")
    name = versioned_name(script.name, version)
    folder = os.open(script.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        mode = stat.S_IMODE(script.stat().st_mode) & 0o777
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, mode, dir_fd=folder)
        try:
            _write_all(file, code.encode())
            os.fchmod(file, mode)
            os.fsync(file)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(file)
        os.fsync(folder)
    finally:
        os.close(folder)
    return script.parent / name


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        written = os.write(descriptor, view)
        if not written:
            raise OSError(errno.EIO, "nothing could be written")
        view = view[written:]


def _bare_stem(script_name: str) -> str:
    """`translator` for `translator.py` and `translator_v1_1.py` alike."""
    stem = Path(script_name).stem
    found = _VERSION.search(stem)
    while found and found.end() != len(stem):
        found = _VERSION.search(stem, found.end())
    return stem[: found.start()] if found and found.start() else stem
