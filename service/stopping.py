"""How a process is told to stop: the first signal asks it to, the second ends it."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Iterator
from typing import TypeVar

from service.logs import log_event

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class Stopping(asyncio.Event):
    """Set by the first signal."""

    by: signal.Signals | None = None
    """Which one it was; None before it came."""

    @property
    def status(self) -> int:
        """The exit code of a command that the signal kept from its end, as shells count them."""
        return 0 if self.by is None else 128 + self.by


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Stopping]:
    """An event that the first SIGINT or SIGTERM sets; the second ends the process at once."""
    loop = asyncio.get_running_loop()
    stopping = Stopping()

    def handle(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.by = signal.Signals(number)
        log_event(logger, "stopping", signal=stopping.by.name)
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


async def done_or_stopped(stopping: asyncio.Event, work: Awaitable[T]) -> T | None:
    """What the work returns; None when a signal came first, and the work was cancelled.

    Raises:
        Exception: whatever the work raises.
    """
    task = asyncio.ensure_future(work)
    await first(stopping, task)
    if not task.done():
        task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None
