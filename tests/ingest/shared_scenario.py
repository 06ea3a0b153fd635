"""Learns a store beside others, until stdin ends: `main` of WHERE TTL [SIGNAL COMMIT].

WHERE is a folder, or DATABASE@URI. It says in lines what it does, and sends itself the SIGNAL
(`SIGKILL`, `SIGSTOP`) just before its COMMIT-th commit.
"""

import asyncio
import os
import signal
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
from retrieval.knowledge.memory import Memory


class NoIndex:
    """Takes vectors and keeps none."""

    async def upsert_points(self, points: Sequence[Any]) -> None:
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


async def _learn(where: str, ttl: str, name: str = "SIGCONT", number: str = "0") -> None:
    """Learn in small batches."""
    commits = 0
    store = await open_shared(where)
    kind = type(store.knowledge)
    commit_it = kind.commit

    async def commit(self: Any, commit: Commit) -> int:
        nonlocal commits
        commits += 1
        say("committing")
        if commits == int(number):
            os.kill(os.getpid(), signal.Signals[name])
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
        embedder=HashingEmbedder(), lease_s=float(ttl), is_shared=True, batch=20,
    )  # fmt: skip
    say("ready")
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not ended.done():
        if not await indexer.learn_step() + await indexer.embed_step():
            await asyncio.sleep(0.05)
    await indexer.close()
    await store.close()
    say("ended")


def main() -> int:
    """By the words of the command line."""
    asyncio.run(_learn(*sys.argv[1:]))
    return 0
