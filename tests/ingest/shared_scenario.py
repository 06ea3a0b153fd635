"""Learns from a store beside others until it is ended, a line for each commit (a child process).

    python shared_scenario.py STORE TTL PAUSE

STORE is the folder of an embedded store, or `DATABASE@URI` of a MongoDB. Batches are small. Before
each commit it says so and waits for PAUSE seconds, so that who started it can stop it just there.
"""

import asyncio
import json
import sys
from pathlib import Path

from embeddings.hashing import HashingEmbedder
from ingest import indexer as indexer_module
from ingest.claims import Claims
from ingest.indexer import SHARED_POLL_S, Indexer
from mongo.errors import StoreFencedError
from mongo.protocol import LogStore
from mongo.records import IndexCommit
from mongo.sqlite import open_sqlite_store
from retrieval.memory import Memory
from tests.ingest.shared_history import NoIndex


async def open_shared(where: str) -> LogStore:
    """The store, as one of several that have it open."""
    if "@" not in where:
        return await open_sqlite_store(Path(where), beside=True)
    from mongo.mongodb.opening import MongoOptions, open_mongo_store

    database, _, uri = where.partition("@")
    return await open_mongo_store(MongoOptions(uri=uri, database=database))


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def main(where: str, ttl: float, pause: float) -> None:
    indexer_module.BATCH = 100
    store = await open_shared(where)
    commit_index = store.commit_index

    async def slow(commit: IndexCommit) -> None:
        say(committing=commit.workspace, records=len(commit.positions))
        await asyncio.sleep(pause)
        try:
            await commit_index(commit)
        except StoreFencedError:
            say(fenced=commit.workspace)
            raise
        say(committed=commit.workspace, records=len(commit.positions))

    store.commit_index = slow  # type: ignore[method-assign]
    claims = Claims(store, ttl=ttl)
    indexer = Indexer(
        store=store,
        memory=Memory(store),
        index=NoIndex(),
        embedder=HashingEmbedder(),
        claims=claims,
        poll=SHARED_POLL_S,
    )
    indexer.start()
    say(ready=True)
    await asyncio.to_thread(sys.stdin.read)
    await indexer.close()
    await claims.close()
    await store.close()
    say(problem=indexer.problem)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
