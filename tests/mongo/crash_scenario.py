"""Appends and indexes without end, printing each id once it is acknowledged (a child process)."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit
from mongo.sqlite import open_sqlite_store
from tests.mongo.log_store_samples import WORKSPACE, make_executions

CALLERS = 8


async def append_for_ever(store: LogStore, first: int) -> None:
    for turn in count():
        batch = make_executions(1 + turn % 10, first=first + 10 * turn)
        verdicts = await store.append(WORKSPACE, batch)
        for new, verdict in zip(batch, verdicts, strict=True):
            if verdict == "accepted":
                sys.stdout.write(f"{new.execution.execution_id}\n")
        sys.stdout.flush()


async def index_for_ever(store: LogStore) -> None:
    while True:
        queued = await store.pending(20)
        await store.commit_index(
            IndexCommit(
                positions=[each.position for each in queued],
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
        group.create_task(index_for_ever(store))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
