"""Recalibrating by itself: a running service fits its workspaces' confidence anew once a day."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from ingest.recalibration import last_recalibration, recalibrate
from mongo.protocol import LogStore
from retrieval.memory import Memory
from service.logs import log_event

logger = logging.getLogger(__name__)

_SETTLE = timedelta(minutes=1)
"""After the start, callers that waited for the service come first."""

_JITTER = 0.05
"""Share of the wait by which it is drawn out, so that services started together do not fit so."""


@asynccontextmanager
async def recalibrating(
    store: LogStore, memory: Memory, every: timedelta, settle: timedelta = _SETTLE
) -> AsyncIterator[None]:
    """Recalibrate in the background until the block ends; a fit at work is given up then.

    Args:
        store: where outcomes are; it remembers the last run, so that a restart neither repeats nor
            postpones one.
        memory: told what has changed.
        every: from one run to the next; none at all when zero.
        settle: least time from now to the first.
    """
    if not every:
        yield
        return
    task = asyncio.create_task(_run(store, memory, every, settle), name="recalibrating")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _run(store: LogStore, memory: Memory, every: timedelta, settle: timedelta) -> None:
    wait = max(settle, await _until_due(store, every))
    while True:
        await asyncio.sleep(wait.total_seconds() * random.uniform(1, 1 + _JITTER))  # noqa: S311
        try:
            await recalibrate(store, memory)
        except Exception as error:  # noqa: BLE001  # whatever it is, the next run may do better
            log_event(logger, "recalibration failed", level="warning", error=error)
        wait = every


async def _until_due(store: LogStore, every: timedelta) -> timedelta:
    """Until the next run is due; not positive when it is overdue, or there was none."""
    try:
        last = await last_recalibration(store)
    except Exception as error:  # noqa: BLE001  # as above
        log_event(logger, "last recalibration is not known", level="warning", error=error)
        last = None
    if last is None:
        return timedelta(0)
    return min(every, last + every - datetime.now(UTC))  # a clock may have been set back
