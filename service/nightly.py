"""The nightly ingest of a service: started once a day as a process of its own, next to the service.

It works on the store alone and gives way to callers who wait for answers. Services that share a
store start it in turn: each reads when the last run was, and only one can run at a time.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta

from embeddings.protocol import Embedder
from ingest.nightly import NightlyJob, NightlyReport, OnProgress, last_report, run_steps, take_lease
from ingest.nightly_steps import STEPS
from mongo.protocol import Store
from retrieval.knowledge.memory import Memory
from service.archive import refuse_half_imported
from service.lifecycle import COMMAND_PATIENCE_S, keep_doing
from service.logs import log_event
from service.processes import run_process
from service.settings import Settings
from service.stores import opened_embedder, opened_store

logger = logging.getLogger(__name__)
SETTLE = timedelta(minutes=10)
"""After the start, callers that waited for the service come first."""
_AGAIN = timedelta(hours=1)
"""Until a run is tried again that did not come to its end or left something to expire, or that
another process has available."""
BUSY = 75
RunNight = Callable[[], Awaitable[int]]
"""Runs the nightly ingest to its end; its exit code. Cancelled, it stops it."""


@asynccontextmanager
async def open_nightly(
    settings: Settings, store: Store, *, settle: timedelta = SETTLE, run: RunNight | None = None
) -> AsyncIterator[None]:
    """Run it in the background until the block ends; a run at work is stopped then.

    The settings have the interval; 0 means no run at all. The store remembers the last run, so that
    a restart neither repeats nor postpones one. The first run is not before `settle`.
    """
    if not (every := timedelta(hours=settings.nightly.every_h)):
        yield
        return
    retry_s = min(every, _AGAIN).total_seconds()

    async def run_due() -> float:
        if (wait_s := await _due_in_s(store, every)) > 0:
            return wait_s
        status = await (run() if run else run_process(settings, "nightly", "--background"))
        if status not in (0, BUSY):
            log_event(logger, "the nightly run failed", level="warning", status=status)
        return max(retry_s, await _due_in_s(store, every))

    async with keep_doing(run_due, "the nightly run", settle.total_seconds(), retry_s):
        yield


async def _due_in_s(store: Store, every: timedelta) -> float:
    """Return the seconds until the next run; not positive if it is overdue, or the first."""
    if (last := await last_report(store)) is None:
        return 0
    if last.is_behind:
        every = min(every, _AGAIN)
    # The clock may have been set back.
    return min(every, last.started_at + every - datetime.now(UTC)).total_seconds()


Say = Callable[[str], None]


async def run_nightly(
    settings: Settings, say: Say, on_progress: OnProgress, *, expire_all: bool = False
) -> NightlyReport:
    """Run every step once, next to a service or not, on no vector index; report waits to `say`."""

    def only_waiting(phase: str) -> None:
        if phase.startswith("waiting"):  # others are over in a moment
            say(phase)

    async with AsyncExitStack() as stack:

        async def open_model() -> Embedder:
            return await stack.enter_async_context(opened_embedder(settings))

        store = await stack.enter_async_context(
            opened_store(settings, only_waiting, beside=True, patience_s=COMMAND_PATIENCE_S)
        )
        await refuse_half_imported(store.metadata)
        keeper = await take_lease(store, settings.indexing.lease_s)
        stack.push_async_callback(keeper.close)
        days = settings.retention.days
        job = NightlyJob(
            store=store,
            memory=Memory(store),
            open_model=open_model,
            keeper=keeper,
            knowledge=store.knowledge,
            retention=timedelta(days=days) if days else None,
            expire_all=expire_all,
            on_progress=on_progress,
        )
        return await run_steps(job, STEPS)
