"""Files and folders of a store: private, and there after a power loss."""

import os
from pathlib import Path

from mongo.sqlite import faults

_SUFFIXES = ("", "-wal", "-shm")
"""Of what SQLite keeps beside a file, and the file itself."""


def make_folder(folder: Path) -> None:
    """Make a folder that only this user may look into, unless it is there.

    Raises:
        StoreError: when it cannot be made.
    """
    try:
        if folder.is_dir():
            return
        folder.mkdir(mode=0o700, parents=True)
        _flush(folder.parent)
    except OSError as error:
        raise faults.from_os(error, folder) from error


def make_file(path: Path) -> None:
    """Make an empty file, unless it is there, and see that it can be written.

    SQLite would make it readable for all; its log takes the permissions from it.

    Raises:
        StoreError: when it cannot be made or written.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        _flush(path.parent)
    except OSError as error:
        raise faults.from_os(error, path) from error


def remove_file(path: Path) -> None:
    """Remove a database file and what SQLite keeps beside it; nothing when it is not there.

    Raises:
        StoreError: when it cannot be removed.
    """
    try:
        for suffix in _SUFFIXES:
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise faults.from_os(error, path) from error


def _flush(folder: Path) -> None:
    """Make new names in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
