"""Works on a store beside another process that has it open (a child process).

Prints a line for what it did; `append` ends by itself, `rebuild` goes on until it is killed.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from mongo.protocol import LogStore
from mongo.records import DocumentRow, IndexCommit, KnowledgeRow
from mongo.sqlite import open_sqlite_store
from tests.mongo.log_store_samples import (
    SEARCH,
    WORKSPACE,
    make_executions,
    make_id,
    make_mark,
    make_tool,
)

BATCHES = 60
DOCUMENTS = 3_000


async def append(store: LogStore) -> None:
    for turn in range(BATCHES):
        # Half of each batch is what the other process appends too.
        await store.append(WORKSPACE, make_executions(10, first=5 + 10 * turn))
        await store.add_mark(make_mark(turn))
    await store.put_tool(make_tool("beside"))
    sys.stdout.write("done\n")


async def rebuild(store: LogStore) -> None:
    for _ in count():
        shadow = await store.open_shadow()
        generation = await shadow.generation()
        data = str(generation).encode()
        queued = await shadow.pending(WORKSPACE, 10)
        await shadow.commit_index(
            IndexCommit(
                WORKSPACE,
                generation,
                positions=[each.position for each in queued],
                knowledge=[KnowledgeRow(SEARCH, data)],
                documents=[DocumentRow(WORKSPACE, make_id(n), data) for n in range(DOCUMENTS)],
            )
        )
        await store.adopt(shadow, {"index": str(generation)})
        sys.stdout.write(f"{generation}\n")
        sys.stdout.flush()


async def main(what: str, data_dir: Path) -> None:
    async with await open_sqlite_store(data_dir, beside=True) as store:
        await {"append": append, "rebuild": rebuild}[what](store)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
