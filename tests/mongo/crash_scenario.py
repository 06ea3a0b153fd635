"""Appends, commands and learns without end, printing what is acknowledged (a child process)."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from mongo.protocol import Store
from mongo.records import Commit, Counter, Cursor, Row
from mongo.sqlite.store import open_sqlite_store
from tests.mongo.store_samples import WORKSPACE, make_command, make_events

CALLERS = 8


async def append_for_ever(store: Store, first: int) -> None:
    for turn in count():
        batch = make_events(1 + turn % 10, first=first + 10 * turn)
        verdicts = await store.events.append(WORKSPACE, batch)
        for event, verdict in zip(batch, verdicts, strict=True):
            if verdict == "accepted":
                sys.stdout.write(f"{event.id}\n")
        sys.stdout.flush()


async def command_for_ever(store: Store, first: int) -> None:
    for number in count(first):
        event, row = make_command(number, f"t-{number % 7}")
        if await store.events.append(WORKSPACE, [event], [row]) == ["accepted"]:
            sys.stdout.write(f"command {event.id}\n")
        sys.stdout.flush()


async def learn_for_ever(store: Store) -> None:
    while True:
        cursor = (await store.knowledge.cursors()).get(WORKSPACE, Cursor())
        events = await store.events.after(WORKSPACE, cursor.position, 20)
        if not events:
            await asyncio.sleep(0)
            continue
        await store.knowledge.commit(
            Commit(
                WORKSPACE,
                [Row("document", event.id) for event in events],
                counters={Counter("calls", 1): len(events)},
                moved=(cursor.position, events[-1].position),
            )
        )


async def main(data_dir: Path, round_number: int) -> None:
    store = await open_sqlite_store(data_dir)
    async with asyncio.TaskGroup() as group:
        for caller in range(CALLERS):
            group.create_task(
                append_for_ever(store, 1_000_000_000 * (round_number + 1) + 1_000_000 * caller)
            )
        group.create_task(command_for_ever(store, 1_000_000 * round_number))
        group.create_task(learn_for_ever(store))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
