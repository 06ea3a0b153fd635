"""Everything a running service holds open, opened in order and closed in reverse."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from aftercall.redaction import Redactor
from embeddings.factory import open_embedder
from embeddings.protocol import Embedder
from ingest.axes import AxisClusterer
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.seed import index_seed, load_seed
from mongo.protocol import LogStore
from mongo.records import WITHOUT_STATISTICS
from mongo.sqlite import open_sqlite_store
from retrieval.boundaries.cohesion import CohesionRules
from retrieval.fitness.past import ToolHistory
from retrieval.fitness.search import ToolChooser
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndex, VectorIndexError
from retrieval.memory import Memory
from retrieval.suggest import Suggester
from service.boundaries import BoundaryReports
from service.changes import Changes
from service.clustering import AxisWatch, clustering
from service.config.settings import BoundarySettings, Settings
from service.correcting import Corrections
from service.known_tools import KnownTools
from service.logs import log_event
from service.marking import FailureMarks
from service.promoting import Promotions
from service.recalibrating import recalibrating
from service.recommending import Recommendations
from service.registering import ToolRegister
from service.tool_health import ToolHealths

logger = logging.getLogger(__name__)

VECTORS = "vectors"
"""Folder of the vector index inside the data folder; `aftercall rebuild` removes it."""

OnPhase = Callable[[str], None]
"""Told what is being done, in words that complete "the service is ..."."""


@dataclass(frozen=True, slots=True)
class Services:
    """The open rooms below the routes."""

    store: LogStore
    embedder: Embedder
    index: VectorIndex
    indexer: Indexer
    intake: Intake
    suggester: Suggester
    chooser: ToolChooser
    history: ToolHistory
    tools: ToolRegister
    tool_health: ToolHealths
    boundaries: BoundaryReports
    clusterer: AxisClusterer
    promotions: Promotions
    recommendations: Recommendations
    marks: FailureMarks
    corrections: Corrections
    known_tools: KnownTools
    redactor: Redactor
    parsers: Executor
    seed_patterns: int
    memory: Memory
    opened_at: float


@asynccontextmanager
async def open_services(
    settings: Settings, on_phase: OnPhase = lambda _: None, *, anew: bool = False
) -> AsyncIterator[Services]:
    """Open store, embedder, index, indexer and suggester; close them in reverse, failures included.

    Args:
        settings: what to open.
        on_phase: told what is being done.
        anew: forget all that was learned, once it is sure that it can be learned again; the indexer
            is left to the caller to run.

    Raises:
        StoreError, EmbeddingError, VectorIndexError: what cannot be opened, with the cure.
    """
    async with AsyncExitStack() as stack:
        on_phase("opening its log store")
        store = await open_sqlite_store(settings.data.dir)
        stack.push_async_callback(store.close)
        on_phase("loading its embedding model")
        embedder = await open_embedder(
            settings.embedding.model,
            cache_dir=settings.embedding.cache_dir,
            cache_size=settings.embedding.cache_size,
            threads=settings.embedding.threads,
            on_progress=on_phase,
        )
        stack.push_async_callback(embedder.close)
        if anew:
            # In this order: a crash in between leaves old vectors and a full queue, which the next
            # rebuild clears. The other way round the store would believe in vectors that are gone.
            await store.reset_index()
            await EdgeIndex.destroy(settings.data.dir / VECTORS)
        on_phase("opening its vectors")
        index = await EdgeIndex.open(
            settings.data.dir / VECTORS,
            dimension=embedder.dimension,
            fingerprint=embedder.fingerprint,
        )
        stack.push_async_callback(index.close)
        on_phase("reading its corpus of common mistakes")
        if not anew:
            await _check_vectors(store, index)
            await _say_what_is_missing(store)
        seeds = await asyncio.to_thread(load_seed)
        await index_seed(seeds, store=store, index=index, embedder=embedder)
        redactor = Redactor.create(
            extra_names=settings.privacy.secret_names, allowlists=settings.privacy.allowlists
        )
        memory = Memory(store)
        axes = AxisWatch()
        clusterer = AxisClusterer(store=store, memory=memory, embedder=embedder.embedder)
        indexer = Indexer(
            store=store,
            memory=memory,
            index=index,
            embedder=embedder,
            on_axes=axes.axes_named,
        )
        stack.push_async_callback(indexer.close)
        suggester = Suggester(
            store=store,
            memory=memory,
            index=index,
            embedder=embedder,
            redactor=redactor,
            seeds=seeds,
        )
        stack.push_async_callback(suggester.close)
        parsers = stack.enter_context(ThreadPoolExecutor(2, thread_name_prefix="aftercall-parse"))
        if not anew:
            indexer.start()
            every = timedelta(hours=settings.calibration.every_h)
            await stack.enter_async_context(recalibrating(store, memory, every))
            every = timedelta(hours=settings.boundaries.cluster_every_h)
            await stack.enter_async_context(clustering(clusterer, store, axes, every))
        changes = Changes()
        cohesion = _cohesion_rules(settings.boundaries)
        recommendations = Recommendations(
            store=store, memory=memory, redactor=redactor, cohesion=cohesion
        )
        yield Services(
            store=store,
            embedder=embedder,
            index=index,
            indexer=indexer,
            intake=Intake(store, redactor, indexer.wake),
            suggester=suggester,
            chooser=ToolChooser(memory=memory, index=index, embedder=embedder, redactor=redactor),
            history=ToolHistory(
                store=store, memory=memory, index=index, embedder=embedder, redactor=redactor
            ),
            tools=ToolRegister(
                store=store,
                memory=memory,
                redactor=redactor,
                changes=changes,
                on_change=indexer.wake,
            ),
            tool_health=ToolHealths(
                store=store,
                memory=memory,
                redactor=redactor,
                open_recommendations=recommendations.open_ids,
                cohesion=cohesion,
            ),
            boundaries=BoundaryReports(
                store=store, memory=memory, redactor=redactor, rules=cohesion
            ),
            clusterer=clusterer,
            promotions=Promotions(
                store=store,
                memory=memory,
                redactor=redactor,
                changes=changes,
                on_change=indexer.wake,
            ),
            recommendations=recommendations,
            marks=FailureMarks(
                store=store, memory=memory, redactor=redactor, on_stored=indexer.wake
            ),
            corrections=Corrections(store=store, redactor=redactor, on_stored=indexer.wake),
            known_tools=KnownTools(
                store=store,
                memory=memory,
                redactor=redactor,
                public_url=settings.server.public_url,
                cohesion=cohesion,
            ),
            redactor=redactor,
            parsers=parsers,
            memory=memory,
            seed_patterns=len(seeds.entries),
            opened_at=time.monotonic(),
        )


def _cohesion_rules(settings: BoundarySettings) -> CohesionRules:
    return CohesionRules(
        min_failures=settings.min_failures,
        min_share=settings.min_share,
        half_life=timedelta(days=settings.half_life_days),
        correction_weight=settings.correction_weight,
        min_confidence=settings.min_confidence,
    )


async def _say_what_is_missing(store: LogStore) -> None:
    """A store of an earlier version is complete but for what was not learned then."""
    without = await store.get_fact(WITHOUT_STATISTICS)
    if without is not None:
        log_event(
            logger,
            "executions from before this version do not count yet in the health of tools, nor, if "
            "they are older still, in the choice of tools; "
            "stop the service and run `aftercall rebuild` once",
            level="warning",
            executions=int(without),
        )


async def _check_vectors(store: LogStore, index: VectorIndex) -> None:
    """Documents are committed after their vectors, so none at all means that somebody took them."""
    if await index.count() == 0 and (await store.counts()).documents > 0:
        raise VectorIndexError(
            "the log store knows documents whose vectors are gone: run `aftercall rebuild`, "
            "which makes them anew from the log"
        )
