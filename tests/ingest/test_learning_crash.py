"""Learning survives being killed: nothing is lost and nothing counts twice."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from embeddings.embedders import HashingEmbedder
from ingest.indexer import learn_batch
from ingest.workspace import WorkspaceCache
from mongo.sqlite.store import open_sqlite_store
from retrieval.index.edge import EdgeIndex
from retrieval.memory import DOCUMENT, VECTOR
from tests.ingest.histories import WORKSPACE, held, history

SCENARIO = Path(__file__).with_name("learning_scenario.py")
KILLS = 6


def learned_with_kills(folder: Path) -> None:
    """Kill it anywhere in its work, some times, and let it end."""
    dice = random.Random(4)  # noqa: S311  # no secret
    for kill in range(KILLS + 1):
        with subprocess.Popen(
            [sys.executable, str(SCENARIO), str(folder)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            if kill < KILLS:
                time.sleep(dice.uniform(0.0, 0.15))  # a kill has no better moment
                process.send_signal(signal.SIGKILL)
            else:
                assert process.stdout.readline() == "learned\n"
                assert process.wait() == 0


async def test_killed_while_learning_it_ends_with_the_same(tmp_path: Path) -> None:
    """After some kills the rows, counters and vectors are those of a run that went through."""
    store = await open_sqlite_store(tmp_path / "data")
    for event in history(3, 400, 1.0):
        await store.events.append(WORKSPACE, [event])
    await store.close()
    await asyncio.to_thread(learned_with_kills, tmp_path)
    store = await open_sqlite_store(tmp_path / "data")
    anew = await store.open_generation(2)
    events = await store.events.after(WORKSPACE, 0, 10_000)
    await learn_batch(store, anew, WorkspaceCache(WORKSPACE), events, 0)
    learned, expected = await held(store.knowledge), await held(anew)
    vectors = {each for each in expected if each.startswith(f"{VECTOR.name} ")}
    assert learned == {each: row for each, row in expected.items() if each not in vectors}
    embedder = HashingEmbedder()
    index = await EdgeIndex.open(
        tmp_path / "vectors", dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )
    assert await index.count() == await anew.count(DOCUMENT.name)
    await index.close()
    await store.close()
