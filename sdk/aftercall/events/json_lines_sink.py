"""Events as lines of JSON, in a file that several processes may share."""

import logging
import os
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.events.model import ToolCallEvent

if sys.platform != "win32":
    import fcntl

_LOGGER = logging.getLogger("aftercall")

MIN_FILE_BYTES = 16 * 1024
"""Smallest `max_bytes`: room for the longest line of an event, 8 KB with all of it escaped."""

_TELL_AGAIN_S = 60.0


class JsonLinesSink:
    """Appends one line per event, so that `ToolCallPlanned.model_validate_json(line)` reads it.

    A line is one write, which the system does not divide, and nothing is held between two: threads,
    processes and children of a fork may share the file, and there is nothing to close. What a
    process that was killed left half-written stays as it is, and the next event begins on a fresh
    line; so a reader skips what is empty or no JSON.

    The file is bounded: what would grow beyond `max_bytes` becomes `NAME.1`, in the place of an
    older one, and a new file is begun. Events are not forced to the disk, so a machine (not a
    process) that stops loses the last ones. Where the disk is full or the folder gone, events are
    lost, calls are not affected, and the log says so once, and once more when it is over.

    Args:
        path: the file; made when missing, readable by its owner only, like its folder.
        max_bytes: largest size of the file, and of its predecessor; at least 16 KiB.

    Raises:
        ConfigurationError: the file cannot be written, is no regular file, or `max_bytes` is too
            small.
    """

    def __init__(self, path: Path | str, *, max_bytes: int = 64 * 1024 * 1024) -> None:
        if sys.platform == "win32":
            raise ConfigurationError("JsonLinesSink needs POSIX file locks; use LoggingSink here")
        if max_bytes < MIN_FILE_BYTES:
            raise ConfigurationError(
                f"max_bytes must be at least {MIN_FILE_BYTES}, not {max_bytes}"
            )
        # The program may change its folder later, and a link must not be moved for its file.
        self._path = Path(path).resolve()
        self._max_bytes = max_bytes
        self._lost = 0
        self._is_told = False
        self._next_at = 0.0  # time.monotonic()
        self._lock = threading.Lock()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(self._open())
        except OSError as error:
            raise ConfigurationError(
                f"the event file {self._path} cannot be written ({error.strerror or error}); "
                "pass another path"
            ) from error

    def emit(self, event: ToolCallEvent) -> None:
        """Append it."""
        line = event.model_dump_json(exclude_none=True).encode() + b"\n"
        try:
            self._append(line)
        except OSError as error:
            self._failed(error)
        else:
            if self._is_told:
                self._recovered()

    def _append(self, line: bytes) -> None:
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if size and size + len(line) > self._max_bytes and self._move_away(descriptor):
                full, descriptor = descriptor, self._open()
                os.close(full)
                size = os.fstat(descriptor).st_size
            # Another process may be in the middle of its line: then an empty one is left behind.
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(descriptor, line) < len(line):
                raise OSError("the line was cut short")  # the disk is full; the next one knows
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        # Without waiting for the reader of a pipe.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError("it is no regular file")
        return descriptor

    def _move_away(self, descriptor: int) -> bool:
        """Rename the full file; whether it is out of the way, by us or by another.

        Whoever holds the file's lock may, so that of several processes that find it full only one
        does. The others do not wait: until it is done they write on, some lines too many.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            with suppress(FileNotFoundError):  # another has moved it, and not begun the next
                if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                    self._path.replace(f"{self._path}.1")
        finally:
            # By name too: a process forked meanwhile has the same lock through its copy.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        return True

    def _failed(self, error: OSError) -> None:
        moment = time.monotonic()
        with self._lock:
            self._lost += 1
            if self._is_told or moment < self._next_at:
                return
            self._is_told = True
            # A disk that is full for long lines only would be told of with every second event.
            self._next_at = moment + _TELL_AGAIN_S
        _LOGGER.warning(
            "events cannot be written to %s and are lost (%s); calls are not affected",
            self._path.name,
            error.strerror or error,
        )

    def _recovered(self) -> None:
        with self._lock:
            if not self._is_told:
                return
            self._is_told = False
            lost, self._lost = self._lost, 0
        _LOGGER.warning("events are written to %s again; %d were lost", self._path.name, lost)
