"""Learning in a running service: the learner, its vectors, and what other processes do.

Without following the store an answer could rest on what was known before another process learned
more; and after a rebuild this process has to answer from the new vectors.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from ingest import pacing
from ingest.axes import AxisClusterer
from ingest.indexer import Indexer
from mongo.errors import StoreError
from mongo.protocol import Store
from retrieval.index.opening import INDEX_FACT, index_name
from retrieval.index.protocol import EdgePlace, IndexModelMismatchError, VectorIndexError
from service.forget import learned_without
from service.learning_process import start_learning_process
from service.lifecycle import Attention, GarbageKeeper, give_back_memory, keep_doing
from service.logs import log_event
from service.processes import run_process
from service.settings import Settings
from service.stores import Stores, open_named, remove_former

OTHER_MODEL = (
    "the vectors were rebuilt with another embedding model: restart this process with that model "
    "(AFTERCALL_EMBEDDING_MODEL); until then it answers from its former vectors and learns nothing"
)
logger = logging.getLogger(__name__)


class Relearning:
    """Learns all again after something was forgotten, in a process of its own."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._due = asyncio.Event()
        self._due.set()  # a process that forgot may have been killed

    def begin_learning(self) -> None:
        """Note that something was forgotten."""
        self._due.set()

    async def learn_once(self) -> float:
        """Wait for something to be forgotten, then learn again; repeat it after a failure."""
        await self._due.wait()
        while await learned_without(self._store):
            if status := await run_process(self._settings, "rebuild"):
                raise RuntimeError(f"`aftercall rebuild` ended with status {status}")
        self._due.clear()
        return 0


class Learning:
    """The learner, and what keeps it up with the store; its owner starts `indexer`."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores
        self._looked: dict[str, int] = {}
        """Workspaces whose axes were clustered, each with the commit it was clustered at."""
        self._other_model: str | None = None
        self._has_switched = True
        self._garbage = GarbageKeeper()
        self.indexer = Indexer(
            store=stores.store,
            memory=stores.memory,
            index=stores.index,
            embedder=stores.embedder,
            lease_s=settings.indexing.lease_s,
            is_shared=settings.mongo.uri is not None,
            start_process=partial(start_learning_process, settings)
            if settings.indexing.process and (os.cpu_count() or 1) > 1
            else None,
        )
        self.clusterer = AxisClusterer(
            knowledge=lambda: stores.store.knowledge, memory=stores.memory, embedder=stores.embedder
        )

    @property
    def problem(self) -> str | None:
        """Why nothing is learned, with the cure if one is known; None while all is well."""
        return self._other_model or self.indexer.problem

    @property
    def can_learn(self) -> bool:
        """Return whether the vectors are of this process's model."""
        return self._other_model is None

    async def follow_switch(self) -> float:
        """Notice what other processes did; returns the seconds until the next look."""
        if await self._stores.store.refresh_generation():
            self._has_switched = False
        await self._stores.memory.follow_changes()  # also while its vectors cannot be opened
        if not self._has_switched:  # tried again, as where the index was away
            await self._switch_generation()
            self._has_switched = True
        return pacing.FOLLOW_S

    async def _switch_generation(self) -> None:
        index, memory = self._stores.index, self._stores.memory
        memory.forget_all()
        name = index_name(await self._stores.store.metadata.get(INDEX_FACT))
        opened = None
        if name != index.opened:
            try:
                opened = await open_named(self._stores.place, name, self._stores.embedder)
            except IndexModelMismatchError:
                # Other processes may learn: texts do not depend on the model, but vectors do.
                self._other_model = OTHER_MODEL
                log_event(logger, OTHER_MODEL, level="error")
                await self.indexer.close()
                return
        async with self.indexer.switch_current():
            if opened is not None:
                await index.switch_index(opened, name)
        memory.forget_all()
        self._looked.clear()
        log_event(
            logger, "what was learned anew is in use",
            generation=self._stores.store.knowledge.generation,
        )  # fmt: skip
        place = self._stores.place
        if isinstance(place, EdgePlace):  # no other process can remove former embedded vectors
            for removed in await remove_former(place, name):
                log_event(logger, "former vectors removed", name=removed)

    async def cluster_axes(self) -> float:
        """Cluster axes soon after new ones were named; returns the seconds until the next look."""
        started = time.monotonic()
        for workspace, cursor in (await self._stores.store.knowledge.read_cursors()).items():
            if self._looked.get(workspace) != cursor.serial:
                if await self.clusterer.is_due(workspace):
                    await self.clusterer.cluster_axes(workspace)
                self._looked[workspace] = cursor.serial
        return pacing.SETTLE_S + pacing.CLUSTER_REST * (time.monotonic() - started)

    async def give_back(self) -> float:
        """Give back the memory that learning does not need now; returns the seconds to the next."""
        is_idle = await self.indexer.hand_over_known()
        await asyncio.to_thread(give_back_memory)
        self._garbage.tend(is_idle=is_idle)
        return pacing.GIVE_BACK_S


@asynccontextmanager
async def open_learning(
    settings: Settings, stores: Stores, attention: Attention
) -> AsyncIterator[Learning]:
    """Open what learns, and follow what other processes do; close it in reverse."""
    learning = Learning(settings, stores)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(learning.indexer.close)
        with suppress(StoreError, VectorIndexError):  # it is tried again
            await learning.follow_switch()
        for step, name, wait_s in (
            (
                attention.paced(learning.follow_switch, pacing.FOLLOW_S, pacing.FOLLOW_IDLE_S),
                "following other processes",
                pacing.FOLLOW_S,
            ),
            (
                attention.paced(
                    learning.cluster_axes, pacing.SETTLE_S, pacing.CLUSTER_IDLE_S, wakes=False
                ),
                "clustering",
                pacing.SETTLE_S,
            ),
            (learning.give_back, "giving back memory", pacing.GIVE_BACK_S),
        ):
            await stack.enter_async_context(keep_doing(step, name, wait_s, retry_s=pacing.FOLLOW_S))
        yield learning
