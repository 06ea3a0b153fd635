"""One Qdrant Edge shard, blocking, and the folder that it lies in: all that calls the engine.

The library's surprises are kept in here (version 0.9):

- It holds the GIL during every call, so a call from any thread stops the event loop too. Updates
  are therefore cut into small operations, and what takes seconds (`optimize`) is left to another
  process (`CompactingProcess`).
- An update is in the write-ahead log when it returns, but not on the disk: that survives a killed
  process, not a power cut. `flush` writes everything, with the GIL held: 6 ms on an idle disk, 50
  to 250 ms on a busy one. `fsync` on the log's files from Python makes the log durable instead,
  and the shard replays it when it is loaded: 0.1 ms on an idle disk, GIL free.
- The log is a sparse file in a memory map: on a full disk the kernel would kill the process, so
  the code that updates a shard checks for space first (`IndexFolder`).
- A panic inside the library arrives as a `BaseException`.

The folder states who holds it, what is in it, and which shard is current:

lock           held by the one process that has the index open
index.json     format, model and current shard; written last, replaced atomically
shard-3f2a…/   the current shard; others are old and are removed
"""

import ctypes
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import qdrant_edge as qdrant
from pydantic import BaseModel, ConfigDict

from aftercall.files import replace_file, sync_folder
from retrieval.index import protocol as p

KEYWORDS = (p.WORKSPACE, p.KIND, p.TOOL, p.SERVER)
"""Payload fields with an index: those that questions filter by."""
WRITE_AHEAD_LOG = "wal"
CHUNK = 32
"""Points an operation: 0.7 ms with the GIL held."""
POINTS_PER_PAGE_OUT = 1_000
"""Points after which the pages of the log leave memory, 2 MB by then: they are written once, and
read again after a crash alone. Else the process grows by all of them until the next flush."""
POINTS_PER_FLUSH = 10_000
"""Points after which the log (20 MB by then) is folded into the segments. Rare, since a flush waits
for the disk with the GIL held; replaying so many after a crash takes 0.4 s."""


_MADV_PAGEOUT = 21
"""Of Linux, from 5.4 on: what is not on the disk is written first, so nothing is lost by it."""


def page_out(folder: Path) -> int:
    """Take the files of a folder that are mapped here out of memory; how many maps there were.

    They are read from the disk again where they are needed. Only Linux can do it.
    """
    found = 0
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        inside = f"{folder.resolve()}/"
        for line in Path("/proc/self/maps").read_text().splitlines():
            place, _, rest = line.partition(" ")
            if inside in rest:
                start, end = (int(each, 16) for each in place.split("-"))
                found += advise(start, end - start, _MADV_PAGEOUT) == 0
    return found


