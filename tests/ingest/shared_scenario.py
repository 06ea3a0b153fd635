"""Learns a store beside other processes, until stdin ends: `shared_scenario.py WHERE TTL PAUSE`.

WHERE is a folder, or DATABASE@URI. It says in lines what it does; PAUSE is before each commit.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from embeddings.embedders import HashingEmbedder
from ingest.indexer import Indexer
from mongo.errors import StoreFencedError
from mongo.mongodb.store import MongoOptions, open_mongo_store
from mongo.protocol import Store
from mongo.records import Commit
from mongo.sqlite.store import open_sqlite_store
from retrieval.index.protocol import VectorIndex
from retrieval.memory import Memory


class NoIndex:
    """Takes vectors and keeps none."""

    async def upsert(self, points: Sequence[Any]) -> None:
        """Nothing."""

    async def delete(self, ids: Sequence[str]) -> None:
        """Nothing."""


async def open_shared(where: str) -> Store:
    """A store that several processes open."""
    if "@" not in where:
        return await open_sqlite_store(Path(where), beside=True)
    database, uri = where.split("@", 1)
    return await open_mongo_store(MongoOptions(uri, database))


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(where: str, ttl: float, pause: float) -> None:
    """Learn in small batches."""
    store = await open_shared(where)
    kind = type(store.knowledge)
    commit_it = kind.commit

    async def commit(self: Any, commit: Commit) -> int:
        say("committing")
        await asyncio.sleep(pause)
        try:
            serial = await commit_it(self, commit)
        except StoreFencedError:
            say("fenced")
            raise
        say("committed")
        return serial

    kind.commit = commit  # type: ignore[method-assign]
    indexer = Indexer(
        store=store, memory=Memory(store), index=cast("VectorIndex", NoIndex()),
        embedder=HashingEmbedder(), lease_s=ttl, is_shared=True, batch=20,
    )  # fmt: skip
    say("ready")
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not ended.done():
        if not await indexer.learn_step() + await indexer.embed_step():
            await asyncio.sleep(0.05)
    await indexer.close()
    await store.close()
    say("ended")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
