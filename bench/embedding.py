"""How fast texts become vectors and vectors are found.

    python -m bench.embedding [--points 1000 10000 50000] [--without-torch] [--json]

ONNX Runtime and torch (sentence-transformers) embed the same texts in the same run, in turns. The
index holds made-up vectors around the centre of one of 200 tools each, with 25 terms of a
vocabulary of 5,000; it is asked for one tool's documents, as `/suggest` does, and for everything.
"""

import argparse
import asyncio
import json
import platform
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnxruntime
import psutil
from numpy.typing import NDArray

from embeddings.embedders import OnnxEmbedder, SentenceTransformersEmbedder
from embeddings.protocol import Embedder
from retrieval.index.edge import CompactingProcess, EdgeIndex
from retrieval.index.edge_shard import Shard
from retrieval.index.protocol import IndexPoint, IndexQuery

PEER = "sentence-transformers/all-MiniLM-L6-v2"
"""From the hub, or from its cache on this machine."""
SHORT_TEXT = "rag_query with topK: {0}; query: opening hours failed: topK must be <= {1}"
"""About 25 tokens; the numbers make every text another."""

BULK = 256
REPETITIONS = 60
DIMENSION = 384
TOOLS = 200
BATCH = 500
QUERIES = 200
UPSERTS = 40
UPSERT_BATCHES = (1, 100, 500)


@dataclass(frozen=True)
class EmbeddingRow:
    """One embedder: milliseconds for one short text, texts a second in bulk."""

    embedder: str
    short_p50_ms: float
    short_p95_ms: float
    bulk_texts_per_second: float
    resident_mib: int
    """Of the process once it has embedded; torch comes on top of ONNX Runtime."""


@dataclass(frozen=True)
class IndexRow:
    """The index at a size: milliseconds per search, before and after compaction."""

    points: int
    tool_p50_ms: float
    everything_p50_ms: float
    compacted_tool_p50_ms: float
    compacted_everything_p50_ms: float
    compaction_s: float
    load_ms: float
    mib_on_disk: float


@dataclass(frozen=True)
class UpsertRow:
    """An acknowledged upsert, its flush avoided or made, and what the event loop feels of it."""

    batch: int
    p50_ms: float
    p99_ms: float
    flush_p50_ms: float
    """What writing the segments instead of the log would add to every call."""
    stall_p99_ms: float
    """How much later than asked the event loop woke during all these upserts."""


async def measure_embedders(*, with_torch: bool) -> list[EmbeddingRow]:
    """One row per embedder, the single texts embedded in turns."""
    embedders: list[Embedder] = [await OnnxEmbedder.open()]
    resident = [await _used_mib(embedders[0])]
    if with_torch:
        embedders.append(await SentenceTransformersEmbedder.open(PEER))
        resident.append(await _used_mib(embedders[1]))
    times: list[list[float]] = [[] for _ in embedders]
    for number in range(REPETITIONS):
        for embedder, taken in zip(embedders, times, strict=True):
            text = SHORT_TEXT.format(number, number % 7)
            taken.append(await _milliseconds(embedder.embed([text], "query")))
    bulk = [SHORT_TEXT.format(number, -number) for number in range(BULK)]
    rows = []
    for embedder, taken, mib in zip(embedders, times, resident, strict=True):
        bulk_ms = await _milliseconds(embedder.embed(bulk, "document"))
        rows.append(
            EmbeddingRow(
                embedder=type(embedder).__name__,
                short_p50_ms=_percentile(taken, 50),
                short_p95_ms=_percentile(taken, 95),
                bulk_texts_per_second=1_000 * BULK / bulk_ms,
                resident_mib=mib,
            )
        )
        await embedder.close()
    return rows


async def _used_mib(embedder: Embedder) -> int:
    await embedder.embed([SHORT_TEXT.format(number, 0) * 4 for number in range(64)], "document")
    return psutil.Process().memory_info().rss >> 20


class Documents:
    """Made-up documents and questions, the same in every run."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._centres = self._random.standard_normal((TOOLS, DIMENSION))
        self._words = np.array([f"word{number}" for number in range(5_000)])

    def points(self, count: int) -> list[IndexPoint]:
        """New documents of random tools."""
        tools = self._random.integers(TOOLS, size=count)
        return [
            IndexPoint(
                document_id=str(uuid.UUID(bytes=self._random.bytes(16))),
                workspace="default",
                kind="success",
                server_name="server",
                tool_name=f"tool{tool}",
                vector=self._near(tool),
                terms=" ".join(self._random.choice(self._words, 25)),
            )
            for tool in tools
        ]

    def query(self, *, of_tool: bool) -> IndexQuery:
        """A question near some tool's documents."""
        tool = int(self._random.integers(TOOLS))
        return IndexQuery(
            workspaces=("default",),
            kind="success",
            vector=self._near(tool),
            terms=" ".join(self._random.choice(self._words, 25)),
            limit=10,
            tool_name=f"tool{tool}" if of_tool else None,
        )

    def _near(self, tool: int) -> NDArray[np.float32]:
        vector = self._centres[tool] + self._random.standard_normal(DIMENSION)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def measure_index(folder: Path, points: int, documents: Documents) -> IndexRow:
    """A shard of that many points, searched as it was written and compacted."""
    shard = Shard.create(folder, dimension=DIMENSION)
    for start in range(0, points, BATCH):
        shard.upsert(documents.points(min(BATCH, points - start)))
    tool, everything = (_search_p50(shard, documents, of_tool=only) for only in (True, False))
    shard.close()
    started = time.perf_counter()
    CompactingProcess().run(folder)
    compaction_s = time.perf_counter() - started
    started = time.perf_counter()
    shard = Shard.load(folder)
    load_ms = 1_000 * (time.perf_counter() - started)
    row = IndexRow(
        points=points,
        tool_p50_ms=tool,
        everything_p50_ms=everything,
        compacted_tool_p50_ms=_search_p50(shard, documents, of_tool=True),
        compacted_everything_p50_ms=_search_p50(shard, documents, of_tool=False),
        compaction_s=compaction_s,
        load_ms=load_ms,
        mib_on_disk=sum(f.stat().st_blocks for f in folder.rglob("*") if f.is_file()) / 2_048,
    )
    shard.close()
    return row


