"""Works on a store beside another process that has it open (a child process).

Prints a line for what it did; `append` ends by itself, `rebuild` goes on until it is killed.
"""

import asyncio
import sys
from itertools import count
from pathlib import Path

from mongo.protocol import Store
from mongo.records import Commit, Row
from mongo.sqlite.store import open_sqlite_store
from tests.mongo.store_samples import WORKSPACE, closing, make_command, make_events

BATCHES = 60
ROWS = 3_000


async def append(store: Store) -> None:
    for turn in range(BATCHES):
        # Half of each batch is what the other process appends too.
        await store.events.append(WORKSPACE, make_events(10, first=5 + 10 * turn))
    event, row = make_command(0, "beside")
    await store.events.append(WORKSPACE, [event], [row])
    sys.stdout.write("done\n")


async def rebuild(store: Store) -> None:
    for _ in count():
        await store.refresh()
        number = store.knowledge.generation + 1
        beside = await store.open_generation(number)
        data = str(number).encode()
        rows = [Row("document", f"d-{each}", data) for each in range(ROWS)]
        await beside.commit(Commit(WORKSPACE, rows, moved=(0, number)))
        await store.switch(number, {"index": str(number)})
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


async def main(what: str, data_dir: Path) -> None:
    async with closing(await open_sqlite_store(data_dir, beside=True)) as store:
        await {"append": append, "rebuild": rebuild}[what](store)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
