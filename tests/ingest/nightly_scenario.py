"""A nightly run that is slow, for a test to kill; says each step and each page."""

import asyncio
import sys
from pathlib import Path

import ingest.nightly.expiry
import ingest.nightly.statistics
from ingest.nightly.run import run_night, take_night
from mongo.sqlite import open_sqlite_store
from tests.ingest.nightly_world import a_night


def told(step: str, done: int) -> None:
    """A line that the test counts."""
    sys.stdout.write(f"{step} {done}\n")
    sys.stdout.flush()


async def main(folder: Path) -> None:
    """One night in small pages."""
    ingest.nightly.statistics.PAGE = 5
    ingest.nightly.statistics._FLUSH = 10
    ingest.nightly.expiry.BATCH = 3
    store = await open_sqlite_store(folder, beside=True)
    keeper = await take_night(store, 15)
    await run_night(a_night(store, keeper, on_progress=told))  # type: ignore[arg-type]
    await keeper.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