class Shard:
    """A shard that is open. One thread may update while another searches."""

    def __init__(self, shard: Any, folder: Path) -> None:
        self._shard = shard
        self._folder = folder
        self._unflushed = 0
        self._mapped = 0
        """Points whose part of the log may be in memory."""
        self._terms = p.TermEncoder()

    @classmethod
    def create(cls, folder: Path, *, dimension: int) -> "Shard":
        """Make an empty shard in a folder that does not exist yet."""
        keyword = qdrant.PayloadSchemaType.Keyword
        with _translate_errors("create the vector index"):
            folder.mkdir(mode=0o700, parents=True)
            shard = qdrant.EdgeShard.create(str(folder), _make_config(dimension))
            for field in KEYWORDS:
                shard.update(qdrant.UpdateOperation.create_field_index(field, keyword))
            shard.flush()
        return cls(shard, folder)

    @classmethod
    def load(cls, folder: Path) -> "Shard":
        """Open what `create` made, and replay its log: some 0.1 s at 50,000 points.

        What was replayed takes its space again, so it is folded in: one that is killed again and
        again would grow by its whole log each time.
        """
        with _translate_errors("open the vector index"):
            shard = cls(qdrant.EdgeShard.load(str(folder)), folder)
        shard.flush_segments()
        return shard

    def upsert_points(self, points: Sequence[p.IndexPoint]) -> None:
        """Insert or replace; durable when it returns."""
        for chunk in p.make_batches(points, CHUNK):
            with _translate_errors("add to the vector index"):
                made = [self._to_point(point) for point in chunk]
                self._shard.update(qdrant.UpdateOperation.upsert_points(made))
        self._make_durable(len(points))

    def delete(self, document_ids: Sequence[str]) -> None:
        """Remove; durable when it returns. Unknown ids do nothing."""
        for chunk in p.make_batches(document_ids, CHUNK):
            with _translate_errors("delete from the vector index"):
                self._shard.update(qdrant.UpdateOperation.delete_points([*chunk]))
        self._make_durable(len(document_ids))

    def search_points(self, queries: Sequence[p.IndexQuery]) -> list[list[p.Hit]]:
        """Answers in the order of the questions, each nearest first, ties by document id."""
        with _translate_errors("search the vector index"):
            requests = [self._to_requests(query) for query in queries]
            flat = [request for several in requests for request in several]
            answers = iter(self._shard.query_batch(qdrant.QueryBatchRequest(flat)))
            return [
                p.to_hits(query, *[next(answers) for _ in several])
                for query, several in zip(queries, requests, strict=True)
            ]

    def count_points(self) -> int:
        """Return how many points there are.

        Without a filter the library's estimate is their number, also after updates and deletes. To
        go through them took 8 ms at 120,000.
        """
        with _translate_errors("count the vectors"):
            return int(self._shard.count(qdrant.CountRequest(exact=False)))

    def catch_up(self, source: "Shard", document_ids: Sequence[str]) -> None:
        """Make these documents what they are in another shard, absent ones included."""
        for chunk in p.make_batches(document_ids, CHUNK):
            with _translate_errors("bring the vector index up to date"):
                shard = source._shard  # noqa: SLF001
                records = shard.retrieve(chunk, with_payload=True, with_vector=True)
                points = [qdrant.Point(row.id, row.vector, row.payload) for row in records]
                gone = set(chunk) - {str(row.id) for row in records}
                self._shard.update(qdrant.UpdateOperation.upsert_points(points))
                self._shard.update(qdrant.UpdateOperation.delete_points([*gone]))
        self.flush_segments()

    def flush_segments(self) -> None:
        """Write everything to the segments."""
        with _translate_errors("flush the vector index"):
            self._shard.flush()
        self._unflushed = 0

    def close(self) -> None:
        """Flush and let go of the files; closing twice does nothing."""
        with _translate_errors("close the vector index"):
            self._shard.close()

    def _make_durable(self, points: int) -> None:
        self._unflushed += points
        if self._unflushed >= POINTS_PER_FLUSH:
            self.flush_segments()
            return
        log = self._folder / WRITE_AHEAD_LOG
        try:
            for path in [*log.iterdir(), log]:
                # The library prepares the log's next file under a name that vanishes.
                with suppress(FileNotFoundError):
                    sync_folder(path)
        except OSError as error:
            raise p.VectorIndexError(f"cannot write the vector index to disk: {error}") from error
        self._mapped += points
        if self._mapped >= POINTS_PER_PAGE_OUT:
            self._mapped = 0
            page_out(log)

    def _to_point(self, point: p.IndexPoint) -> Any:
        vectors: dict[str, Any] = {p.DENSE: point.vector.tolist()}
        if (terms := self._terms.encode_document(point.terms)) is not None:
            vectors[p.TERMS] = terms
        return qdrant.Point(point.document_id, vectors, p.payload_of(point))

    def _to_requests(self, query: p.IndexQuery) -> list[Any]:
        only = _make_filter(query)
        dense = qdrant.Query.Nearest(query.vector.tolist(), p.DENSE)
        answer: dict[str, Any] = {
            "with_payload": p.OF_A_HIT, "with_vector": False,
            "score_threshold": query.least_similarity,
        }  # fmt: skip
        terms = self._terms.encode_query(query.terms)
        if terms is None:
            return [qdrant.QueryRequest(query=dense, filter=only, limit=query.limit, **answer)]
        sparse = qdrant.Query.Nearest(terms, p.TERMS)
        idf = qdrant.SearchParams(idf=qdrant.IdfParams(_make_filter(query.idf_corpus())))
        sides = [
            qdrant.Prefetch(query.limit, query=dense, filter=only),
            qdrant.Prefetch(query.limit, query=sparse, filter=only, params=idf),
        ]
        # Where each side has them all, what is rare is counted once, not thrice.
        if query.document_ids is not None and len(query.document_ids) <= query.limit:
            return [
                qdrant.QueryRequest(query=dense, filter=only, limit=query.limit, **answer),
                qdrant.QueryRequest(query=sparse, filter=only, limit=query.limit, params=idf),
            ]
        limit = 2 * query.limit
        return [
            qdrant.QueryRequest(query=dense, prefetches=sides, limit=limit, **answer),
            qdrant.QueryRequest(query=sparse, prefetches=sides, limit=limit, params=idf),
        ]


