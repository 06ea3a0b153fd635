"""One run of the nightly ingest: opens what it needs, holds the lease, closes everything."""

from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from datetime import timedelta

from embeddings.protocol import Embedder
from ingest.nightly.night import Night, OnProgress
from ingest.nightly.run import NightlyReport, run_night, take_night
from retrieval.memory import Memory
from service.lifecycle import COMMAND_PATIENCE_S
from service.moving.unfinished import refuse_half_imported
from service.rooms import opened_embedder, opened_store
from service.settings import Settings

Say = Callable[[str], None]


async def one_night(
    settings: Settings, say: Say, on_progress: OnProgress, only: Collection[str] = ()
) -> NightlyReport:
    """Run every step once, beside a running service or without one.

    The vector index is not opened: an embedded one belongs to its service.

    Args:
        settings: what to work on.
        say: told what it waits for, in one line.
        on_progress: told how far it is.
        only: names of steps (`ingest.nightly.run.STEP_NAMES`), when not all are to be run.

    Raises:
        NightlyBusyError: another process does it at the moment.
        NightlyLostError: another process took over, and goes on.
        StoreError: the store cannot be opened, or the report not be kept.
    """
    async with AsyncExitStack() as stack:

        async def open_model() -> Embedder:
            return await stack.enter_async_context(opened_embedder(settings))

        store = await stack.enter_async_context(
            opened_store(settings, _only_waiting(say), beside=True, patience_s=COMMAND_PATIENCE_S)
        )
        await refuse_half_imported(store)
        keeper = await take_night(store, settings.indexing.lease_s)
        stack.push_async_callback(keeper.close)
        days = settings.retention.days
        night = Night(
            store=store,
            memory=Memory(store),
            open_model=open_model,
            keeper=keeper,
            retention=timedelta(days=days) if days else None,
            on_progress=on_progress,
        )
        return await run_night(night, only)


def _only_waiting(say: Say) -> Say:
    """Phases that are over in a moment are not worth a line."""

    def told(phase: str) -> None:
        if phase.startswith("waiting"):
            say(phase)

    return told
