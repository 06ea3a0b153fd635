"""Rebuilding: all is learned anew beside what answers, into the next generation, then switched to.

Whoever answers goes on meanwhile, with what it had. Nobody else learns: the rebuild holds the
leases of all workspaces, and everything that arrives is learned by it, or right after it. Killed at
any point it leaves a shadow and half an index that nobody looks at; the next one, or a service that
starts, removes them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from embeddings.protocol import Embedder
from ingest.axes import AxisClusterer
from ingest.claims import REBUILD, Claims
from ingest.indexer import Indexer
from ingest.leasing import LeaseKeeper
from ingest.seed import index_seed
from mongo.errors import StoreError, StoreFencedError, StoreUnavailableError
from mongo.protocol import LogStore
from mongo.records import Lease
from retrieval.index.protocol import VectorIndex, VectorIndexUnavailableError
from retrieval.knowledge.documents import SeedBook
from retrieval.memory import Memory

_PATIENCE_TTLS = 4.0
"""Lives of a lease that whoever learns a workspace gets to finish its batch and give it back."""

_LOOK_S = 0.2

_SETTLED_S = 1.0
_RETRY_S = 1.0

_OUTAGE_S = 60.0
"""That a server may be away."""

_ROUNDS = 5
"""Over what came while the last round was learned from; each is far shorter than the one before."""

log = logging.getLogger("aftercall.rebuild")


class RebuildRefusedError(StoreError):
    """Another rebuild runs, or somebody who learns does not give way."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: records learned from, and those that were there when it was asked."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild has made."""

    records: int
    """Learned from: executions, outcomes, marks, corrections, changes of tools, promotions."""
    documents: int
    vectors: int
    workspaces: int
    generation: int
    seconds: float


async def rebuild(
    *,
    store: LogStore,
    embedder: Embedder,
    seeds: SeedBook,
    open_index: Callable[[int], Awaitable[VectorIndex]],
    facts: Callable[[int], Mapping[str, str]],
    lease_s: float,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Rebuilt:
    """Learn everything anew and switch to it; what was known holds until then.

    Args:
        store: the log, and what is known of it.
        embedder: makes the new vectors, each text once; of another model than now, if wanted.
        seeds: the shipped corpus.
        open_index: makes the index of the new generation, empty; called once no other rebuild can
            be at it.
        facts: of the new generation, set in the step that switches; they say where its index is.
        lease_s: life of a lease, the same for all processes.
        on_progress: told at the beginning and after each batch.

    Raises:
        RebuildRefusedError: another one runs, or somebody does not give way; nothing was changed.
        StoreError, VectorIndexError, EmbeddingError: what stopped it; what was known holds.
    """
    started = time.monotonic()
    only_one = LeaseKeeper(store, REBUILD, ttl=lease_s)
    claims = Claims(store, ttl=lease_s, for_rebuild=True)
    try:
        if not await only_one.wait(patience=1.5 * lease_s):
            raise RebuildRefusedError("another rebuild is running; wait for it, or stop it")
        await _claimed(claims, await store.workspaces(), lease_s)
        generation = await store.generation() + 1
        shadow = await store.open_shadow()
        try:
            index = await open_index(generation)
            try:
                await index_seed(seeds, store=shadow, index=index, embedder=embedder)
                records, workspaces = await _learned(
                    shadow, index, embedder, claims, lease_s, on_progress
                )
                counts, vectors = await shadow.counts(), await index.count()
            finally:
                # Before the switch: an embedded one is opened by the service that runs.
                await index.close()
            leases = await _held(only_one, claims)
            generation = await store.adopt(shadow, facts(generation), leases)
        except BaseException:
            # What stopped it is to be told, also when the store is away and cannot be tidied up.
            with suppress(StoreError):
                await shadow.close()
                if only_one.is_held:  # else the shadow that is there may be another rebuild's
                    await store.drop_shadow()
            raise
        return Rebuilt(
            records=records,
            documents=counts.documents,
            vectors=vectors,
            workspaces=workspaces,
            generation=generation,
            seconds=time.monotonic() - started,
        )
    finally:
        await claims.close()
        await only_one.close()


async def _learned(
    shadow: LogStore,
    index: VectorIndex,
    embedder: Embedder,
    claims: Claims,
    lease_s: float,
    on_progress: Callable[[Progress], None],
) -> tuple[int, int]:
    """Learn what there is, and what has come meanwhile; how many records, of how many workspaces.

    Somebody may record all the time, so it ends after some rounds: the switch queues what is left,
    for whoever learns then.
    """
    memory = Memory(shadow)
    indexer = Indexer(store=shadow, memory=memory, index=index, embedder=embedder, claims=claims)
    clusterer = AxisClusterer(store=shadow, memory=memory, embedder=embedder)
    done = workspaces = 0
    try:
        for _ in range(_ROUNDS):
            left = (await shadow.counts()).pending
            if not left and done:
                break
            done += await _round(indexer, shadow, left, _further(on_progress, done, done + left))
            await clusterer.cluster_all()  # the model may be another; ids and names stay
            workspaces = await _claimed(claims, await shadow.workspaces(), lease_s)
    finally:
        await indexer.close()
    return done, workspaces


async def _round(
    indexer: Indexer, shadow: LogStore, count: int, on_progress: Callable[[int], None]
) -> int:
    """Learn from so many records, if there are, and embed all that comes of it; how many it was."""
    clock = asyncio.get_running_loop().time
    done, worked_at = 0, clock()
    on_progress(done)
    while done < count:
        learned = await _persistently(indexer.learn_step)
        done += learned
        on_progress(done)
        if learned or await _persistently(indexer.embed_step):
            worked_at = clock()
        # A store may say late that a workspace has work.
        elif not (await shadow.counts()).pending or clock() - worked_at >= _SETTLED_S:
            break
        else:
            await asyncio.sleep(_LOOK_S)
    while await _persistently(indexer.embed_step):
        pass
    return done


async def _persistently(step: Callable[[], Awaitable[int]]) -> int:
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


def _further(
    on_progress: Callable[[Progress], None], done: int, total: int
) -> Callable[[int], None]:
    def tell(learned: int) -> None:
        on_progress(Progress(done + learned, max(total, done + learned)))

    return tell


async def _claimed(claims: Claims, workspaces: Iterable[str], lease_s: float) -> int:
    """Claim workspaces; how many those are. Whoever learns one finishes its batch first.

    Raises:
        RebuildRefusedError: somebody does not give one back.
    """
    waiting = set(workspaces)
    count = len(waiting)
    deadline = time.monotonic() + _PATIENCE_TTLS * lease_s
    while True:
        for workspace in sorted(waiting):
            if await claims.claim(workspace) is not None:
                waiting.discard(workspace)
        if not waiting:
            return count
        if time.monotonic() > deadline:
            raise RebuildRefusedError(
                f"another process learns {len(waiting)} of the workspaces and does not stop: look "
                "whether it hangs, end it, and run `aftercall rebuild` again"
            )
        await asyncio.sleep(_LOOK_S)


async def _held(only_one: LeaseKeeper, claims: Claims) -> list[Lease]:
    """All leases that the switch rests on.

    One that was lost while a server was away is taken again: should another rebuild have begun, the
    store refuses this one's shadow.

    Raises:
        StoreFencedError: another rebuild has it.
    """
    own = only_one.lease if await only_one.try_take() else None
    if own is None:
        raise StoreFencedError(
            "this rebuild did not show a sign of life for too long and another one may run: "
            "run it again"
        )
    return [own, *claims.held]
