"""How fast the embedded log store is: durable appends, the indexing queue, counting.

    python bench/log_store.py [--executions 20000] [--json]

Each append row stands beside a floor measured in the same run: the same JSON put into a bare table
(no index, no queue, no counters) by one blocking connection with one COMMIT per batch.
"""

import argparse
import asyncio
import json
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from aftercall.json_values import content_hash
from aftercall.models import Execution, ExecutionError
from mongo.records import (
    DocumentRow,
    IndexCommit,
    KnowledgeRow,
    NewExecution,
    ToolKey,
)
from mongo.sqlite import FILE_NAME, SqliteLogStore, open_sqlite_store

WORKSPACE = "default"
TOOLS = 200
INDEX_BATCH = 500
LOADS = (
    (1, 1, "free"),
    (1, 64, "free"),
    (100, 1, "free"),
    (100, 8, "free"),
    (1000, 1, "free"),
    (1000, 4, "free"),
    (100, 8, "busy"),
    (100, 8, "busy, 0.5 ms"),
)
"""Executions per call, how many callers append at once, and what the event loop does meanwhile:
computes without a pause or not, and how soon threads may ask it for the interpreter lock."""

SHADOW_DOCUMENTS = 100_000
"""Of 1 kB each, which a rebuild learns before it switches."""

BUSY_SWITCH_S = 0.0005
"""`sys.setswitchinterval` of the last row; Python's default is 5 ms."""

STARVED_SHARE = 0.05
"""Of the executions, for the row that starves: it may come down to some 50 a second."""

BUSY_FOR_S = 0.002
"""Longest callback of the busy loop: what parsing a request of some size takes."""


@dataclass(frozen=True)
class AppendRow:
    """Durable appends: rates in executions a second, times in milliseconds per call."""

    batch: int
    callers: int
    loop: str
    per_second: float
    floor_per_second: float
    p50_ms: float
    p99_ms: float
    loop_lag_p99_ms: float

    @property
    def ratio(self) -> float:
        """Of the floor; above 1 is faster than it."""
        return self.per_second / self.floor_per_second


@dataclass(frozen=True)
class QueueRow:
    """The indexing queue and the counters, at the size the appends left."""

    executions: int
    indexed_per_second: float
    counts_p50_ms: float
    counts_p99_ms: float
    shadow_ms: float
    """To open one, all that is in the log queued."""
    adopt_ms: float
    """To switch to a shadow of `SHADOW_DOCUMENTS` documents; others' writes wait so long."""
    bytes_per_execution: float


def make_execution(number: int) -> NewExecution:
    """A call as a gateway records it: 700 to 800 bytes of JSON, every fourth a failure."""
    has_failed = number % 4 == 0
    execution = Execution(
        execution_id=str(uuid4()),
        timestamp=datetime.now(UTC),
        agent="librarian",
        server_name="rag-server",
        tool_name=f"rag_query_{number % TOOLS}",
        parameters={"query": f"what do we know about subject {number}", "topK": number % 60},
        context="collect sources for the weekly report on tool reliability " * 2,
        outcome="failure" if has_failed else "success",
        duration_ms=245.0,
        error=ExecutionError(type="ValidationError", message="topK must be <= 10")
        if has_failed
        else None,
        result=None if has_failed else {"hits": [{"id": n, "score": 0.5} for n in range(8)]},
        session_id=f"session-{number // 20}",
        sequence=number % 20,
    )
    return NewExecution(
        execution, content_hash(execution.model_dump(mode="json")), schema_hash="a" * 64
    )


def batches_of(executions: list[NewExecution], size: int) -> list[list[NewExecution]]:
    """Consecutive batches, the last one perhaps smaller."""
    return [executions[start : start + size] for start in range(0, len(executions), size)]


