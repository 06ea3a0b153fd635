"""The embedded vector index: Qdrant Edge in this process, for one process at a time.

A shard that was only written to is searched by a scan: 2 ms at 20,000 points, 12 ms at 100,000.
Optimizing builds the graph that makes that 0.5 and 0.7 ms, but takes 22 s at 100,000 points with
the GIL held. So a process of its own optimizes a copy; what changes meanwhile is noted and brought
over, and the copy takes the shard's place. Searches by tool need none of this (0.7 ms at 50,000).
"""

import asyncio
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from retrieval.index.edge_shard import (
    FolderRecord,
    IndexFolder,
    Shard,
    check_folder_owner,
    size_on_disk,
)
from retrieval.index.protocol import (
    Hit,
    IndexPoint,
    IndexQuery,
    VectorIndexError,
    check_model,
    check_vector,
)

MIN_NEW_POINTS = 50_000
"""New points that a scan may take in: 5 ms if it had to see them all. Most points are scenarios of
tools, which are asked for by id or by tool and never scanned; compacting takes 200 MiB."""
NEW_SHARE = 0.25
"""And against those compacted before, so that the work stays in proportion to what is written."""
_OPTIMIZE = """
import os, sys, qdrant_edge
os.nice(10)
shard = qdrant_edge.EdgeShard.load(sys.argv[1])
shard.optimize()
shard.close()
"""
"""The compacting process: it yields the cores to the service, and imports nothing of ours."""
log = logging.getLogger(__name__)


