"""The spool: executions on disk while the service is away, shared by all processes that use it.

A folder of segments, each a file of JSON lines, named by the time and its writer. A process that
writes or takes one holds the lock of the folder for that moment. A segment that is being sent has
another suffix, so that its writer begins a new one, and is locked until it is done with. Locks
(`flock`) end with their process, however that ends, and what it was sending is sent by another:
harmless, for execution ids are idempotency keys.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aftercall.errors import ConfigurationError
from aftercall.files import hold_lock, replace_file, sync_folder
from aftercall.places import try_lock, unlock_file

_WRITTEN, _SENT = ".jsonl", ".sending"


@dataclass(frozen=True, slots=True)
class Segment:
    """Executions that are being sent, one JSON text each."""

    lines: list[bytes]
    path: Path

    def remove(self) -> None:
        """Delete it: what was in it is acknowledged, or given up."""
        self.path.unlink(missing_ok=True)


class Spool:
    """Executions waiting on disk. May be used from several threads and several processes.

    The folder is made when missing, readable by its owner only. Beyond `max_bytes` of all segments
    the oldest are dropped; a segment that has grown to `segment_bytes` gets nothing more.
    """

    def __init__(
        self, directory: Path, *, max_bytes: int, segment_bytes: int = 1024 * 1024
    ) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max(1, max_bytes // 4))
        self._last_name = 0
        self._path = directory
        self.forget_parent()
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
            segments, or these themselves when they are too many for the whole spool. From what
            cannot be written (`OSError`) nothing is kept.
        """
        data = b"".join(line + b"\n" for line in lines)
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)  # someone tidied up
        with hold_lock(self._directory):
            dropped = self._make_room(len(data))
            if self._total_size() + len(data) > self._max_bytes:
                return dropped + len(lines)
            path = self._path
            has_room = path.exists() and path.stat().st_size + len(data) <= self._segment_bytes
            if not has_room:
                # Never the same name twice, and never an older one, even if the clock is set back.
                self._last_name = max(self._last_name + 1, time.time_ns())
                path = self._directory / f"{self._last_name:023d}-{self._owner}{_WRITTEN}"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            before, left = os.fstat(descriptor).st_size, memoryview(data)
            try:
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, before)
                raise
            finally:
                os.close(descriptor)
            self._path = path
            sync_folder(self._directory)
            return dropped

    @contextmanager
    def lock_oldest(self) -> Iterator[Segment | None]:
        """Yield the oldest segment that no one else is sending.

        Kept from others within the block.
        """
        segment, descriptor = None, None
        with suppress(FileNotFoundError), hold_lock(self._directory):
            for path in self._segment_files():
                if (descriptor := _try_lock(path)) is not None:
                    segment = Segment(_whole_lines(path), path.rename(path.with_suffix(_SENT)))
                    break
        try:
            yield segment
        finally:
            if descriptor is not None:
                unlock_file(descriptor)

    def erase_executions(self, is_gone: Callable[[bytes], bool]) -> int:
        """Delete executions; how many. A segment that is being sent is waited for."""
        erased = 0
        for path in list(self._segment_files()):
            with suppress(FileNotFoundError), hold_lock(path), hold_lock(self._directory):
                for at in {path, path.with_suffix(_SENT)}:  # its name while it was sent
                    lines = _whole_lines(at)
                    kept = [line for line in lines if not is_gone(line)]
                    erased += len(lines) - len(kept)
                    if lines and not kept:
                        at.unlink()
                    elif len(kept) < len(lines):
                        replace_file(at, b"".join(line + b"\n" for line in kept))
        return erased

    def count_waiting(self) -> int:
        """Executions in the spool, by any process."""
        return sum(len(_whole_lines(path)) for path in self._segment_files())

    def holds_own(self) -> bool:
        """Return whether something that was appended here still waits."""
        return any(path.stem.endswith(self._owner) for path in self._segment_files())

    def forget_parent(self) -> None:
        """Leave to the parent of a fork what is the parent's."""
        self._owner = uuid.uuid4().hex[:12]
        self._path = self._directory / "none yet"

    def _make_room(self, needed: int) -> int:
        dropped = 0
        for path in list(self._segment_files()):
            if not needed <= self._max_bytes < self._total_size() + needed:
                break
            if (descriptor := _try_lock(path)) is not None:
                dropped += len(_whole_lines(path))
                path.unlink()
                unlock_file(descriptor)
        return dropped

    def _total_size(self) -> int:
        size = 0
        for path in self._segment_files():
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        return size

    def _segment_files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            # Paths cost more than names.
            for name in sorted(os.listdir(self._directory)):  # noqa: PTH208
                if name.endswith((_WRITTEN, _SENT)):
                    yield self._directory / name


def _whole_lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file; a killed process may have left half of one."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def _try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the file's lock; None when another has it, or it is gone."""
    with suppress(FileNotFoundError):
        descriptor = try_lock(path, alone=True, made=False)
        if descriptor is None or path.exists():
            return descriptor
        unlock_file(descriptor)  # the one that had the lock before has removed it
    return None
