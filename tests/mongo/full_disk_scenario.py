"""Fills a small file system under a store and prints what happened as JSON (a child process)."""

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path

from mongo.errors import StoreFullError
from mongo.sqlite.store import open_sqlite_store
from tests.mongo.store_samples import WORKSPACE, closing, make_events, read_all

BATCH = 10


async def fill_and_clear(volume: Path) -> dict[str, object]:
    filler = volume / "filler"
    filler.write_bytes(bytes(1 << 20))
    seen: dict[str, object] = {}
    acknowledged: list[str] = []
    async with closing(await open_sqlite_store(volume / "data")) as store:
        batch = make_events(BATCH)
        with contextlib.suppress(StoreFullError):
            while True:
                await store.events.append(WORKSPACE, batch)
                acknowledged += [event.id for event in batch]
                batch = make_events(BATCH, first=len(acknowledged))
        try:
            await store.events.append(WORKSPACE, batch)
        except StoreFullError as error:
            seen["refusal"] = str(error)
        seen["acknowledged"] = len(acknowledged)
        seen["readable_when_full"] = len(
            await store.events.find_events(WORKSPACE, "execution", acknowledged)
        )
        refused = [event.id for event in batch]
        seen["refused_found"] = len(await store.events.find_events(WORKSPACE, "execution", refused))
        filler.unlink()
        seen["after_clearing"] = await store.events.append(WORKSPACE, batch)
    async with closing(await open_sqlite_store(volume / "data")) as store:
        seen["after_reopening"] = len(await read_all(store.events))
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    seen["opening_a_new_store"] = await refusal_to_open(volume / "another")
    seen["opening_the_old_store"] = await refusal_to_open(volume / "data")
    filler.unlink()
    async with closing(await open_sqlite_store(volume / "data")) as store:
        seen["in_the_end"] = len(await read_all(store.events))
    return seen


async def refusal_to_open(data_dir: Path) -> str | None:
    try:
        await (await open_sqlite_store(data_dir)).close()
    except StoreFullError as error:
        return str(error)
    return None


if __name__ == "__main__":
    mount_point = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", mount_point], check=True)
    json.dump(asyncio.run(fill_and_clear(mount_point)), sys.stdout)
