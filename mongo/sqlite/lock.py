"""One process per data folder: an advisory lock that dies with its process."""

import contextlib
import fcntl
import os
from pathlib import Path

from mongo.errors import StoreInUseError
from mongo.sqlite import faults

LOCK_NAME = "aftercall.lock"


class FolderLock:
    """Held from construction until `release`.

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
