"""Waiting for a server that is away: it is asked again, less and less often, until it answers."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mongo.errors import StoreUnavailableError
from retrieval.index.protocol import VectorIndexUnavailableError
from service.logs import log_event

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnPhase = Callable[[str], None]
"""Told what is being done, in words that complete "the service is ..."."""

COMMAND_PATIENCE_S = 30.0
"""A command that does one thing and ends: a scheduler rather hears that it failed."""

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_SAY_EVERY_S = 60.0


async def when_it_answers(
    opened: Callable[[], Awaitable[T]],
    what: str,
    *,
    on_phase: OnPhase = lambda _: None,
    patience_s: float | None = None,
) -> T:
    """What `opened` returns, once whatever it needs is there.

    Args:
        opened: opens it, or raises; called again after a pause.
        what: is waited for, with its address and without credentials.
        on_phase: told each time that it is being waited for.
        patience_s: seconds until it is given up; None for never.

    Raises:
        StoreUnavailableError, VectorIndexUnavailableError: it was not there in time.
    """
    began = time.monotonic()
    pause, said = _FIRST_PAUSE_S, None
    while True:
        try:
            return await opened()
        except (StoreUnavailableError, VectorIndexUnavailableError) as error:
            now = time.monotonic()
            if patience_s is not None and now + pause - began > patience_s:
                raise
            on_phase(f"waiting for {what}")
            if said is None or now - said >= _SAY_EVERY_S:
                said = now
                log_event(
                    logger,
                    f"waiting for {what}",
                    level="warning",
                    seconds=round(now - began),
                    reason=str(error),
                )
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)
