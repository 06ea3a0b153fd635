"""Files that survive a power loss, where a user's own are (XDG Base Directories), and tables."""

import fcntl
import os
import secrets
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

from aftercall.places import unlock_file, user_place


def user_folder(variable: str, below_home: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder `aftercall` below a variable such as `XDG_CACHE_HOME`."""
    return Path(user_place(variable, below_home, environ))


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where this user's service keeps its data by default."""
    given = environ.get("AFTERCALL_DATA_DIR")
    return Path(given) if given else default_data_folder(environ)


def default_data_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return where this platform keeps a user's data: XDG, or macOS's own place."""
    place = "Library/Application Support" if platform == "darwin" else ".local/share"
    return user_folder("XDG_DATA_HOME", place, environ)


def key_file(path: Path) -> bytes:
    """Return the 32 random bytes of a file that only its owner reads; the first to ask makes it.

    Fewer than 16 bytes are a `ValueError`.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(path.parent):
            if not path.exists():  # else another process was first, and its key is the key
                replace_file(path, secrets.token_bytes(32), mode=0o600)
    key = path.read_bytes()
    if len(key) < 16:
        raise ValueError(
            f"{path} holds {len(key)} bytes, and a key needs 16; remove it to have a new one"
        )
    return key


@cache
def user_key() -> bytes:
    """Return the key of this user's hashes.

    A file in the user's configuration, or of this process.
    """
    with suppress(OSError, RuntimeError, ValueError):
        return key_file(user_folder("XDG_CONFIG_HOME", ".config") / "hash.key")
    return secrets.token_bytes(32)


def read_table(name: str) -> dict[str, Any]:
    """Return a table of this package."""
    return tomllib.loads(resources.files("aftercall").joinpath(name).read_text(encoding="utf-8"))


def sync_folder(folder: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(target: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file in one step: who reads it meanwhile sees the old one or the new one, whole.

    A file that is there keeps its mode.
    """
    temporary = target.with_name(f"{target.name}.{uuid4().hex}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Alone among those who lock this file or folder; waits for the others."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # ends with the descriptor, also when killed
        yield
    finally:
        unlock_file(descriptor)


GATEWAYS_LOCK = "gateways.lock"
"""Of the data folder: held by every gateway of this machine, together with the others."""


def append_line(path: Path, line: bytes) -> None:
    """Append a line by one write under the file's lock; for threads, processes and forks.

    What a killed process left half-written stays as it is, and the line begins behind it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        if line and size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError("the line was cut short")  # the disk is full; the next one knows
    finally:
        unlock_file(descriptor)
