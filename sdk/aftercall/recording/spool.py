"""The spool: executions on disk while the service is away, shared by all processes that use it.

A folder of segments, each a file of JSON lines. A process appends to an *open* segment of its own
and seals it, by renaming it, before it is sent:

    00001771597800000000000-4f1c09ab.open          being written; its writer holds the lock
    00001771597800000000000-4f1c09ab-500.jsonl     sealed: 500 executions, sent oldest first

A lock (`flock`) goes with the open file and so ends with its process, however that ends. An open
segment that nobody holds belongs to a dead process and is taken over; a sealed one is sent by the
process that holds its lock. Sending one twice would be harmless, for execution ids are idempotency
keys.
"""

import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aftercall.errors import ConfigurationError
from aftercall.files import sync_folder

if sys.platform != "win32":
    import fcntl

_OPEN = ".open"
_SEALED = ".jsonl"
_NAME = re.compile(r"\d+-(?P<owner>[^-]+)-(?P<count>\d+)\.jsonl", re.ASCII)


class Segment:
    """A sealed segment, locked for sending; a context manager that gives the lock back."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _, self.count = _owner_and_count(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        _release(self._descriptor)

    def lines(self) -> list[bytes]:
        """The executions in it, one JSON text each; OSError where it cannot be read."""
        with open(self._descriptor, "rb", closefd=False) as file:  # a descriptor
            return [line for line in file.read().split(b"\n") if line]

    def remove(self) -> None:
        """Delete it: what was in it is acknowledged, or given up."""
        self._path.unlink(missing_ok=True)


@dataclass(slots=True)
class _Writing:
    path: Path
    descriptor: int
    size: int = 0
    count: int = 0


class Spool:
    """Executions waiting on disk. May be used from several threads and several processes.

    Args:
        directory: where the segments are; made when missing, readable by its owner only.
        max_bytes: most bytes of all segments together; beyond it the oldest are dropped.
        segment_bytes: a segment is sealed when it has grown to this size.

    Raises:
        ConfigurationError: the folder cannot be made or written.
    """

    def __init__(
        self, directory: Path, *, max_bytes: int, segment_bytes: int = 1024 * 1024
    ) -> None:
        if sys.platform == "win32":
            raise ConfigurationError("the spool needs POSIX file locks; pass spool_dir=None here")
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max(1, max_bytes // 4))
        self._lock = threading.Lock()
        self._owner = uuid.uuid4().hex[:12]
        self._last_name = 0
        self._writing: _Writing | None = None
        self.torn = 0
        """Half-written last lines of killed processes that were skipped so far."""
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = directory / f"{self._owner}.probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigurationError(
                f"the spool folder {directory} cannot be written ({error.strerror}); "
                "pass another spool_dir, or None to do without"
            ) from error

    def append(self, lines: Sequence[bytes]) -> int:
        """Keep executions, one JSON text without line ends each; on disk when this returns.

        Returns:
            How many executions had to be dropped to stay within `max_bytes`: of the oldest
            segments, or these themselves when they are too many for the whole spool.

        Raises:
            OSError: they could not be written; nothing of them is kept.
        """
        data = b"".join(line + b"\n" for line in lines)
        with self._lock:
            dropped = self._make_room(len(data))
            if self._size() + len(data) > self._max_bytes:
                return dropped + len(lines)
            writing = self._open_segment(len(data))
            try:
                _write(writing.descriptor, data)
                os.fsync(writing.descriptor)
            except OSError:
                os.ftruncate(writing.descriptor, writing.size)
                raise
            writing.size += len(data)
            writing.count += len(lines)
            return dropped

    def oldest(self) -> Segment | None:
        """The oldest segment that nobody else is sending, locked; None when there is none."""
        with self._lock:
            self._take_over()
            return self._claim_oldest()

    def waiting(self) -> int:
        """Executions in the spool, by any process, as far as their segments are sealed."""
        with self._lock:
            own = self._writing.count if self._writing else 0
            return own + sum(_owner_and_count(path)[1] for path in self._files(_SEALED))

    def holds_own(self) -> bool:
        """Whether something that was appended here still waits."""
        with self._lock:
            if self._writing and self._writing.count:
                return True
            return any(_owner_and_count(path)[0] == self._owner for path in self._files(_SEALED))

    def close(self) -> None:
        """Seal what was written; closing twice does nothing."""
        with self._lock:
            self._seal()

    def forget(self) -> None:
        """For the child of a fork: leave to the parent what is the parent's."""
        self._lock = threading.Lock()  # another thread may have held it when the process forked
        self._owner = uuid.uuid4().hex[:12]
        if self._writing:
            os.close(self._writing.descriptor)  # the parent's descriptor keeps the lock
            self._writing = None

    def _open_segment(self, needed: int) -> _Writing:
        writing = self._writing
        if writing and writing.size and writing.size + needed > self._segment_bytes:
            self._seal()
            writing = None
        if writing and os.fstat(writing.descriptor).st_nlink == 0:  # somebody emptied the folder
            os.close(writing.descriptor)
            writing = None
        if writing is None:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Never the same name twice, and never an older one, even if the clock is set back.
            self._last_name = max(self._last_name + 1, time.time_ns())
            name = f"{self._last_name:023d}-{self._owner}"
            # Locked before it gets its name, so that nobody takes it for a dead process's.
            hidden = self._directory / f"{name}.new"
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            path = hidden.rename(hidden.with_suffix(_OPEN))
            sync_folder(self._directory)
            writing = _Writing(path, descriptor)
        self._writing = writing
        return writing

    def _seal(self) -> bool:
        """Make the open segment one that can be sent; False when there is nothing in it."""
        writing, self._writing = self._writing, None
        if writing is None:
            return False
        try:
            if writing.count == 0:
                writing.path.unlink(missing_ok=True)
                return False
            writing.path.rename(_sealed_path(writing.path, writing.count))
            sync_folder(self._directory)
        except FileNotFoundError:  # somebody emptied the folder
            return False
        finally:
            _release(writing.descriptor)
        return True

    def _take_over(self) -> None:
        """Seal the open segments of dead processes, without a half-written last line."""
        own = self._writing.path if self._writing else None
        for path in self._files(_OPEN):
            if path == own or (descriptor := _try_lock(path)) is None:
                continue
            try:
                with open(descriptor, "rb", closefd=False) as file:  # a descriptor
                    data = file.read()
                whole = data.rfind(b"\n") + 1
                self.torn += whole < len(data)
                if whole == 0:
                    path.unlink(missing_ok=True)
                    continue
                os.ftruncate(descriptor, whole)
                os.fsync(descriptor)
                path.rename(_sealed_path(path, data.count(b"\n")))
                sync_folder(self._directory)
            finally:
                _release(descriptor)

    def _claim_oldest(self) -> Segment | None:
        """The oldest sealed segment that can be locked, or else what this process has written."""
        for path in self._files(_SEALED):
            if (descriptor := _try_lock(path)) is not None:
                return Segment(path, descriptor)
        return self._claim_oldest() if self._seal() else None

    def _make_room(self, needed: int) -> int:
        dropped = 0
        while needed <= self._max_bytes < self._size() + needed:
            segment = self._claim_oldest()
            if segment is None:  # all the rest belongs to living processes
                break
            with segment:
                dropped += segment.count
                segment.remove()
        return dropped

    def _size(self) -> int:
        size = 0
        for path in self._files(_SEALED, _OPEN):
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        return size

    def _files(self, *suffixes: str) -> Iterator[Path]:
        try:
            # Paths cost more than names.
            names = sorted(os.listdir(self._directory))  # noqa: PTH208
        except FileNotFoundError:
            return
        for name in names:
            if name.endswith(suffixes):
                yield self._directory / name


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the file's lock; None when another has it, or it is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The process that had the lock before may have renamed or removed the file.
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _release(descriptor: int) -> None:
    # Unlocked by name too: a process forked meanwhile has the same lock through its copy.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sealed_path(path: Path, count: int) -> Path:
    return path.with_name(f"{path.stem}-{count}{_SEALED}")


def _owner_and_count(path: Path) -> tuple[str, int]:
    """Who sealed a segment, and how many executions it has; nobody and 0 of a foreign file."""
    found = _NAME.fullmatch(path.name)
    return (found["owner"], int(found["count"])) if found else ("", 0)