class EdgeIndex:
    """`VectorIndex` on Qdrant Edge. Construct with `await EdgeIndex.open(folder, ...)`.

    Updates run one after the other in a thread of their own. `qdrant_edge` holds the GIL while it
    works, so a search of 0.3 ms holds up the event loop for as long, in whatever thread: it is done
    at once, which saves the way to a thread and back. What would take longer is cut up or done in
    another process.
    """

    name = "qdrant-edge"

    def __init__(self, folder: IndexFolder, record: FolderRecord, shard: Shard) -> None:
        self._folder = folder
        self._record = record
        self._shard = shard
        self._updates = ThreadPoolExecutor(1, "index-update")
        self._at_search = threading.Lock()
        """Held by a search, and while a replaced shard is closed: none still uses that."""
        self._compactions = ThreadPoolExecutor(1, "index-compaction")
        self._compacting = CompactingProcess()
        self._compaction: Future[None] | None = None
        self._compacts = False
        self._new_points = max(0, shard.count_points() - record.compacted_points)
        self._changed: set[str] | None = None
        """Ids updated since the compaction's copy was taken; `None` when none runs."""
        self._closed = False

    @classmethod
    async def open(
        cls, folder: Path, *, dimension: int, fingerprint: str, owner: str = ""
    ) -> "EdgeIndex":
        """Open the index in a folder, or make it there. The caller closes it.

        `owner` is the id of the log store that it is of; one of another store is refused.
        """
        return await asyncio.to_thread(cls._open_folder, folder, (fingerprint, dimension), owner)

    @classmethod
    def _open_folder(cls, folder: Path, model: tuple[str, int], owner: str) -> "EdgeIndex":
        held = IndexFolder(folder)
        try:
            record = held.read()
            if record is None:
                held.require_space(64 << 20)  # of a new shard: else a rebuild learns in vain
                held.remove_leftovers(None)
                path = held.new_shard()
                shard = Shard.create(path, dimension=model[1])
                record = FolderRecord(
                    owner=owner, fingerprint=model[0], dimension=model[1], shard=path.name
                )
                held.write(record)
            else:
                check_folder_owner(record.owner, owner, folder)
                check_model((record.fingerprint, record.dimension), model, where=str(folder))
                held.require_space_to_open(record.shard)
                shard = Shard.load(folder / record.shard)
            held.remove_leftovers(record.shard)
            return cls(held, record, shard)
        except BaseException:
            held.close()
            raise

    async def upsert_points(self, points: Sequence[IndexPoint]) -> None:
        """See `VectorIndex.upsert_points`. Costs some 50 µs a point and 0.3 ms a call."""
        for point in points:
            check_vector(point.vector, self._record.dimension)
        ids = [point.document_id for point in points]
        if ids:
            await self._run_update(ids, points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        if document_ids:
            await self._run_update(list(document_ids))

    async def search_points(self, queries: Sequence[IndexQuery]) -> list[list[Hit]]:
        """See `VectorIndex.search_points`. One pass over the index for all of them."""
        for query in queries:
            check_vector(query.vector, self._record.dimension)
        asked = [query for query in queries if not query.finds_nothing]
        if not asked:
            return [[] for _ in queries]
        self._check_open()
        with self._at_search:
            answers = iter(self._shard.search_points(asked))
        return [[] if query.finds_nothing else next(answers) for query in queries]

    async def count_points(self) -> int:
        self._check_open()
        with self._at_search:
            return self._shard.count_points()

    async def close(self) -> None:
        """See `VectorIndex.close`. A compaction that runs is dropped."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._close_shard)

    async def wait_compacted(self) -> None:
        """Wait until no compaction runs; for maintenance and tests."""
        if self._compaction is not None:
            await asyncio.wrap_future(self._compaction)

    def _check_open(self) -> None:
        if self._closed:
            raise VectorIndexError("this index is closed; open another")

    async def _run_update(self, document_ids: list[str], points: Sequence[IndexPoint] = ()) -> None:
        self._check_open()
        action = partial(self._apply_update, document_ids, points)
        await asyncio.get_running_loop().run_in_executor(self._updates, action)

    def _apply_update(self, document_ids: list[str], points: Sequence[IndexPoint] = ()) -> None:
        """Put or delete points, in the update thread; note what a compaction must copy."""
        self._folder.require_space()
        if (changed := self._changed) is not None:
            changed.update(document_ids)
        if points:
            self._shard.upsert_points(points)
        else:
            self._shard.delete(document_ids)
        self._new_points += len(points)
        if not self._compacts and is_worthwhile(
            new_points=self._new_points, compacted_points=self._record.compacted_points
        ):
            self._compacts = True
            self._compaction = self._compactions.submit(self._compact_shard)

    def _compact_shard(self) -> None:
        """Optimize a copy in another process and switch to it, in the compaction thread."""
        try:
            copy = self._updates.submit(self._take_copy).result()
            self._compacting.run(copy)
            compacted = Shard.load(copy)
            try:
                replaced = self._updates.submit(self._switch_to, compacted, copy.name).result()
            except BaseException:
                compacted.close()
                raise
            with self._at_search:
                replaced.close()
        except Exception as error:  # noqa: BLE001 - the index goes on without; the log says why
            if not self._closed:
                log.warning("vectors not compacted, searches stay slower: %s", error)
            self._changed = None
            self._new_points = 0  # try again after as many points more
        finally:
            self._folder.remove_leftovers(self._record.shard)
            self._compacts = False

    def _take_copy(self) -> Path:
        current = self._folder.path / self._record.shard
        self._folder.require_space(3 * size_on_disk(current))
        self._shard.flush_segments()
        self._changed = set()
        self._new_points = 0
        copy = self._folder.new_shard()
        shutil.copytree(current, copy)
        return copy

    def _switch_to(self, compacted: Shard, name: str) -> Shard:
        compacted.catch_up(self._shard, sorted(self._changed or ()))
        self._changed = None
        points = max(0, compacted.count_points() - self._new_points)
        record = self._record.model_copy(update={"shard": name, "compacted_points": points})
        self._folder.write(record)
        replaced, self._shard, self._record = self._shard, compacted, record
        return replaced

    def _close_shard(self) -> None:
        self._compacting.stop()
        # in this order: an update may begin a compaction, and that closes a shard in the last
        for executor in (self._updates, self._compactions):
            executor.shutdown()
        try:
            self._shard.close()
        finally:
            self._folder.close()


class CompactingProcess:
    """Optimizes a shard that no one has open, in a process that can be stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, shard: Path) -> None:
        """Blocks until done."""
        with self._lock:
            if self._stopped:
                raise VectorIndexError("the compaction was stopped")
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a path of ours
                [sys.executable, "-c", _OPTIMIZE, str(shard)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        _, output = self._process.communicate()
        if self._process.returncode != 0:
            reason = output.decode(errors="replace").strip().splitlines()[-1:]
            raise VectorIndexError(
                f"the compaction ended with {self._process.returncode}: {' '.join(reason)}"
            )

    def stop(self) -> None:
        """Kill it; `run` then raises, also if it is called only later."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def is_worthwhile(*, new_points: int, compacted_points: int) -> bool:
    """Return whether so many points have come that a search of everything would feel them."""
    return new_points >= max(MIN_NEW_POINTS, NEW_SHARE * compacted_points)
