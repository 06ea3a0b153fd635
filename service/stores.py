"""Stores, embedder and vectors: opened in order as the settings name them, closed in reverse."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import uuid4

from embeddings.embedders import CachedEmbedder, open_embedder
from embeddings.protocol import Embedder
from ingest.leases import LeaseKeeper
from ingest.nightly import REBUILD
from ingest.seed import load_seed
from mongo.errors import StoreDamagedError, StoreError
from mongo.protocol import Store
from retrieval.index import opening, protocol
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.rows.documents import CommonMistakes
from retrieval.knowledge.rows.log import count_rows
from service.archive import refuse_half_imported
from service.databases import closed_after, opened_store, where_store_is
from service.lifecycle import OnPhase, when_it_answers
from service.logs import log_event
from service.settings import Settings

STORE_FACT = "store"
"""The store's fact of its own id, random: its vectors name it."""
INDEX_MODEL_FACT = "index_model"
"""The store's fact that names the model of the vectors, as `Embedder.fingerprint`."""
LOCAL_QDRANT = "local:"
"""Prefix of an address that names a folder of the client's own slow store."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores and models that answering and learning need."""

    store: Store
    embedder: CachedEmbedder
    index: opening.CurrentIndex
    place: protocol.IndexPlace
    """Where the index is, and those of other generations."""
    memory: Memory
    seeds: CommonMistakes


@asynccontextmanager
async def open_stores(
    settings: Settings,
    on_phase: OnPhase = lambda _: None,
    embedder: Future[CachedEmbedder] | None = None,
) -> AsyncIterator[Stores]:
    """Open everything in order, waiting for servers; close it in reverse, failures included."""
    async with (
        opened_store(settings, on_phase) as store,
        opened_embedder(settings, on_phase, embedder) as opened,
    ):
        on_phase("opening its vectors")
        if settings.mongo.uri is not None and settings.qdrant.url is None:
            log_event(
                logger,
                "the log store can be shared, the embedded vectors cannot: run one process, or set "
                "AFTERCALL_QDRANT_URL in all of them",
                level="warning",
            )

        place = await index_place(settings, store)

        async def open_current() -> opening.CurrentIndex:
            name = opening.index_name(await store.metadata.get(opening.INDEX_FACT))
            await opening.refuse_another_store(place)
            return opening.CurrentIndex(
                await open_named(place, name, opened),
                name,
                # An embedded index is slow only on a slow machine; then no answer is fast enough.
                patience=None if settings.qdrant.url is None else opening.Patience(),
            )

        index = await when_it_answers(
            open_current,
            f"the vector index at {where_index_is(settings)}",
            on_phase=on_phase,
            patience_s=0 if settings.qdrant.url is None else None,
        )
        async with closed_after(index):
            on_phase("reading its corpus of common mistakes")
            seeds = await asyncio.to_thread(load_seed)
            await when_it_answers(
                lambda: _prepare_index(store, opened, index),
                f"the log store at {where_store_is(settings)} and the vector index at "
                f"{where_index_is(settings)}",
                on_phase=on_phase,
                patience_s=None if is_remote(settings) else 0,
            )
            await _clean_up(settings, store, place, index.opened)
            yield Stores(
                store=store,
                embedder=opened,
                index=index,
                place=place,
                memory=Memory(store),
                seeds=seeds,
            )


@asynccontextmanager
async def opened_embedder(
    settings: Settings,
    on_phase: OnPhase = lambda _: None,
    embedder: Future[CachedEmbedder] | None = None,
) -> AsyncIterator[CachedEmbedder]:
    """Yield the embedder, until the block ends; the one that is being opened already, if any."""
    on_phase("loading its embedding model")
    chosen = settings.embedding
    opened = await (
        open_embedder(chosen.model, cache_size=chosen.cache_size, threads=chosen.threads)
        if embedder is None
        else asyncio.wrap_future(embedder)
    )
    async with closed_after(opened):
        yield opened


