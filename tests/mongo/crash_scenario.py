"""Appends, marks and indexes without end, printing what is acknowledged (a child process)."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from mongo.protocol import LogStore
from mongo.records import DocumentRow, HealthRow, IndexCommit, StatisticsRow
from mongo.sqlite import open_sqlite_store
from tests.mongo.log_store_samples import (
    SEARCH,
    START,
    WORKSPACE,
    make_correction,
    make_executions,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)

CALLERS = 8


async def append_for_ever(store: LogStore, first: int) -> None:
    for turn in count():
        batch = make_executions(1 + turn % 10, first=first + 10 * turn)
        verdicts = await store.append(WORKSPACE, batch)
        for new, verdict in zip(batch, verdicts, strict=True):
            if verdict == "accepted":
                sys.stdout.write(f"{new.execution.execution_id}\n")
        sys.stdout.flush()


async def mark_for_ever(store: LogStore, first: int) -> None:
    for number in count(first):
        if await store.add_mark(make_mark(number)):
            sys.stdout.write(f"mark {make_id(number)}\n")
        if await store.add_correction(make_correction(number)):
            sys.stdout.write(f"correction {make_id(number)}\n")
        await store.put_tool(make_tool(f"t-{number % 7}", description=str(number)))
        await store.delete_tool(WORKSPACE, f"t-{(number - 1) % 7}")
        await store.change_promotions([make_promotion_event("search", f"1.{number}.0")])
        sys.stdout.flush()


async def index_for_ever(store: LogStore) -> None:
    while True:
        queued = await store.pending(WORKSPACE, 20)
        marks = await store.pending_marks(WORKSPACE, 5)
        corrections = await store.pending_corrections(WORKSPACE, 5)
        tools = await store.changed_tools(WORKSPACE, 2)
        promotions = await store.pending_promotions(WORKSPACE, 5)
        known = await store.get_statistics([SEARCH])
        counted = int(known[0].data) if known else 0
        health = await store.get_health([SEARCH])
        corrected = int(health[0].data) if health else 0
        await store.commit_index(
            IndexCommit(
                WORKSPACE,
                1,
                positions=[each.position for each in queued],
                marks=[each.position for each in marks],
                changed_tools=[each.position for each in tools],
                promotions=[each.position for each in promotions],
                corrections=[(each.position, SEARCH) for each in corrections],
                health=[HealthRow(SEARCH, str(corrected + len(corrections)).encode(), START)],
                statistics=[StatisticsRow(SEARCH, str(counted + len(marks)).encode())],
                documents=[
                    DocumentRow(each.workspace, each.execution.execution_id, b"learned")
                    for each in queued
                ],
            )
        )


async def main(data_dir: Path, round_number: int) -> None:
    store = await open_sqlite_store(data_dir)
    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            group.create_task(
                append_for_ever(store, 1_000_000_000 * round_number + 1_000_000 * caller)
            )
        group.create_task(mark_for_ever(store, 1_000_000 * round_number))
        group.create_task(index_for_ever(store))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
