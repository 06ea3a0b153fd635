"""The folder of an embedded index: who holds it, what is in it, which shard is current.

lock           held by the one process that has the index open
index.json     format, model and current shard; written last, replaced atomically
shard-3f2a…/   the current shard; others are leftovers and are removed
"""

import fcntl
import os
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict

from retrieval.index.edge_shard import sync
from retrieval.index.protocol import IndexInUseError, VectorIndexError

RECORD = "index.json"
LOCK = "lock"
SHARD_PREFIX = "shard-"

MIN_FREE_BYTES = 128 * 1024 * 1024
"""Free space an update needs. The library's files grow by up to 32 MiB each, memory-mapped: were
the disk full, writing would kill the process."""

LOCK_PATIENCE_SECONDS = 2.0
"""A service that was killed a moment ago may not be gone yet."""


class FolderRecord(BaseModel):
    """What `index.json` says."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    """Of the folder and of what is in the shard: payload, BM25's settings, precision."""
    fingerprint: str
    """The model that made the vectors, as `Embedder.fingerprint`."""
    dimension: int
    shard: str
    """Name of the current shard's folder."""
    compacted_points: int = 0
    """Points in the shard when it was last compacted."""


class IndexFolder:
    """A folder that this process holds until `close`.

    Raises:
        IndexInUseError: when another holds it.
        VectorIndexError: when it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _acquire(path)

    def read(self) -> FolderRecord | None:
        """The record; `None` for a folder without an index, or with a half-made one.

        Raises:
            VectorIndexError: when it is damaged or of another version.
        """
        try:
            return FolderRecord.model_validate_json((self.path / RECORD).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise VectorIndexError(
                f"{self.path / RECORD} is damaged, or of another version of aftercall ({error}); "
                f"`aftercall rebuild` makes the vectors in {self.path} anew"
            ) from error

    def write(self, record: FolderRecord) -> None:
        """Replace the record at one stroke, on the disk when this returns."""
        temporary, shard = self.path / f"{RECORD}.part", self.path / record.shard
        try:
            temporary.write_text(record.model_dump_json(indent=2) + "\n")
            # A record on the disk names a shard on the disk.
            for path in (temporary, *shard.rglob("*"), shard):
                sync(path)
            temporary.replace(self.path / RECORD)
            sync(self.path)
        except OSError as error:
            raise VectorIndexError(f"cannot write {self.path / RECORD}: {error}") from error

    def new_shard(self) -> Path:
        """A path for another shard, not there yet."""
        return self.path / f"{SHARD_PREFIX}{uuid.uuid4().hex[:12]}"

    def remove_leftovers(self, current: str | None) -> None:
        """Remove every shard but the current one: of a killed creation or compaction."""
        for path in self.path.glob(f"{SHARD_PREFIX}*"):
            if path.name != current:
                shutil.rmtree(path, ignore_errors=True)

    def remove_all(self) -> None:
        """Remove the index with its folder, record first: no crash leaves one without a shard."""
        (self.path / RECORD).unlink(missing_ok=True)
        sync(self.path)
        self.remove_leftovers(None)
        (self.path / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            self.path.rmdir()

    def require_space(self, further_bytes: int = 0) -> None:
        """Raises `VectorIndexError` when the disk is nearly full."""
        free, needed = shutil.disk_usage(self.path).free, MIN_FREE_BYTES + further_bytes
        if free < needed:
            raise VectorIndexError(
                f"only {free >> 20} MiB are free on the disk of {self.path}, {needed >> 20} are "
                "needed to add vectors: make space, and it goes on where it stopped"
            )

    def close(self) -> None:
        """Let go of the folder; closing twice does nothing."""
        self._lock.close()


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a folder, the holes of its sparse files left out: a new log is 64 MiB of them."""
    shutil.copytree(source, target, copy_function=_copy_file)


def size_on_disk(folder: Path) -> int:
    """Bytes that the files of a folder occupy."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _copy_file(source: str, target: str) -> str:
    with Path(source).open("rb", 0) as reader, Path(target).open("wb", 0) as writer:
        size = os.fstat(reader.fileno()).st_size
        position = 0
        while position < size:
            try:
                position = os.lseek(reader.fileno(), position, os.SEEK_DATA)
            except OSError:  # ENXIO: a hole up to the end
                break
            end = os.lseek(reader.fileno(), position, os.SEEK_HOLE)
            while position < end:
                data = os.pread(reader.fileno(), min(end - position, 1 << 20), position)
                position += os.pwrite(writer.fileno(), data, position)
        writer.truncate(size)
    return target


def _acquire(path: Path) -> IO[str]:
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            file = (path / LOCK).open("a")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Whoever removed the folder meanwhile had this file locked: no lock any more.
                if os.path.samestat((path / LOCK).stat(), os.fstat(file.fileno())):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()
        except (BlockingIOError, FileNotFoundError, FileExistsError) as error:
            is_held = isinstance(error, BlockingIOError)
            if path.is_file() or (not is_held and time.monotonic() > deadline):
                raise VectorIndexError(f"cannot use {path} for vectors: {error}") from error
            if time.monotonic() > deadline:
                raise IndexInUseError(
                    f"another process has the vectors in {path} open: stop it first, "
                    "or give this one another --data-dir"
                ) from error
            if is_held:
                time.sleep(0.05)
        except OSError as error:
            raise VectorIndexError(f"cannot use {path} for vectors: {error}") from error
