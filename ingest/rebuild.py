"""Rebuild: all is learned again next to what answers, into the next generation, then switched to.

The next generation begins as a copy of the base and folds the events after it. The present one goes
on learning meanwhile: both read the same log. Killed at any point it leaves files or rows that
nothing names; the next one, or a service that starts, removes them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from embeddings.protocol import Embedder
from ingest.indexer import Indexer, count_waiting
from ingest.leases import LeaseKeeper
from ingest.nightly import REBUILD, NightlyJob, run_steps
from ingest.nightly_steps import RESULTS
from mongo.errors import StoreError, StoreUnavailableError
from mongo.paging import all_rows
from mongo.protocol import Knowledge, Store
from mongo.records import Commit
from retrieval.index.protocol import VectorIndex, VectorIndexUnavailableError
from retrieval.knowledge.memory import DOCUMENT, NIGHTLY, Memory

_RETRY_S = 1.0
_OUTAGE_S = 60.0
"""That a server may be away."""
_ROUNDS = 5
"""Over what came while the last round was learned from; each is far shorter than the one before."""
log = logging.getLogger("aftercall.rebuild")


class RebuildRefusedError(StoreError):
    """Another rebuild runs."""


OnProgress = Callable[[int, int], None]
"""Given how many events were learned from, and how many there were when it was asked."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild has made."""

    records: int
    documents: int
    vectors: int
    generation: int
    seconds: float


async def rebuild_generation(
    *,
    store: Store,
    embedder: Embedder,
    open_index: Callable[[int], Awaitable[VectorIndex]],
    facts: Callable[[int], Mapping[str, str]],
    lease_s: float,
    on_progress: OnProgress = lambda *_: None,
    carries: bool = True,
) -> Rebuilt:
    """Learn everything again and switch to it; what was known holds until then.

    `embedder` makes the new vectors, each text once; of another model than now, if wanted.
    `open_index` makes the index of the new generation, empty, once no other rebuild can be at it;
    `facts` are set in the step that switches, and say where it is. `on_progress` is called at the
    beginning and after each batch. Unless it `carries` results of the nightly job, as where some of
    what they were made of is forgotten, they are missing until they are made again.
    """
    started = time.monotonic()
    only_one = LeaseKeeper(store.leases, REBUILD, ttl=lease_s)
    try:
        if not await only_one.wait(patience=1.5 * lease_s):
            raise RebuildRefusedError("another rebuild is running; wait for it, or stop it")
        await store.refresh_generation()  # one that was waited for has switched meanwhile
        generation = store.knowledge.generation + 1
        knowledge = await store.open_generation(generation)
        index = await open_index(generation)
        try:
            records = await _learn_all(
                store, knowledge, index, embedder, lease_s, on_progress, carries=carries
            )
            vectors = await index.count_points()
        finally:
            # Before the switch: an embedded one is opened by the service that runs.
            await index.close()
        documents = await knowledge.count_rows(DOCUMENT.name)
        await store.switch_generation(generation, facts(generation))
        return Rebuilt(
            records=records,
            documents=documents,
            vectors=vectors,
            generation=generation,
            seconds=time.monotonic() - started,
        )
    finally:
        await only_one.close()


async def _learn_all(
    store: Store,
    knowledge: Knowledge,
    index: VectorIndex,
    embedder: Embedder,
    lease_s: float,
    on_progress: OnProgress,
    *,
    carries: bool,
) -> int:
    """Learn what there is, and what has come meanwhile, in some rounds; how many events."""
    memory = Memory(store, knowledge=knowledge)
    indexer = Indexer(
        store=store,
        memory=memory,
        index=index,
        embedder=embedder,
        lease_s=lease_s,
        knowledge=knowledge,
    )
    done = 0
    try:
        for _ in range(_ROUNDS):
            left = (await count_waiting(store, knowledge)).total()
            if not left and done:
                break
            before = done

            def report_learned(count: int, before: int = before, left: int = left) -> None:
                on_progress(before + count, before + max(left, count))

            report_learned(0)
            done += await _retry_step(partial(indexer.catch_up, report_learned))
        if carries:
            await carry_over(store.knowledge, knowledge)
        job = NightlyJob(
            store=store,
            memory=memory,
            open_model=lambda: _give_embedder(embedder),
            keeper=None,
            knowledge=knowledge,
        )
        await run_steps(job, RESULTS)
    finally:
        await indexer.close()
    return done


async def carry_over(current: Knowledge, anew: Knowledge) -> None:
    """Give the new generation the results of the nightly job, whose ids and names last."""
    for workspace in await current.read_cursors():
        for kind in NIGHTLY:
            rows = [row async for row in all_rows(current, workspace, kind)]
            await anew.commit(Commit(workspace, put=rows))


async def _give_embedder(embedder: Embedder) -> Embedder:
    return embedder


async def _retry_step(step: Callable[[], Awaitable[int]]) -> int:
    """Do a step; a server that is away for a moment does not undo the work of hours."""
    began: float | None = None
    while True:
        try:
            return await step()
        except (StoreUnavailableError, VectorIndexUnavailableError) as error:
            now = time.monotonic()
            began = now if began is None else began
            if now - began >= _OUTAGE_S:
                raise
            log.warning("the rebuild stands still and will be tried again: %s", error)
        await asyncio.sleep(_RETRY_S)
