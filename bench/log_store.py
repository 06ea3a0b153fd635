"""How fast the embedded log store is: durable appends, also beside a busy event loop.

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
from mongo.records import Event
from mongo.sqlite.store import SqliteStore, open_sqlite_store

WORKSPACE = "default"
TOOLS = 200
LOADS = ((100, 1, "free"), (100, 8, "free"), (100, 8, "busy"))
"""Executions per call, how many callers append at once, and whether the event loop computes
meanwhile without a pause."""

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


def percentile(values: list[float], percent: int) -> float:
    """By linear interpolation; 0 without values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def print_table(appends: list[AppendRow]) -> None:
    print(
        f"{'batch':>6} {'callers':>7} {'loop':>5} {'exec/s':>9} {'floor/s':>9} {'ratio':>6}",
        end=" ",
    )
    print(f"{'p50 ms':>8} {'p99 ms':>8} {'loop lag p99 ms':>16}")
    for row in appends:
        print(f"{row.batch:>6} {row.callers:>7} {row.loop:>5} {row.per_second:>9,.0f}", end=" ")
        print(f"{row.floor_per_second:>9,.0f} {row.ratio:>6.2f}", end=" ")
        print(f"{row.p50_ms:>8.2f} {row.p99_ms:>8.2f} {row.loop_lag_p99_ms:>16.2f}")


async def measure(total: int) -> list[AppendRow]:
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as name:
        folder = Path(name)
        store = await open_sqlite_store(folder)
        try:
            return [
                await measure_append(
                    store, folder, batch=batch, callers=callers, loop=loop,
                    # Each append waits for a switch of threads; a tenth of the rows says as much.
                    total=total // 10 if loop == "busy" else total,
                )
                for batch, callers, loop in LOADS
            ]  # fmt: skip
        finally:
            await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the embedded log store.")
    parser.add_argument("--executions", type=int, default=20_000, help="appended per row")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    arguments = parser.parse_args()
    appends = asyncio.run(measure(arguments.executions))
    if not arguments.json:
        print_table(appends)
        return
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    figures = {
        "machine": f"{machine}, SQLite {sqlite3.sqlite_version}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "appends": [asdict(row) | {"ratio": row.ratio} for row in appends],
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
