"""How a process is told to stop: the first signal asks it to, the second ends it."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator

from service.logs import log_event

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """An event that the first SIGINT or SIGTERM sets; the second ends the process at once."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def handle(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        log_event(logger, "stopping", signal=signal.Signals(number).name)
        stopping.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, handle, number)
    try:
        yield stopping
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def first(stopping: asyncio.Event, task: "asyncio.Task[object]") -> None:
    """Wait for the signal or for the task, whichever comes first."""
    signalled = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((signalled, task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        signalled.cancel()
