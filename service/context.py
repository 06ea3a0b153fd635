"""The context: what an operation needs, made once at the start of the process.

Operations are functions of a context and of typed models: routes, MCP tools, the dashboard and
notebooks call the same ones. Each raises `StoreError` when the store cannot say or keep what it is
about. Stores, index, embedder and what stands on them are opened and closed here.
"""

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from cachetools import LRUCache, TTLCache

from aftercall.files import key_file
from aftercall.redaction import Redactor
from embeddings.embedders import CachedEmbedder
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.sampling import SuccessSampler
from mongo.protocol import Store
from mongo.records import CounterSum, ToolKey
from retrieval.answers.fitness.history import ToolHistory
from retrieval.answers.fitness.search import ToolChooser
from retrieval.answers.known_tools.facts import ToolFacts
from retrieval.answers.proposers.registry import register_plugins
from retrieval.answers.suggest import Suggester
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.patterns.cohesion import CohesionRules
from service.journal import open_journal
from service.keys import ANYBODY, Access, Keyring, open_keyring, quorum_of
from service.learning import Learning, Relearning, open_learning
from service.lifecycle import Attention, OnPhase, Shared, beside
from service.metrics import ServiceMetrics
from service.nightly import nightly
from service.settings import Settings
from service.stores import open_stores, opened_control

_RELEARN_S = 60.0
"""After learning again has failed."""


@dataclass(frozen=True, slots=True)
class Context:
    """What operations need."""

    settings: Settings
    store: Store
    embedder: Embedder
    index: VectorIndex
    indexer: Indexer
    intake: Intake
    suggester: Suggester
    chooser: ToolChooser
    history: ToolHistory
    redactor: Redactor
    changing: asyncio.Lock
    """Held while a change of tools or promotions looks at what there is, and writes."""
    cohesion: CohesionRules
    """When a tool is stated to be asked for several jobs."""
    clock: Callable[[], datetime]
    """The time now, with a zone."""
    tool_facts: TTLCache[ToolKey, tuple[list["weakref.ref[object] | None"], ToolFacts]]
    """What `service.known_tools` made of each tool, and from what: `Memory` replaces what it
    changes. Facts fade over days and agents ask often, so they are kept for a minute."""
    sums: TTLCache[Hashable, list[CounterSum]]
    """What `service.windows` read: pages of many viewers ask for the same each second. What was
    learned since is never left out."""
    top_tools: TTLCache[Hashable, list[ToolKey]]
    """Which tools counted most, in the same way."""
    sums_of_past_hours: TTLCache[Hashable, list[CounterSum]]
    """Of hours that are over, as long as no more is counted in them."""
    pattern_marks: LRUCache[Hashable, Mapping[str, str]]
    """Patterns of failures by their marks, of workspaces as of a consolidation: some MB each."""
    seed_patterns: int
    memory: Memory
    learning: Learning
    relearning: Relearning
    shared: Shared
    metrics: ServiceMetrics
    attention: Attention
    opened_at: float
    keys: Keyring
    caller: Access = ANYBODY
    """Who asks; a request has a copy of the context with its own."""

    @property
    def quorum(self) -> int:
        """Principals whose own repairs a semantic change wants before it may be followed."""
        return quorum_of(self.settings, self.keys)

    async def note(self, workspace: str, action: str, subject: str) -> None:
        """Add to the audit what the caller did."""
        await self.keys.note(self.caller, workspace, action, subject)


@dataclass(slots=True)
class Lifecycle:
    """Where the process is from start to end; `phase` completes "the service is ..."."""

    context: Context | None = None
    phase: str = "starting"
    linger_s: float | None = None
    """Seconds that it stays after the last gateway left; None: until it is stopped."""

    def stopping(self) -> None:
        """Nothing is served any more."""
        self.context, self.phase = None, "stopping"


def open_redactor(settings: Settings) -> Redactor:
    """Return what masks secrets, as the settings say.

    It makes the key of hashes where there is none.
    """
    privacy = settings.privacy
    return Redactor.create(
        extra_names=privacy.secret_names,
        allowlists=privacy.allowlists,
        hash_key=key_file(privacy.hash_key_file or settings.data.dir / "hash.key"),
    )


@asynccontextmanager
async def open_context(
    settings: Settings,
    on_phase: OnPhase = lambda _: None,
    embedder: Future[CachedEmbedder] | None = None,
) -> AsyncIterator[Context]:
    """Open the rooms and what stands on them; close all in reverse, failures included."""
    async with AsyncExitStack() as stack:
        attention = Attention()
        control = await stack.enter_async_context(opened_control(settings, on_phase))
        keys = await stack.enter_async_context(open_keyring(settings, control, attention))
        stores = await stack.enter_async_context(open_stores(settings, on_phase, embedder))
        store, memory = stores.store, stores.memory
        await keys.attach(store.metadata)
        stack.push_async_callback(keys.detach)
        log = store.events
        metrics = ServiceMetrics(settings.metrics.tools)
        index = stores.index
        index.on_error = partial(metrics.failed, "vectors")
        register_plugins()
        redactor = open_redactor(settings)
        learning = await stack.enter_async_context(open_learning(settings, stores, attention))
        indexer = learning.indexer
        journal = await stack.enter_async_context(open_journal(settings.data.dir, log))
        suggester = Suggester(
            log=log,
            journal=journal,
            on_stored=indexer.wake_learner,
            memory=memory,
            index=index,
            embedder=stores.embedder,
            redactor=redactor,
            seeds=stores.seeds,
            quorum=partial(quorum_of, settings, keys),
        )
        stack.push_async_callback(suggester.close)
        if settings.indexing.here and learning.can_learn:
            indexer.start()
        await stack.enter_async_context(nightly(settings, store))
        relearning = Relearning(settings, store)
        await stack.enter_async_context(beside(relearning.step, "learning anew", 0, _RELEARN_S))
        yield Context(
            settings=settings,
            store=store,
            embedder=stores.embedder,
            index=index,
            indexer=indexer,
            intake=Intake(
                log,
                redactor,
                indexer.wake_learner,
                SuccessSampler(**settings.sampling.model_dump()),
                retention=timedelta(days=days) if (days := settings.retention.days) else None,
                on_receipt=metrics.received,
            ),
            suggester=suggester,
            chooser=ToolChooser(
                memory=memory, index=index, embedder=stores.embedder, redactor=redactor
            ),
            history=ToolHistory(
                log=log, memory=memory, index=index, embedder=stores.embedder, redactor=redactor
            ),
            redactor=redactor,
            changing=asyncio.Lock(),
            cohesion=CohesionRules(
                half_life=timedelta(days=settings.boundaries.half_life_days),
                **settings.boundaries.model_dump(exclude={"half_life_days"}),
            ),
            clock=lambda: datetime.now(UTC),
            tool_facts=TTLCache(maxsize=2_000, ttl=60),
            sums=TTLCache(maxsize=512, ttl=5),
            top_tools=TTLCache(maxsize=64, ttl=5),
            sums_of_past_hours=TTLCache(maxsize=256, ttl=3600),
            pattern_marks=LRUCache(maxsize=20),
            memory=memory,
            seed_patterns=len(stores.seeds.entries),
            learning=learning,
            relearning=relearning,
            shared=Shared(),
            metrics=metrics,
            attention=attention,
            opened_at=time.monotonic(),
            keys=keys,
        )
