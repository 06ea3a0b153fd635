"""How fast the embedded log store is: durable appends, the way to the learner, counting.

    python -m bench.log_store [--executions 20000] [--json]

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
from mongo.contents import execution_event
from mongo.records import Commit, Event, Row
from mongo.sqlite.store import SqliteStore, open_sqlite_store
from retrieval.log import counts as counts_of
from retrieval.memory import tool_row

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
)
"""Executions per call, how many callers append at once, and whether the event loop computes
meanwhile without a pause."""

GENERATION_DOCUMENTS = 100_000
"""Of 1 kB each, which a rebuild learns before it switches."""

BUSY_SWITCH_S = 0.0005
"""`sys.setswitchinterval` beside a busy loop, as the service sets it. With Python's 5 ms, of which
each statement waits for one or more, some ten executions a second are written."""

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
    """Learning and the counters, at the size the appends left."""

    executions: int
    indexed_per_second: float
    counts_p50_ms: float
    counts_p99_ms: float
    opened_ms: float
    """To open a new generation."""
    switched_ms: float
    """To switch to a generation of `GENERATION_DOCUMENTS` documents."""
    bytes_per_execution: float


def make_execution(number: int) -> Event:
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
    return execution_event(
        WORKSPACE,
        execution,
        content_hash=content_hash(execution.model_dump(mode="json")),
        schema_hash="a" * 64,
        input_schema=None,
    )


def batches_of(executions: list[Event], size: int) -> list[list[Event]]:
    """Consecutive batches, the last one perhaps smaller."""
    return [executions[start : start + size] for start in range(0, len(executions), size)]


def measure_floor(folder: Path, batches: list[list[Event]]) -> float:
    """Executions a second into a bare table, one blocking COMMIT per batch."""
    with closing(sqlite3.connect(folder / "floor.sqlite3", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS floor (data TEXT)")
        started = time.perf_counter()
        for batch in batches:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO floor VALUES (?)", [(new.data,) for new in batch])
            connection.execute("COMMIT")
        return sum(map(len, batches)) / (time.perf_counter() - started)


async def measure_append(
    store: SqliteStore, folder: Path, *, batch: int, callers: int, loop: str, total: int
) -> AppendRow:
    """Rate and latency of `callers` that append `total` executions between them."""
    batches = batches_of([make_execution(number) for number in range(total)], batch)
    floor = await asyncio.to_thread(measure_floor, folder, batches)
    calls_ms: list[float] = []
    lags_ms: list[float] = []

    async def caller(own: Iterator[list[Event]]) -> None:
        for executions in own:
            started = time.perf_counter()
            await store.events.append(WORKSPACE, executions)
            calls_ms.append(1000 * (time.perf_counter() - started))

    beside = [asyncio.create_task(watch_loop(lags_ms))]
    switch_s = sys.getswitchinterval()
    if loop == "busy":
        beside.append(asyncio.create_task(keep_busy()))
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


async def measure_queue(store: SqliteStore, folder: Path) -> QueueRow:
    """Reading and committing as the learner does, with knowledge and documents for each batch."""
    counts_ms = []
    for _ in range(200):
        started = time.perf_counter()
        counts = await counts_of(store)
        counts_ms.append(1000 * (time.perf_counter() - started))
    started = time.perf_counter()
    position = 0
    while events := await store.events.after(WORKSPACE, position, INDEX_BATCH):
        tools = {event.tool for event in events if event.tool is not None}
        rows = [Row("knowledge", tool_row(tool), b"x" * 4000, tool) for tool in tools]
        rows += [Row("document", tool_row(tool), b"x" * 1000, tool) for tool in tools]
        moved = position, events[-1].position
        await store.knowledge.commit(Commit(WORKSPACE, put=rows, moved=moved))
        position = events[-1].position
    drained = time.perf_counter() - started
    size = size_of(folder)
    opened_ms, switched_ms = await measure_switch(store)
    return QueueRow(
        executions=counts.executions,
        indexed_per_second=counts.executions / drained,
        counts_p50_ms=percentile(counts_ms, 50),
        counts_p99_ms=percentile(counts_ms, 99),
        opened_ms=opened_ms,
        switched_ms=switched_ms,
        bytes_per_execution=size / counts.executions,
    )


async def measure_switch(store: SqliteStore) -> tuple[float, float]:
    """Milliseconds to open a generation, and to switch to it when it is full."""
    started = time.perf_counter()
    number = store.knowledge.generation + 1
    anew = await store.open_generation(number)
    opened_ms = 1000 * (time.perf_counter() - started)
    for _ in range(0, GENERATION_DOCUMENTS, INDEX_BATCH):
        rows = [Row("document", str(uuid4()), b"x" * 1000) for _ in range(INDEX_BATCH)]
        await anew.commit(Commit(WORKSPACE, put=rows))
    started = time.perf_counter()
    await store.switch(number, {})
    return opened_ms, 1000 * (time.perf_counter() - started)


def size_of(folder: Path) -> int:
    """Bytes of the store's files."""
    return sum(path.stat().st_size for path in folder.glob("*.sqlite3*"))


def percentile(values: list[float], percent: int) -> float:
    """By linear interpolation; 0 without values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def print_table(appends: list[AppendRow], queue: QueueRow) -> None:
    print(
        f"{'batch':>6} {'callers':>7} {'loop':>5} {'exec/s':>9} {'floor/s':>9} {'ratio':>6}",
        end=" ",
    )
    print(f"{'p50 ms':>8} {'p99 ms':>8} {'loop lag p99 ms':>16}")
    for row in appends:
        print(f"{row.batch:>6} {row.callers:>7} {row.loop:>5} {row.per_second:>9,.0f}", end=" ")
        print(f"{row.floor_per_second:>9,.0f} {row.ratio:>6.2f}", end=" ")
        print(f"{row.p50_ms:>8.2f} {row.p99_ms:>8.2f} {row.loop_lag_p99_ms:>16.2f}")
    print(f"\nat {queue.executions:,} executions:")
    print(f"  after + commit          {queue.indexed_per_second:,.0f} executions/s")
    print(f"  counts()                p50 {queue.counts_p50_ms:.2f} ms", end=", ")
    print(f"p99 {queue.counts_p99_ms:.2f} ms")
    print(f"  open_generation         {queue.opened_ms:,.0f} ms")
    print(f"  switch, {GENERATION_DOCUMENTS:,} documents {queue.switched_ms:,.0f} ms")
    print(f"  on disk                 {queue.bytes_per_execution:,.0f} bytes/execution")


async def measure(total: int) -> tuple[list[AppendRow], QueueRow]:
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        store = await open_sqlite_store(folder)
        try:
            appends = [
                # These wait for each fsync or switch in turn; a tenth of the rows says as much.
                await measure_append(
                    store,
                    folder,
                    batch=batch,
                    callers=callers,
                    loop=loop,
                    total=total // 10 if batch == callers == 1 or loop == "busy" else total,
                )
                for batch, callers, loop in LOADS
            ]
            return appends, await measure_queue(store, folder)
        finally:
            await store.close()


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