def _search_p50(shard: Shard, documents: Documents, *, of_tool: bool) -> float:
    taken = []
    for _ in range(QUERIES):
        query = documents.query(of_tool=of_tool)
        started = time.perf_counter()
        shard.search([query])
        taken.append(1_000 * (time.perf_counter() - started))
    return _percentile(taken, 50)


async def measure_upserts(folder: Path, batch: int, documents: Documents) -> UpsertRow:
    """Through the adapter with its threads; the flush on a shard of its own."""
    batches = [documents.points(batch) for _ in range(UPSERTS)]
    index = await EdgeIndex.open(folder / "index", dimension=DIMENSION, fingerprint="bench@0")
    await index.upsert(documents.points(1_000))
    stalls: list[float] = []
    watch = asyncio.create_task(_watch_loop(stalls))
    taken = [await _milliseconds(index.upsert(points)) for points in batches]
    watch.cancel()
    await index.close()
    shard = Shard.create(folder / "shard", dimension=DIMENSION)
    shard.upsert(documents.points(1_000))
    flushes = []
    for points in batches:
        shard.upsert(points)
        started = time.perf_counter()
        shard.flush()
        flushes.append(1_000 * (time.perf_counter() - started))
    shard.close()
    return UpsertRow(
        batch=batch,
        p50_ms=_percentile(taken, 50),
        p99_ms=_percentile(taken, 99),
        flush_p50_ms=_percentile(flushes, 50),
        stall_p99_ms=_percentile(stalls, 99),
    )


async def _watch_loop(stalls: list[float], interval_s: float = 0.001) -> None:
    """How much later than asked the event loop wakes, in milliseconds."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(interval_s)
        stalls.append(1_000 * (time.perf_counter() - started - interval_s))


async def _milliseconds(action: Awaitable[object]) -> float:
    started = time.perf_counter()
    await action
    return 1_000 * (time.perf_counter() - started)


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def print_tables(
    embedders: list[EmbeddingRow], indexes: list[IndexRow], upserts: list[UpsertRow]
) -> None:
    print(f"{'embedder':<28} {'short p50 ms':>12} {'p95 ms':>8} {'texts/s':>8} {'MiB':>6}")
    for row in embedders:
        print(f"{row.embedder:<28} {row.short_p50_ms:>12.2f} {row.short_p95_ms:>8.2f}", end=" ")
        print(f"{row.bulk_texts_per_second:>8.0f} {row.resident_mib:>6}")
    if len(embedders) > 1:
        ratio = embedders[1].short_p50_ms / embedders[0].short_p50_ms
        print(f"one short text: ONNX Runtime is {ratio:.1f} times as fast as torch")
    print(f"\n{'points':>8} {'by tool':>8} {'all':>8} | {'compacted':>9} {'all':>8}", end=" | ")
    print(f"{'compaction s':>12} {'load ms':>8} {'MiB':>6}   (p50 ms a search)")
    for shard in indexes:
        print(
            f"{shard.points:>8,} {shard.tool_p50_ms:>8.2f} {shard.everything_p50_ms:>8.2f}", end=""
        )
        print(f" | {shard.compacted_tool_p50_ms:>9.2f}", end="")
        print(f" {shard.compacted_everything_p50_ms:>8.2f} | {shard.compaction_s:>12.1f}", end="")
        print(f" {shard.load_ms:>8.0f} {shard.mib_on_disk:>6.0f}")
    print(f"\n{'upsert of':>9} {'p50 ms':>8} {'p99 ms':>8} {'+ flush p50 ms':>14}", end="")
    print(f" {'loop stall p99 ms':>18}")
    for upsert in upserts:
        print(f"{upsert.batch:>9} {upsert.p50_ms:>8.2f} {upsert.p99_ms:>8.2f}", end="")
        print(f" {upsert.flush_p50_ms:>14.2f} {upsert.stall_p99_ms:>18.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of embeddings and of the vector index.")
    parser.add_argument("--points", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--without-torch", action="store_true", help="leave out its row")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    arguments = parser.parse_args()
    embedders = asyncio.run(measure_embedders(with_torch=not arguments.without_torch))
    documents = Documents()
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        indexes = [
            measure_index(Path(name) / f"points-{points}", points, documents)
            for points in arguments.points
        ]
        upserts = [
            asyncio.run(measure_upserts(Path(name) / f"batch-{batch}", batch, documents))
            for batch in UPSERT_BATCHES
        ]
    if arguments.json:
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        report = {
            "machine": f"{machine}, ONNX Runtime {onnxruntime.__version__}",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "embedders": [asdict(row) for row in embedders],
            "index": [asdict(row) for row in indexes],
            "upserts": [asdict(row) for row in upserts],
        }
        print(json.dumps(report, indent=2))
    else:
        print_tables(embedders, indexes, upserts)


if __name__ == "__main__":
    main()
