"""Rebuilding: what was learned is forgotten, then learned again from the log."""

import time
from collections.abc import Callable

from service.config.settings import Settings
from service.container import open_services

_SAY_EVERY_S = 2.0


async def rebuild(settings: Settings, say: Callable[[str], None]) -> int:
    """Forget and learn again; returns how many records were learned from.

    Killed at any point, it can be run again, or the service started: it goes on with what is left.

    Raises:
        StoreInUseError: a service runs on the folder.
        StoreError, EmbeddingError, VectorIndexError, OSError: what stopped it, with the cure.
    """
    async with open_services(settings, anew=True) as services:
        pending = (await services.store.counts()).pending
        say(f"learning from {pending:,} records with {services.embedder.name}")
        started = said = time.monotonic()

        def progress(done: int) -> None:
            nonlocal said
            if (now := time.monotonic()) - said >= _SAY_EVERY_S:
                said = now
                say(f"{done:,} of {pending:,} ({done / (now - started):,.0f} a second)")

        done = await services.indexer.run_until_empty(progress)
        await services.clusterer.cluster_all()  # the model may be another; ids and names stay
        return done