def _make_config(dimension: int) -> Any:
    return qdrant.EdgeConfig(
        vectors={
            p.DENSE: qdrant.EdgeVectorParams(
                size=dimension,
                distance=qdrant.Distance.Cosine,
                # half the memory and disk; the cosine of unit vectors changes by some 1e-5
                datatype=qdrant.VectorStorageDatatype.Float16,
            )
        },
        sparse_vectors={p.TERMS: qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
        hnsw_config=qdrant.HnswIndexConfig(
            m=16,  # both are the library's defaults
            ef_construct=100,
            full_scan_threshold=2_000,  # KiB of vectors below which what a filter leaves is scanned
            max_indexing_threads=1,  # compaction runs next to the service
        ),
        optimizers=qdrant.EdgeOptimizersConfig(
            default_segment_number=1,  # a search visits every segment
            indexing_threshold=2_000,  # KiB of vectors: about 2,600 of MiniLM's in half precision
        ),
    )


def _make_filter(query: p.IndexQuery) -> Any:
    must: list[Any] = [
        qdrant.FieldCondition(
            field, qdrant.MatchValue(values[0]) if len(values) == 1 else qdrant.MatchAny(values)
        )
        for field, values in query.field_conditions().items()
    ]
    if query.document_ids is not None:
        must.append(qdrant.HasIdCondition(set(query.document_ids)))
    return qdrant.Filter(must=must)


@contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    """Yield what the library, or its arguments' conversion, raises as `VectorIndexError`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        raise p.VectorIndexError(
            f"cannot {what}: {error}; if this persists, `aftercall rebuild` makes it anew"
        ) from error


RECORD = "index.json"
LOCK = "lock"
SHARD_PREFIX = "shard-"
MIN_FREE_BYTES = 128 * 1024 * 1024
"""Free space an update needs. The library's files grow by up to 32 MiB each, memory-mapped: were
the disk full, writing would kill the process."""
MIN_TO_OPEN_BYTES = MIN_FREE_BYTES // 2
"""Free space that opening takes, next to what the log holds: without 45 MiB or so it was killed."""
LOCK_PATIENCE_SECONDS = 2.0
"""A service that was killed a moment ago may not be gone yet."""


class FolderRecord(BaseModel):
    """What `index.json` states."""

    model_config = ConfigDict(frozen=True)

    format: Literal[2] = 2
    """Of the folder and of what is in the shard: payload, BM25's settings, precision."""
    owner: str
    """The id of the log store that the documents are of."""
    fingerprint: str
    """The model that made the vectors, as `Embedder.fingerprint`."""
    dimension: int
    shard: str
    """Name of the current shard's folder."""
    compacted_points: int = 0
    """Points in the shard when it was last compacted."""


class IndexFolder:
    """A folder that this process holds until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _acquire_lock(path)

    def read(self) -> FolderRecord | None:
        """Return the record; `None` for a folder without an index, or with a half-made one."""
        try:
            return FolderRecord.model_validate_json((self.path / RECORD).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise p.VectorIndexError(
                f"{self.path / RECORD} is damaged, or of another version of aftercall ({error}); "
                f"`aftercall rebuild` makes the vectors in {self.path} anew"
            ) from error

    def write(self, record: FolderRecord) -> None:
        """Replace the record at one stroke, on the disk when this returns."""
        shard = self.path / record.shard
        try:
            # A record on the disk names a shard on the disk; the shard renames files of its own.
            for path in (*shard.rglob("*"), shard):
                with suppress(FileNotFoundError):
                    sync_folder(path)
            content = record.model_dump_json(indent=2) + "\n"
            replace_file(self.path / RECORD, content.encode())
        except OSError as error:
            raise p.VectorIndexError(f"cannot write {self.path / RECORD}: {error}") from error

    def new_shard(self) -> Path:
        """Return a path for another shard, not there yet."""
        return self.path / f"{SHARD_PREFIX}{uuid.uuid4().hex[:12]}"

    def remove_leftovers(self, current: str | None) -> None:
        """Remove every shard but the current one: of a killed creation or compaction."""
        for path in self.path.glob(f"{SHARD_PREFIX}*"):
            if path.name != current:
                shutil.rmtree(path, ignore_errors=True)

    def require_space(
        self,
        further_bytes: int = 0,
        what: str = "add vectors: make space; a service goes on then, a rebuild is run again",
    ) -> None:
        """Raises `VectorIndexError` when the disk is nearly full."""
        free, needed = shutil.disk_usage(self.path).free, MIN_FREE_BYTES + further_bytes
        if free < needed:
            raise p.VectorIndexError(
                f"only {free >> 20} MiB are free on the disk of {self.path}, {needed >> 20} are "
                f"needed to {what}"
            )

    def require_space_to_open(self, shard: str) -> None:
        """Raise `VectorIndexError` where the log's next file and the folded log do not fit."""
        log = size_on_disk(self.path / shard / WRITE_AHEAD_LOG)
        further = MIN_TO_OPEN_BYTES + log - MIN_FREE_BYTES
        self.require_space(further, "open them: make space, and start again")

    def close(self) -> None:
        """Let go of the folder; closing twice does nothing."""
        self._lock.close()


def owner_of(path: Path) -> str | None:
    """Return the log store that an index's folder is of; None where no whole record states it."""
    try:
        return FolderRecord.model_validate_json((path / RECORD).read_bytes()).owner
    except (OSError, ValueError):
        return None


def check_folder_owner(made_for: str, owner: str, path: Path) -> None:
    """Raises `IndexOfAnotherStoreError` unless the folder is of this log store."""
    p.check_owner(
        made_for,
        owner,
        what=f"the vectors in {path} are",
        cure="Give each store a data folder of its own (AFTERCALL_DATA_DIR, --data-dir); if that "
        "store is no more, remove the folder",
    )


def remove_folder(path: Path, owner: str = "") -> None:
    """Remove an index's folder, if any; its record first: no crash leaves one without a shard.

    One that is damaged or half made goes too; one of another store is refused.
    """
    if not path.is_dir():
        return
    folder = IndexFolder(path)
    try:
        if (made_for := owner_of(path)) is not None:
            check_folder_owner(made_for, owner, path)
        (path / RECORD).unlink(missing_ok=True)
        sync_folder(path)
        folder.remove_leftovers(None)
        (path / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in it
            path.rmdir()
    finally:
        folder.close()


def _acquire_lock(path: Path) -> IO[str]:
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            # Agents stated what stands in it: it is for this user, whatever its own files are.
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            file = os.fdopen(os.open(path / LOCK, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A process removed the folder meanwhile and had this file locked: no lock any more.
                if os.path.samestat((path / LOCK).stat(), os.fstat(file.fileno())):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()
        except (BlockingIOError, FileNotFoundError, FileExistsError) as error:
            is_held = isinstance(error, BlockingIOError)
            if path.is_file() or (not is_held and time.monotonic() > deadline):
                raise p.VectorIndexError(f"cannot use {path} for vectors: {error}") from error
            if time.monotonic() > deadline:
                raise p.IndexInUseError(
                    f"another process has the vectors in {path} open: stop it first, "
                    "or give this one another --data-dir"
                ) from error
            if is_held:
                time.sleep(0.05)
        except OSError as error:
            raise p.VectorIndexError(f"cannot use {path} for vectors: {error}") from error


def size_on_disk(folder: Path) -> int:
    """Bytes that the files of a folder occupy."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