def measure_floor(folder: Path, batches: list[list[NewExecution]]) -> float:
    """Executions a second into a bare table, one blocking COMMIT per batch."""
    with closing(sqlite3.connect(folder / "floor.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS floor (data TEXT)")
        started = time.perf_counter()
        for batch in batches:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO floor VALUES (?)",
                [(new.execution.model_dump_json(),) for new in batch],
            )
            connection.execute("COMMIT")
        return sum(map(len, batches)) / (time.perf_counter() - started)


async def measure_append(
    store: SqliteLogStore, folder: Path, *, batch: int, callers: int, loop: str, total: int
) -> AppendRow:
    """Rate and latency of `callers` that append `total` executions between them."""
    if loop == "busy":
        total = max(10 * batch, int(STARVED_SHARE * total))
    batches = batches_of([make_execution(number) for number in range(total)], batch)
    floor = await asyncio.to_thread(measure_floor, folder, batches)
    calls_ms: list[float] = []
    lags_ms: list[float] = []

    async def caller(own: Iterator[list[NewExecution]]) -> None:
        for executions in own:
            started = time.perf_counter()
            await store.append(WORKSPACE, executions)
            calls_ms.append(1000 * (time.perf_counter() - started))

    beside = [asyncio.create_task(watch_loop(lags_ms))]
    if loop != "free":
        beside.append(asyncio.create_task(keep_busy()))
    switch_s = sys.getswitchinterval()
    if loop == "busy, 0.5 ms":
        sys.setswitchinterval(BUSY_SWITCH_S)
    work = iter(batches)
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller(work))
    elapsed = time.perf_counter() - started
    sys.setswitchinterval(switch_s)
    for task in beside:
        task.cancel()
    return AppendRow(
        batch=batch,
        callers=callers,
        loop=loop,
        per_second=total / elapsed,
        floor_per_second=floor,
        p50_ms=percentile(calls_ms, 50),
        p99_ms=percentile(calls_ms, 99),
        loop_lag_p99_ms=percentile(lags_ms, 99),
    )


async def watch_loop(lags_ms: list[float], interval_s: float = 0.002) -> None:
    """How much later than asked the event loop wakes, in milliseconds."""
    while True:
        started = time.perf_counter()
        await asyncio.sleep(interval_s)
        lags_ms.append(1000 * (time.perf_counter() - started - interval_s))


async def keep_busy() -> None:
    """Callbacks of random length without a pause, as from a service under full load."""
    chance = random.Random(0)  # not for secrets
    while True:
        until = time.perf_counter() + chance.uniform(0, BUSY_FOR_S)
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)


async def measure_queue(store: SqliteLogStore, folder: Path) -> QueueRow:
    """Draining the queue as the indexer does, with knowledge and documents for each batch."""
    counts_ms = []
    for _ in range(200):
        started = time.perf_counter()
        counts = await store.counts()
        counts_ms.append(1000 * (time.perf_counter() - started))
    started = time.perf_counter()
    generation = await store.generation()
    while pending := await store.pending(WORKSPACE, INDEX_BATCH):
        tools = {stored.tool_key for stored in pending}
        await store.commit_index(
            IndexCommit(
                WORKSPACE,
                generation,
                positions=[stored.position for stored in pending],
                knowledge=[KnowledgeRow(tool, b"x" * 4000) for tool in tools],
                documents=[document_of(tool) for tool in tools],
            )
        )
    drained = time.perf_counter() - started
    size = size_of(folder)
    shadow_ms, adopt_ms = await measure_switch(store)
    return QueueRow(
        executions=counts.executions,
        indexed_per_second=counts.pending / drained,
        counts_p50_ms=percentile(counts_ms, 50),
        counts_p99_ms=percentile(counts_ms, 99),
        shadow_ms=shadow_ms,
        adopt_ms=adopt_ms,
        bytes_per_execution=size / counts.executions,
    )