async def index_place(settings: Settings, store: Store) -> protocol.IndexPlace:
    """Return where a store's vectors are: on the named Qdrant server, else in the data folder."""
    owner = await store.metadata.keep_fact(STORE_FACT, uuid4().hex)
    chosen = settings.qdrant
    if chosen.url is None:
        return protocol.EdgePlace(settings.data.dir, owner)
    key = None if chosen.api_key is None else chosen.api_key.get_secret_value()
    return protocol.QdrantPlace(owner=owner, api_key=key, **chosen.model_dump(exclude={"api_key"}))


def is_remote(settings: Settings) -> bool:
    """Return whether any of the stores is a server, which may be away for a while."""
    return settings.mongo.uri is not None or settings.qdrant.url is not None


def where_index_is(settings: Settings) -> str:
    """Return the vector index's address for messages, without credentials."""
    if (url := settings.qdrant.url) is None:
        return str(settings.data.dir)
    if url.startswith(LOCAL_QDRANT):
        return url.removeprefix(LOCAL_QDRANT)
    parts = urlsplit(url if "://" in url else f"//{url}")
    # The client uses gRPC.
    return f"{parts.hostname or 'an address without a host'}:{settings.qdrant.grpc_port}"


async def open_named(
    place: protocol.IndexPlace, name: str, embedder: Embedder
) -> protocol.VectorIndex:
    """Return the index of a name for the vectors of an embedder."""
    return await opening.open_index(
        place, name, dimension=embedder.dimension, fingerprint=embedder.fingerprint
    )


async def remove_former(place: protocol.IndexPlace, current: str) -> list[str]:
    """Remove the indexes of generations before the current one; return their names.

    An embedded index that a process has open stays: that process answers from it, and removes it
    when it has switched. A rebuild makes, or made, the indexes that are newer than the current one.
    """
    removed = []
    names = await opening.list_indexes(place)
    for name in names[: names.index(current)] if current in names else []:
        try:
            await opening.destroy_index(place, name)
        except protocol.IndexInUseError:
            continue
        removed.append(name)
    return removed


async def _prepare_index(store: Store, embedder: Embedder, index: opening.CurrentIndex) -> None:
    await refuse_half_imported(store.metadata)
    await _refuse_other_log(store)
    if not await index.count_points():
        known = await count_rows(store)
        if known.documents > known.pending:  # some documents wait for no vector, so they had one
            raise protocol.VectorIndexError(
                "the log store knows documents whose vectors are gone: run `aftercall rebuild`, "
                "which makes them anew from the log"
            )
    if await store.metadata.get(INDEX_MODEL_FACT) != embedder.fingerprint:
        await store.metadata.put(INDEX_MODEL_FACT, embedder.fingerprint)


async def _refuse_other_log(store: Store) -> None:
    """Refuse a log that is shorter than what was learned from it.

    Raises:
        StoreDamagedError: more was learned than the log has.
    """
    cursors = await store.knowledge.read_cursors()
    heads = await store.events.read_heads()
    for workspace, cursor in cursors.items():
        position = heads[workspace].position if workspace in heads else 0
        if cursor.position > position:
            raise StoreDamagedError(
                f"the log of the workspace {workspace} ends at {position}, and what was learned "
                f"goes to {cursor.position}: it was lost or replaced. Restore it from a backup, or "
                "run `aftercall rebuild`, which learns anew from the log that is there"
            )


async def _clean_up(
    settings: Settings, store: Store, place: protocol.IndexPlace, current: str
) -> None:
    """Remove former vectors, and half-made ones of a rebuild that is gone; a failure is logged."""
    keeper = LeaseKeeper(store.leases, REBUILD, ttl=settings.indexing.lease_s)
    try:
        # They stayed if a service did not follow the switch.
        if isinstance(place, protocol.EdgePlace):
            await remove_former(place, current)
        if await store.leases.read(REBUILD) is None or not await keeper.try_take():
            return
        names = await opening.list_indexes(place)
        for name in names[names.index(current) + 1 :] if current in names else []:
            await opening.destroy_index(place, name)
            log_event(logger, "removed what a killed rebuild left", name=name)
    except (StoreError, protocol.VectorIndexError, OSError) as error:
        log_event(logger, "former vectors are still there", level="warning", error=error)
    finally:
        await keeper.close()
