"""The rooms below every service: log store, embedder, vectors and memory, opened in order.

`aftercall serve` and `aftercall worker` have them all, a rebuild the first two.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from embeddings.cache import CachedEmbedder, open_embedder
from embeddings.protocol import Embedder
from ingest.seed import index_seed, load_seed
from mongo.protocol import LogStore
from mongo.records import WITHOUT_STATISTICS
from mongo.upkeep import ChangeFeed
from retrieval.index.opening import INDEX_FACT, CurrentIndex, Patience, index_name, open_index
from retrieval.index.protocol import VectorIndex, VectorIndexError
from retrieval.knowledge.documents import SeedBook
from retrieval.memory import Memory
from service.leftovers import remove_leftovers
from service.lifecycle import OnPhase, when_it_answers
from service.logs import log_event
from service.moving.unfinished import refuse_half_imported
from service.settings import Settings
from service.stores import index_place, is_remote, open_store, where_index_is, where_store_is

logger = logging.getLogger(__name__)

INDEX_MODEL_FACT = "index_model"
"""The store's fact of which model made the vectors, as `Embedder.fingerprint`."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What answering and learning need."""

    store: LogStore
    embedder: CachedEmbedder
    index: CurrentIndex
    memory: Memory
    seeds: SeedBook
    feed: ChangeFeed
    """What others did since before anything was read."""


@asynccontextmanager
async def opened_store(
    settings: Settings,
    on_phase: OnPhase = lambda _: None,
    *,
    beside: bool = False,
    patience_s: float | None = None,
) -> AsyncIterator[LogStore]:
    """The log store, until the block ends; a server that is away is waited for.

    Args:
        settings: which one.
        on_phase: told what is being done.
        beside: as `service.stores.open_store`.
        patience_s: seconds to wait for a server; None for as long as it takes.

    Raises:
        StoreError: why it cannot be opened, with the cure.
    """
    on_phase("opening its log store")
    store = await when_it_answers(
        lambda: open_store(settings, beside=beside),
        f"the log store at {where_store_is(settings)}",
        on_phase=on_phase,
        patience_s=0 if settings.mongo.uri is None else patience_s,
    )
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_embedder(
    settings: Settings, on_phase: OnPhase = lambda _: None
) -> AsyncIterator[CachedEmbedder]:
    """The embedder, until the block ends.

    Raises:
        EmbeddingError: why the model cannot be loaded, with the cure.
    """
    on_phase("loading its embedding model")
    embedder = await open_embedder(
        settings.embedding.model,
        cache_dir=settings.embedding.cache_dir,
        cache_size=settings.embedding.cache_size,
        threads=settings.embedding.threads,
        on_progress=on_phase,
    )
    try:
        yield embedder
    finally:
        await embedder.close()


@asynccontextmanager
async def open_rooms(
    settings: Settings, on_phase: OnPhase = lambda _: None, *, patience_s: float | None = None
) -> AsyncIterator[Rooms]:
    """Open everything in order; close it in reverse, failures included.

    Args:
        settings: what to open.
        on_phase: told what is being done, and what is waited for.
        patience_s: seconds to wait for a server; None for as long as it takes.

    Raises:
        StoreError, EmbeddingError, VectorIndexError: what cannot be opened, with the cure.
    """
    async with (
        opened_store(settings, on_phase, patience_s=patience_s) as store,
        opened_embedder(settings, on_phase) as embedder,
    ):
        on_phase("opening its vectors")
        if settings.mongo.uri is not None and settings.qdrant.url is None:
            log_event(
                logger,
                "the log store can be shared, the embedded vectors cannot: run one process, or set "
                "AFTERCALL_QDRANT_URL in all of them",
                level="warning",
            )
        feed = await store.follow()  # before the index is named, so that no switch is missed
        index = await when_it_answers(
            lambda: _open_current(settings, store, embedder),
            f"the vector index at {where_index_is(settings)}",
            on_phase=on_phase,
            patience_s=0 if settings.qdrant.url is None else patience_s,
        )
        try:
            on_phase("reading its corpus of common mistakes")
            seeds = await asyncio.to_thread(load_seed)
            await when_it_answers(
                lambda: _prepare(store, embedder, index, seeds),
                f"the log store at {where_store_is(settings)} and the vector index at "
                f"{where_index_is(settings)}",
                on_phase=on_phase,
                patience_s=patience_s if is_remote(settings) else 0,
            )
            await remove_leftovers(
                store, index_place(settings), index.opened, settings.indexing.lease_s
            )
            yield Rooms(
                store=store,
                embedder=embedder,
                index=index,
                memory=Memory(store),
                seeds=seeds,
                feed=feed,
            )
        finally:
            await index.close()


async def open_named(settings: Settings, name: str, embedder: Embedder) -> VectorIndex:
    """The index of a name, where the settings say, for the vectors of an embedder.

    Raises:
        VectorIndexError: as `retrieval.index.opening.open_index`.
    """
    return await open_index(
        index_place(settings),
        name,
        dimension=embedder.dimension,
        fingerprint=embedder.fingerprint,
    )


async def current_index_name(store: LogStore) -> str:
    """The name of the index that holds.

    Raises:
        StoreError: when the store cannot be read.
        VectorIndexError: when the fact names none.
    """
    return index_name(await store.get_fact(INDEX_FACT))


async def _open_current(settings: Settings, store: LogStore, embedder: Embedder) -> CurrentIndex:
    name = await current_index_name(store)
    # An embedded one is slow only where the machine is busy, and then no answer is soon enough.
    patience = None if settings.qdrant.url is None else Patience()
    return CurrentIndex(await open_named(settings, name, embedder), name, patience=patience)


async def _prepare(
    store: LogStore, embedder: Embedder, index: CurrentIndex, seeds: SeedBook
) -> None:
    """Check that the stores belong together, and bring in what this version ships."""
    await refuse_half_imported(store)
    await _check_vectors(store, index)
    await _say_what_is_missing(store)
    await index_seed(seeds, store=store, index=index, embedder=embedder)
    if await store.get_fact(INDEX_MODEL_FACT) != embedder.fingerprint:
        await store.put_fact(INDEX_MODEL_FACT, embedder.fingerprint)


async def _say_what_is_missing(store: LogStore) -> None:
    """A store of an earlier version is complete but for what was not learned then."""
    without = await store.get_fact(WITHOUT_STATISTICS)
    if without is not None:
        log_event(
            logger,
            "executions from before this version do not count yet in the health of tools, nor, if "
            "they are older still, in the choice of tools; run `aftercall rebuild` once",
            level="warning",
            executions=int(without),
        )


async def _check_vectors(store: LogStore, index: VectorIndex) -> None:
    """None at all, of documents that do not wait for theirs, means that somebody took them."""
    if await index.count():
        return
    counts = await store.counts()
    if counts.documents > counts.pending:
        raise VectorIndexError(
            "the log store knows documents whose vectors are gone: run `aftercall rebuild`, "
            "which makes them anew from the log"
        )
