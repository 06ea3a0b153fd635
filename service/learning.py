"""Learning, opened on the rooms: the indexer, its claims, and how it goes along with others."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ingest.axes import AxisClusterer
from ingest.claims import Claims
from ingest.indexer import POLL_S, SHARED_POLL_S, Indexer
from service.clustering import AxisWatch, clustering
from service.following import following
from service.rooms import Rooms, current_index_name, open_named
from service.settings import Settings
from service.stores import index_place
from service.switching import IndexSwitch


@dataclass(frozen=True, slots=True)
class Learning:
    """What learns; `indexer` is started by who wants it."""

    indexer: Indexer
    switch: IndexSwitch
    clusterer: AxisClusterer

    @property
    def problem(self) -> str | None:
        """Why nothing is learned, with the cure where one is known; None while all is well."""
        return self.switch.problem or self.indexer.problem


@asynccontextmanager
async def open_learning(settings: Settings, rooms: Rooms) -> AsyncIterator[Learning]:
    """Open what learns, and follow what other processes do; close it in reverse.

    Args:
        settings: how the store is shared.
        rooms: what it stands on.
    """
    store, memory = rooms.store, rooms.memory
    is_shared = settings.mongo.uri is not None
    axes = AxisWatch()
    async with AsyncExitStack() as stack:
        claims = Claims(store, ttl=settings.indexing.lease_s, is_shared=is_shared)
        stack.push_async_callback(claims.close)
        indexer = Indexer(
            store=store,
            memory=memory,
            index=rooms.index,
            embedder=rooms.embedder,
            on_axes=axes.axes_named,
            claims=claims,
            poll=SHARED_POLL_S if is_shared else POLL_S,
        )
        stack.push_async_callback(indexer.close)
        switch = IndexSwitch(
            index=rooms.index,
            place=index_place(settings),
            named=lambda: current_index_name(store),
            opened=lambda name: open_named(settings, name, rooms.embedder),
            indexer=indexer,
            claims=claims,
        )
        await stack.enter_async_context(
            following(store, memory, switch.on_generation, feed=rooms.feed)
        )
        clusterer = AxisClusterer(store=store, memory=memory, embedder=rooms.embedder.embedder)
        await stack.enter_async_context(clustering(clusterer, store, axes))
        yield Learning(indexer, switch, clusterer)
