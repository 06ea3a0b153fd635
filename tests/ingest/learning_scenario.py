"""Records, marks, registers and learns without end, a line for each batch (a child process)."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from aftercall.redaction import Redactor
from embeddings.hashing import HashingEmbedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from mongo.sqlite import open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.memory import Memory
from tests.ingest.fitness_samples import (
    WORKSPACE,
    a_call,
    a_mark,
    a_promotion,
    a_tool,
    tool_of,
    worded,
)


async def main(data_dir: Path, first: int) -> None:
    """Work on the folder; calls and marks are numbered from `first` on."""
    embedder = HashingEmbedder()
    store = await open_sqlite_store(data_dir / "data")
    index = await EdgeIndex.open(
        data_dir / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder)
    intake = Intake(store, Redactor(), indexer.wake)

    async def record() -> None:
        for number in count(first, step=10):
            calls = [
                a_call(n, failed=n % 3 == 0, tool=tool_of(n), context=worded(n))
                for n in range(number, number + 10)
            ]
            await intake.accept(WORKSPACE, calls)
            await store.add_mark(a_mark(number, of=number + 5, tool=tool_of(number + 5)))
            await store.add_mark(a_mark(number + 1, of=number + 12, tool=tool_of(number + 12)))
            await store.add_mark(a_mark(number + 2, tool=tool_of(number)))
            await store.put_tool(a_tool(f"t{number % 7}", description=f"does {number}"))
            await store.delete_tool(WORKSPACE, f"t{(number + 3) % 7}")
            await store.change_promotions([a_promotion(version=f"1.{number % 50}.0")])
            indexer.wake()

    async def tell() -> None:
        while True:
            learned = await indexer.learn_step()
            await indexer.embed_step()
            if learned:
                sys.stdout.write(f"{learned}\n")
                sys.stdout.flush()

    async with asyncio.TaskGroup() as group:
        group.create_task(record())
        group.create_task(tell())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
