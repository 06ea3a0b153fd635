"""A tail that grew long: has the nightly step `statistics` run, so that starts stay quick."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from service.logs import log_event
from service.nightly import BUSY

logger = logging.getLogger(__name__)

LONG: Final = 20_000
"""Executions in a tail: a start counts them anew in some seconds."""

AFTER_S: Final = 180.0
"""Seconds from the end of a run to the next one at least: it leaves out the last two minutes."""

AGAIN_S: Final = 600.0
"""As much behind one that failed, or that another process had at hand."""

_JITTER: Final = 0.2
"""Share of it by which it is drawn out, so that services on one store do not meet again."""

RunStep = Callable[[], Awaitable[int]]
"""Runs the step to its end; its exit code. Cancelled, it stops it."""


class LongTails:
    """Starts the step when it is wanted, one run at a time. All on one event loop.

    Args:
        run: does it; None where nobody may.
        clock: seconds that only grow.
    """

    def __init__(self, run: RunStep | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._not_before = -1.0

    def wanted(self) -> None:
        """Start it, unless it runs or did so lately; returns at once."""
        if self._run is None or self._task is not None or self._clock() < self._not_before:
            return
        self._task = asyncio.create_task(self._one(self._run), name="counting a long tail")

    async def close(self) -> None:
        """Stop a run at work; what it had done holds. None is started any more."""
        self._run = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _one(self, run: RunStep) -> None:
        status = 1
        try:
            status = await run()
        except Exception as error:  # noqa: BLE001  # whatever it is, the next run may do better
            log_event(
                logger, "the count of a long tail did not start", level="warning", error=error
            )
        else:
            if status not in (0, BUSY):
                log_event(logger, "the count of a long tail failed", level="warning", status=status)
        finally:
            pause = (AGAIN_S if status else AFTER_S) * random.uniform(1, 1 + _JITTER)  # noqa: S311
            self._not_before = self._clock() + pause
            self._task = None
