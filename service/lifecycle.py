"""How a process starts, waits for its servers, and stops."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import math
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from aftercall.errors import AftercallError
from aftercall.files import GATEWAYS_LOCK
from aftercall.places import try_lock, unlock_file
from aftercall.process import ended_by_signals
from embeddings.protocol import EmbeddingError
from ingest import pacing
from ingest.seed import SeedCorpusError
from mongo.errors import StoreError, StoreUnavailableError
from retrieval.index.protocol import VectorIndexError, VectorIndexUnavailableError
from service.logs import log_event

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Stopping(asyncio.Event):
    """Set by the first signal."""

    by: signal.Signals | None = None
    """Which one it was; None before it came."""

    @property
    def status(self) -> int:
        """Exit code of a command that the signal kept from its end, as shells count them."""
        return 0 if self.by is None else 128 + self.by


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Stopping]:
    """Yield an event that the first SIGINT or SIGTERM sets; the second ends the process at once."""
    stopping = Stopping()

    def stop() -> None:
        number = received[-1]
        if stopping.is_set():
            os._exit(128 + number)
        stopping.by = number
        log_event(logger, "stopping", signal=number.name)
        stopping.set()

    with ended_by_signals(stop) as received:
        yield stopping


async def wait_for_first(stopping: asyncio.Event, task: "asyncio.Task[object]") -> None:
    """Wait for the signal or for the task, whichever comes first."""
    signalled = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((signalled, task), return_when=asyncio.FIRST_COMPLETED)
    finally:
        signalled.cancel()


async def done_or_stopped(stopping: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Return what the work returns; None when a signal came first, and the work was cancelled."""
    task = asyncio.ensure_future(work)
    await wait_for_first(stopping, task)
    if not task.done():
        task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


async def wait_until_unused(folder: Path, linger_s: float) -> None:
    """Return once no gateway has held its lock in the folder for so many seconds.

    The lock is kept until this process has ended: a gateway waits for it, and starts a new service.
    """
    loop = asyncio.get_running_loop()
    left_at: float | None = None
    while True:
        lock = try_lock(folder / GATEWAYS_LOCK, alone=True)
        now = loop.time()
        left_at = None if lock is None else left_at or now
        if lock is not None and left_at is not None:
            if now - left_at >= linger_s:
                log_event(logger, "no gateway uses the service any more", seconds=round(linger_s))
                return
            unlock_file(lock)
        await asyncio.sleep(min(1.0, linger_s / 4))


async def end_process(process: asyncio.subprocess.Process, patience_s: float) -> None:
    """End a child, if it has not ended; killed after so many seconds."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(asyncio.shield(process.wait()), patience_s)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


Step = Callable[[], Awaitable[float]]
"""Does what is to be done now, and returns the seconds until it is to be called again."""
_JITTER = 0.05
"""Share of a wait by which it is drawn out, so that processes started together do not meet."""
_DICE = random.Random()  # noqa: S311  # no secret
"""Its own: a service in a notebook takes nothing from what its author seeded."""


async def again_and_again(step: Step, name: str, wait_s: float, retry_s: float) -> None:
    """Take steps for ever, after a wait; one that fails is taken again, and logged at first."""
    said = ""
    while True:
        await asyncio.sleep(wait_s * _DICE.uniform(1, 1 + _JITTER))
        try:
            wait_s, said = await step(), ""
        except Exception as error:  # noqa: BLE001  # whatever it is, the next time may do better
            if said != (said := type(error).__name__):
                log_event(logger, f"{name} failed", level="warning", error=error)
            wait_s = retry_s


@contextlib.asynccontextmanager
async def keep_doing(step: Step, name: str, wait_s: float, retry_s: float) -> AsyncIterator[None]:
    """Run `again_and_again` next to the block; cancel it at the end."""
    task = asyncio.create_task(again_and_again(step, name, wait_s, retry_s), name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


_WAKE_S = 1.0
"""That a request waits for a look; a store that hangs is waited for no longer."""


class Attention:
    """How often this process looks at what others did: often while it is asked, seldom else.

    An idle process asks the store next to nothing. The first request after a pause waits for a
    look, a second at most, so that no answer is older than the looks of a busy process.
    """

    def __init__(
        self, idle_after_s: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_after_s = idle_after_s
        self._clock = clock
        self._asked_at = clock()
        self._looks: list[Step] = []
        self._waking: asyncio.Future[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether no one has asked for a while."""
        return self._clock() - self._asked_at > self._idle_after_s

    def paced(self, look: Step, every_s: float, idle_s: float, *, wakes: bool = True) -> Step:
        """Return a step that looks each time, but in an idle process once in `idle_s` seconds.

        With `wakes` the first request after a pause waits for it.
        """
        looked_at = -math.inf

        async def step() -> float:
            nonlocal looked_at
            now = self._clock()
            if self.is_idle and now - looked_at < idle_s:
                return every_s
            looked_at = now
            return await look()

        if wakes:
            self._looks.append(step)
        return step

    async def asked(self) -> None:
        """Someone asks: look at once where no one had asked for a while."""
        was_idle = self.is_idle
        self._asked_at = self._clock()
        if was_idle and self._waking is None:
            steps = (step() for step in self._looks)
            self._waking = asyncio.gather(*steps, return_exceptions=True)
            self._waking.add_done_callback(self._woken)
        if self._waking is not None:
            await asyncio.wait([self._waking], timeout=_WAKE_S)

    def _woken(self, _: object) -> None:
        self._waking = None


