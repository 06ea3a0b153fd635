"""The folder of a store: private, there after a power loss, and one process's at a time."""

import contextlib
import fcntl
import os
from pathlib import Path

from mongo.errors import StoreInUseError
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


LOCK_NAME = "aftercall.lock"


class FolderLock:
    """One process per folder: an advisory lock, held from construction until `release`.

    The kernel drops it with the process, however that ends, so a lock file left behind by a killed
    process means nothing. `flock` and not `lockf`: it also keeps out a second store opened in the
    same process, and closing another descriptor of the file does not drop it.

    Raises:
        StoreInUseError: at once, when somebody else holds it.
        StoreError: when the lock file cannot be made or locked.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_NAME
        try:
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise faults.from_os(error, folder) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip()
            self.release()
            raise StoreInUseError(
                f"the data folder {folder} is in use by process {holder or 'unknown'}: stop that "
                "process, or choose another data folder (--data-dir)"
            ) from error
        except OSError as error:
            self.release()
            raise faults.from_os(error, folder) from error
        # The number only serves the message above, so a disk too full for it is no reason to fail.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the folder free; twice does nothing.

        The file stays: removing it would let two others each lock a file of that name.
        """
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
