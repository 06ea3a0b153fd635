"""A worker: a process that learns and embeds, and answers nobody.

Any number may run beside any number of services on the same server stores. They share out the
workspaces by leases; one that ends or is killed is followed by the others.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from aftercall.errors import AftercallError
from service.learning import open_learning
from service.lifecycle import (
    COMMAND_PATIENCE_S,
    OnPhase,
    done_or_stopped,
    settle_memory,
    stopped_by_signals,
)
from service.logs import log_event
from service.rooms import Rooms, open_rooms
from service.settings import Settings
from service.tracing import traced

logger = logging.getLogger(__name__)


class StandsStillError(AftercallError):
    """It cannot learn as it was started; the message names the cure."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What a worker that was to end by itself has done."""

    records: int
    pending: int
    """Left when it ended: new ones, and what other processes have in their hands."""


async def work(settings: Settings, on_ready: Callable[[Rooms], None]) -> None:
    """Learn until SIGINT or SIGTERM; then end the batch at hand and give back what is claimed.

    A server that is away is waited for. A second signal ends the process where it stands, which is
    safe: a batch is committed whole or not at all.

    Raises:
        StoreError, EmbeddingError, VectorIndexError: what cannot be opened, with the cure.
        ConfigurationError: spans are to be sent, and the extra for it is missing.
    """

    async def learn() -> None:
        async with (
            open_rooms(settings, _phases()) as rooms,
            open_learning(settings, rooms) as learning,
        ):
            settle_memory()
            if learning.switch.problem is None:
                learning.indexer.start()
            on_ready(rooms)
            await asyncio.Event().wait()

    with traced(settings), stopped_by_signals() as stopping:
        await done_or_stopped(stopping, learn())
    log_event(logger, "stopped")


async def work_once(settings: Settings) -> Worked:
    """Learn what is queued, and end.

    What other processes that live have claimed is left to them.

    Raises:
        StandsStillError: the vectors were made by another model.
        StoreError, EmbeddingError, VectorIndexError: what stopped it; it can be run again.
    """
    async with (
        open_rooms(settings, _phases(), patience_s=COMMAND_PATIENCE_S) as rooms,
        open_learning(settings, rooms) as learning,
    ):
        if learning.switch.problem is not None:
            raise StandsStillError(learning.switch.problem)
        records = await learning.indexer.run_until_empty()
        return Worked(records, (await rooms.store.counts()).pending)


def _phases() -> OnPhase:
    """Logs what is being done; what is waited for is told again and again, and logged once."""
    last = ""

    def phase(what: str) -> None:
        nonlocal last
        if what != last:
            last = what
            log_event(logger, what)

    return phase