class Shared:
    """What several ask for at about the same time is asked once. For one event loop."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Future[Any]] = {}

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Return what `read` returns or raises, or did so a moment ago; no one may change it.

        The key names what is read, with all that it depends on. A result is given out until so many
        seconds after it was begun to be read; one that took longer three times as long, so that
        reading it over and over takes a quarter of the time at most. An error is not kept.
        """
        if (task := self._tasks.get(key)) is None:
            begun = asyncio.get_running_loop().time()
            task = self._tasks[key] = asyncio.ensure_future(read())
            task.add_done_callback(lambda done: self._done(key, done, begun, seconds))
        # A caller who leaves must not stop what others wait for.
        result: T = await asyncio.shield(task)
        return result

    def _done(
        self, key: Hashable, task: "asyncio.Future[Any]", begun: float, seconds: float
    ) -> None:
        loop = asyncio.get_running_loop()
        took = loop.time() - begun
        if task.cancelled() or task.exception() is not None:  # the callers who wait get the error
            self._drop(key, task)
        else:
            loop.call_later(max(seconds - took, 3 * took), self._drop, key, task)

    def _drop(self, key: Hashable, task: "asyncio.Future[Any]") -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]

    def forget(self) -> None:
        """Read all again: what was read may be from before a change."""
        self._tasks.clear()


OnPhase = Callable[[str], None]
"""Receives the present step, in words that complete "the service is ..."."""
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
    """Return what `opened` returns, once whatever it needs is there.

    `opened` opens it, or raises, and is called again after a pause; `what` is waited for, with its
    address and without credentials. After `patience_s` seconds it is given up; None: never.
    """
    began = time.monotonic()
    pause, shown = _FIRST_PAUSE_S, None
    while True:
        try:
            return await opened()
        except (StoreUnavailableError, VectorIndexUnavailableError) as error:
            now = time.monotonic()
            if patience_s is not None and now + pause - began > patience_s:
                raise
            on_phase(f"waiting for {what}")
            if shown is None or now - shown >= _SAY_EVERY_S:
                shown = now
                log_event(
                    logger,
                    f"waiting for {what}",
                    level="warning",
                    seconds=round(now - began),
                    reason=str(error),
                )
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


_YOUNG_OBJECTS = 50_000
"""New objects that make the garbage collector look at the young ones; Python's own is 700. The
store's rows are many small objects without cycles: by Python's own threshold the collector took two
thirds of the time of reading them (`bench/known_tools.py`), and a fifth of that of learning."""


def spare_collector() -> None:
    """Let Python look for garbage seldom: for a process that reads or learns many rows."""
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)


def settle_memory() -> None:
    """Once all is loaded: spare the garbage collector that (200 ms), and give back what is free.

    From then on it looks among new objects alone: what stays is its keeper's (`GarbageKeeper`).
    """
    gc.freeze()
    gc.set_threshold(pacing.YOUNG, 1_000, 1_000)
    gc.enable()
    give_back_memory()


class GarbageKeeper:
    """Spares Python's garbage collector what stays, and has it look among all now and then.

    What learning makes is kept, or goes without a collector: of 160,000 objects of a batch some
    hundred are garbage. To look for them holds the interpreter lock, and each answer up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at = clock()

    def tend(self, *, is_idle: bool) -> bool:
        """Spare all that is there; look among all first where it is time to. Return whether."""
        now = self._clock()
        is_due = now - self._looked_at >= (pacing.GARBAGE_IDLE_S if is_idle else pacing.GARBAGE_S)
        if is_due:
            gc.unfreeze()
            gc.collect()
            self._looked_at = now
        gc.freeze()
        return is_due


def give_back_memory() -> None:
    """Give back what is free between what stays: glibc keeps it, 50 MiB while a history is learned.

    Takes milliseconds, without the interpreter lock. Other libraries of C have no such call.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class CannotOpenError(AftercallError):
    """A store, the model or the index cannot be opened; the message names the cure."""


@contextmanager
def shorten_errors(data_dir: Path) -> Iterator[None]:
    """Turn known errors into one line for the command line; nothing else is caught."""
    try:
        yield
    except (StoreError, VectorIndexError, EmbeddingError, SeedCorpusError) as error:
        raise CannotOpenError(" ".join(str(error).split())) from error
    except OSError as error:
        place = error.filename or data_dir
        raise CannotOpenError(
            f"cannot use {place}: {error.strerror or error}; choose a folder with --data-dir"
        ) from error
