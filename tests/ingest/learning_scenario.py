"""Learns the log of a store in a process that is killed: `learning_scenario.py FOLDER`."""

import asyncio
import sys
from pathlib import Path

from embeddings.embedders import HashingEmbedder
from ingest.indexer import Indexer
from mongo.sqlite.store import open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.memory import Memory


async def main(folder: Path) -> None:
    """Learn in small batches, with vectors, until all is learned; then say so."""
    embedder = HashingEmbedder()
    store = await open_sqlite_store(folder / "data")
    index = await EdgeIndex.open(
        folder / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder, batch=7)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    await indexer.catch_up()
    sys.stdout.write("learned\n")
    sys.stdout.flush()
    await indexer.close()
    await index.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