async def measure_switch(store: SqliteLogStore) -> tuple[float, float]:
    """Milliseconds to open a shadow, and to switch to it after it has learned from everything."""
    started = time.perf_counter()
    shadow = await store.open_shadow()
    shadow_ms = 1000 * (time.perf_counter() - started)
    generation = await shadow.generation()
    for first in range(0, SHADOW_DOCUMENTS, INDEX_BATCH):
        queued = await shadow.pending(WORKSPACE, INDEX_BATCH)
        documents = [
            DocumentRow(WORKSPACE, str(uuid4()), b"x" * 1000, is_new=True)
            for _ in range(min(INDEX_BATCH, SHADOW_DOCUMENTS - first))
        ]
        positions = [stored.position for stored in queued]
        await shadow.commit_index(
            IndexCommit(WORKSPACE, generation, positions=positions, documents=documents)
        )
        await shadow.mark_embedded(await shadow.pending_vectors(WORKSPACE, INDEX_BATCH))
    started = time.perf_counter()
    await store.adopt(shadow, {})
    return shadow_ms, 1000 * (time.perf_counter() - started)


def size_of(folder: Path) -> int:
    """Bytes of the store's file and its log."""
    return sum(path.stat().st_size for path in folder.glob(f"{FILE_NAME}*"))


def document_of(tool: ToolKey) -> DocumentRow:
    """One distinct document per tool, as repeated calls give."""
    return DocumentRow(tool.workspace, content_hash(list(tool)), b"x" * 1000)


def percentile(values: list[float], percent: int) -> float:
    """By linear interpolation; 0 without values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def print_table(appends: list[AppendRow], queue: QueueRow) -> None:
    print(
        f"{'batch':>6} {'callers':>7} {'loop':>12} {'exec/s':>9} {'floor/s':>9} {'ratio':>6}",
        end=" ",
    )
    print(f"{'p50 ms':>8} {'p99 ms':>8} {'loop lag p99 ms':>16}")
    for row in appends:
        print(f"{row.batch:>6} {row.callers:>7} {row.loop:>12} {row.per_second:>9,.0f}", end=" ")
        print(f"{row.floor_per_second:>9,.0f} {row.ratio:>6.2f}", end=" ")
        print(f"{row.p50_ms:>8.2f} {row.p99_ms:>8.2f} {row.loop_lag_p99_ms:>16.2f}")
    print(f"\nat {queue.executions:,} executions:")
    print(f"  pending + commit_index  {queue.indexed_per_second:,.0f} executions/s")
    print(f"  counts()                p50 {queue.counts_p50_ms:.2f} ms", end=", ")
    print(f"p99 {queue.counts_p99_ms:.2f} ms")
    print(f"  open_shadow             {queue.shadow_ms:,.0f} ms")
    print(f"  adopt, {SHADOW_DOCUMENTS:,} documents  {queue.adopt_ms:,.0f} ms")
    print(f"  on disk                 {queue.bytes_per_execution:,.0f} bytes/execution")


async def measure(total: int) -> tuple[list[AppendRow], QueueRow]:
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        async with await open_sqlite_store(folder) as store:
            appends = [
                # A lone caller waits for each fsync in turn; a tenth of the rows says as much.
                await measure_append(
                    store,
                    folder,
                    batch=batch,
                    callers=callers,
                    loop=loop,
                    total=total // 10 if batch == callers == 1 else total,
                )
                for batch, callers, loop in LOADS
            ]
            return appends, await measure_queue(store, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the embedded log store.")
    parser.add_argument("--executions", type=int, default=20_000, help="appended per row")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    arguments = parser.parse_args()
    appends, queue = asyncio.run(measure(arguments.executions))
    if arguments.json:
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        rows = [asdict(row) | {"ratio": row.ratio} for row in appends]
        print(
            json.dumps(
                {
                    "machine": f"{machine}, SQLite {sqlite3.sqlite_version}",
                    "date": datetime.now(UTC).isoformat(timespec="seconds"),
                    "appends": rows,
                    "queue": asdict(queue),
                },
                indent=2,
            )
        )
    else:
        print_table(appends, queue)


if __name__ == "__main__":
    main()
