"""The context: what an operation needs, made once at the start of the process.

Operations are functions of a space and of typed models: routes, MCP tools, the dashboard and
notebooks call the same ones. Each raises `StoreError` if the store cannot read or keep what the
operation needs. Stores, index, embedder and what uses them are opened and closed here.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from aftercall.files import key_file
from aftercall.places import try_lock, unlock_file
from aftercall.redaction import Redactor
from embeddings.embedders import CachedEmbedder
from embeddings.protocol import Embedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from ingest.sampling import SuccessSampler
from mongo.contents import IssuedSuggestion, suggestion_event
from mongo.protocol import EventLog, Store
from mongo.records import decode_json, encode_json
from retrieval.answers.fitness.history import ToolHistory
from retrieval.answers.fitness.search import ToolChooser
from retrieval.answers.proposers.registry import register_plugins
from retrieval.answers.suggest import Suggester
from retrieval.index.protocol import VectorIndex
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.patterns.cohesion import CohesionRules
from service.databases import opened_control
from service.keys import ANYBODY, Access, Keyring, open_keyring, quorum_of
from service.learning import Learning, Relearning, open_learning
from service.lifecycle import Attention, OnPhase, Shared, keep_doing
from service.logs import log_event
from service.metrics import ServiceMetrics
from service.nightly import open_nightly
from service.settings import Settings
from service.stores import open_stores

CacheT = TypeVar("CacheT")
_RELEARN_S = 60.0
"""After learning again has failed."""


@dataclass(frozen=True, slots=True)
class Context:
    """The stores, models, settings and caller that operations need."""

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
    caches: "Caches"
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
    """The caller; each request has a copy of the context with its own caller."""

    @property
    def quorum(self) -> int:
        """Principals whose own repairs a semantic change wants before it may be followed."""
        return quorum_of(self.settings, self.keys)

    async def note_action(self, workspace: str, action: str, subject: str) -> None:
        """Add to the audit what the caller did."""
        await self.keys.note_action(self.caller, workspace, action, subject)


class Caches:
    """The caches of features: each feature has a class of its own, and one cache of it."""

    def __init__(self) -> None:
        self._by_class: dict[type[Any], Any] = {}

    def get_cache(self, kind: type[CacheT]) -> CacheT:
        """Return the cache of a class, which is made without arguments when it is first needed."""
        if kind not in self._by_class:
            self._by_class[kind] = kind()
        found: CacheT = self._by_class[kind]
        return found


class Space(NamedTuple):
    """The open context with its caller, and the caller's workspace: where an operation works.

    Every operation of `service.api` takes it first, whether a route, a page or a script calls.
    """

    context: Context
    workspace: str


@dataclass(slots=True)
class Lifecycle:
    """Where the process is from start to end; `phase` completes "the service is ..."."""

    context: Context | None = None
    phase: str = "starting"
    linger_s: float | None = None
    """Seconds that it stays after the last gateway left; None: until it is stopped."""

    def begin_stopping(self) -> None:
        """Serve nothing any more."""
        self.context, self.phase = None, "stopping"


def open_redactor(settings: Settings) -> Redactor:
    """Return what masks secrets, as the settings ask.

    It makes the key of hashes if there is no key yet.
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
    """Open stores, learner and journal; close all in reverse order, also after a failure."""
    async with AsyncExitStack() as stack:
        attention = Attention()
        control = await stack.enter_async_context(opened_control(settings, on_phase))
        keys = await stack.enter_async_context(open_keyring(settings, control, attention))
        stores = await stack.enter_async_context(open_stores(settings, on_phase, embedder))
        store, memory = stores.store, stores.memory
        await keys.attach_facts(store.metadata)
        stack.push_async_callback(keys.detach_facts)
        log = store.events
        metrics = ServiceMetrics(settings.metrics.tools)
        index = stores.index
        index.on_error = partial(metrics.count_failure, "vectors")
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
        await stack.enter_async_context(open_nightly(settings, store))
        relearning = Relearning(settings, store)
        await stack.enter_async_context(
            keep_doing(relearning.learn_once, "learning anew", 0, _RELEARN_S)
        )
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
                on_receipt=metrics.count_received,
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
            caches=Caches(),
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


# --- The journal of suggestions ---
# `/suggest` waits for no store, so an answer is out some 50 ms before its suggestions are in the
# log. Until then they are in a file of this process, which the operating system has, though perhaps
# no disk: the file survives a kill, but not a loss of power. The next start stores what a killed
# process left.
logger = logging.getLogger(__name__)
_JOURNALS = "suggestions-*.jsonl"


@dataclass(slots=True)
class SuggestionJournal:
    """The file of one process, open and locked; writing takes some 10 microseconds."""

    descriptor: int
    _is_empty: bool = True

    def add(self, suggestion_id: str, issued: IssuedSuggestion, principal: str) -> None:
        """Keep a suggestion until `clear`; a full disk is logged, and the answer goes out."""
        line = [suggestion_id, principal, encode_json(issued).decode()]
        try:
            os.write(self.descriptor, json.dumps(line).encode() + b"\n")
        except OSError as error:
            log_event(logger, "a suggestion is not kept for a kill", level="warning", error=error)
        self._is_empty = False

    def clear(self) -> None:
        """Empty the file, when its suggestions are in the log."""
        if not self._is_empty:
            os.ftruncate(self.descriptor, 0)
            self._is_empty = True


@asynccontextmanager
async def open_journal(folder: Path, log: EventLog) -> AsyncIterator[SuggestionJournal]:
    """Yield a journal in a folder; first store in the log what killed processes left there."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    for path, lock in await asyncio.to_thread(lambda: list(_of_killed(folder))):
        try:
            for suggestion_id, principal, issued in await asyncio.to_thread(_read_journal, path):
                event = suggestion_event(suggestion_id, issued, principal)
                await log.append(issued.tool.workspace, [event])
            path.unlink()
        finally:
            unlock_file(lock)
    path = folder / _JOURNALS.replace("*", uuid4().hex)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    lock = try_lock(path, alone=True, made=False) or 0
    try:
        yield SuggestionJournal(descriptor)
    finally:
        is_empty = os.fstat(descriptor).st_size == 0
        os.close(descriptor)
        if is_empty:
            path.unlink(missing_ok=True)
        unlock_file(lock)


def _of_killed(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in sorted(folder.glob(_JOURNALS)):
        if (lock := try_lock(path, alone=True, made=False)) is not None:  # no process has it
            yield path, lock


def _read_journal(path: Path) -> list[tuple[str, str, IssuedSuggestion]]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            suggestion_id, principal, data = json.loads(line)
            found.append((suggestion_id, principal, decode_json(IssuedSuggestion, data.encode())))
        except ValueError:
            log_event(logger, "half a suggestion of a killed process is left out", level="warning")
    return found
