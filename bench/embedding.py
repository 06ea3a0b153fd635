"""How fast texts become vectors, on ONNX Runtime and on torch.

    python -m bench.embedding [--without-torch] [--json]

ONNX Runtime and torch (sentence-transformers) embed the same texts in the same run, in turns.
"""

import argparse
import asyncio
import json
import platform
import statistics
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import onnxruntime
import psutil

from embeddings.embedders import OnnxEmbedder, SentenceTransformersEmbedder
from embeddings.protocol import Embedder

PEER = "sentence-transformers/all-MiniLM-L6-v2"
"""From the hub, or from its cache on this machine."""
SHORT_TEXT = "rag_query with topK: {0}; query: opening hours failed: topK must be <= {1}"
"""About 25 tokens; the numbers make every text another."""

BULK = 256
REPETITIONS = 60


@dataclass(frozen=True)
class EmbeddingRow:
    """One embedder: milliseconds for one short text, texts a second in bulk."""

    embedder: str
    short_p50_ms: float
    short_p95_ms: float
    bulk_texts_per_second: float
    resident_mib: int
    """Of the process once it has embedded; torch comes on top of ONNX Runtime."""


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


async def _milliseconds(action: Awaitable[object]) -> float:
    started = time.perf_counter()
    await action
    return 1_000 * (time.perf_counter() - started)


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def print_table(embedders: list[EmbeddingRow]) -> None:
    print(f"{'embedder':<28} {'short p50 ms':>12} {'p95 ms':>8} {'texts/s':>8} {'MiB':>6}")
    for row in embedders:
        print(f"{row.embedder:<28} {row.short_p50_ms:>12.2f} {row.short_p95_ms:>8.2f}", end=" ")
        print(f"{row.bulk_texts_per_second:>8.0f} {row.resident_mib:>6}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of embeddings.")
    parser.add_argument("--without-torch", action="store_true", help="leave out its row")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    arguments = parser.parse_args()
    embedders = asyncio.run(measure_embedders(with_torch=not arguments.without_torch))
    if not arguments.json:
        print_table(embedders)
        return
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    report = {
        "machine": f"{machine}, ONNX Runtime {onnxruntime.__version__}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "embedders": [asdict(row) for row in embedders],
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
