"""Work next to the caller: in time, in a thread, on a loop of its own, in a process of its own."""

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_TICK_S = 0.02
"""How often it is looked at how much a running program wrote."""
_GLANCE_S = 0.0005
"""How often it is looked at whether someone still waits."""


def in_thread(call: Callable[[], T]) -> "asyncio.Future[T]":
    """Start `call` in a daemon thread; the future gets what it returns or raises.

    Unlike the loop's own pool, one that hangs keeps neither the loop nor the process from ending.
    Must be called in a running loop.
    """
    return asyncio.wrap_future(_start_call(call))


@dataclass(slots=True)
class Precedence:
    """Lets what someone waits for go first: all threads share one interpreter lock."""

    waiting: list[None] = field(default_factory=list)
    """One for each who waits now: a list is changed by several threads without a loss."""

    def __enter__(self) -> None:
        self.waiting.append(None)

    def __exit__(self, *_: object) -> None:
        self.waiting.pop()

    def let_others(self, most_s: float) -> None:
        """Wait, in a thread, until no one waits any more: `most_s` seconds at most."""
        until = time.monotonic() + most_s
        while self.waiting and time.monotonic() < until:
            time.sleep(_GLANCE_S)


ANSWERS = Precedence()
"""Answers to agents, before what is learned for later ones."""
_LARGE = ThreadPoolExecutor(2, thread_name_prefix="aftercall-large")


async def call_aside(call: Callable[..., T], *given: Any, when: bool = True) -> T:
    """Return what `call` returns; `when` it takes long, it runs in a thread.

    Two, so that the loop waits for no more than those, however much is asked.
    """
    if not when:
        return call(*given)
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_LARGE, run, call, *given)


def _start_call(call: Callable[[], T]) -> "Future[T]":
    # In the caller's context: what is current there (a span) is what the call is part of.
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call())
        except StopIteration as stop:  # which a future does not take
            future.set_exception(RuntimeError(f"StopIteration: {stop.value!r}"))
        except BaseException as error:  # noqa: BLE001  # it is raised again where it is awaited
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="aftercall-work", daemon=True).start()
    return future


async def to_the_end(work: "asyncio.Future[T]") -> T:
    """Return the result of `work`. A caller that is cancelled waits until it is done."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # it counts as seen, for no one asks any more
        raise


class OutputTooLargeError(Exception):
    """The program wrote more to standard output than is taken."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended.

    `status` is its exit status (negative: the signal that killed it; None: its time was up),
    `stdout` and `stderr` are the ends of what it wrote, and `left_out` is how many bytes of
    standard output come before that.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    left_out: int = 0


async def run_program(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
    max_stdout_bytes: int | None = None,
    kept_bytes: int = 64 * 1024,
) -> Finished:
    """Run a program to its end, without a shell, in a process group of its own (POSIX).

    What it has started ends with it, and it ends when the caller is cancelled. A child that makes a
    session of its own (`setsid`) escapes this: containers hold such programs. Input and output are
    temporary files, so that no one waits for a pipe that a child holds open.

    It is killed after `timeout_s` seconds, or when it writes more than `max_stdout_bytes`; None
    takes any number, and standard error goes to standard output. `kept_bytes` are kept of the end
    of standard error, without `max_stdout_bytes` of both together. `env` is its whole environment.
    A program that cannot be started is an `OSError`.
    """
    most = sys.maxsize if max_stdout_bytes is None else max_stdout_bytes
    with ExitStack() as files:
        source, out, err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        source.write(stdin)
        source.seek(0)
        process = await asyncio.create_subprocess_exec(
            *arguments,
            cwd=cwd,
            env=dict(env),
            stdin=source,
            stdout=out,
            stderr=subprocess.STDOUT if max_stdout_bytes is None else err,
            start_new_session=True,
        )
        status = None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    while status is None:
                        with suppress(TimeoutError):
                            status = await asyncio.wait_for(process.wait(), _TICK_S)
                        if os.fstat(out.fileno()).st_size > most:
                            raise OutputTooLargeError
        finally:
            # The group outlives its leader while a child is left in it. PermissionError: what is
            # left of it is not ours (a set-uid program), or, on macOS, only zombies.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        stdout = _end_of(out, kept_bytes if max_stdout_bytes is None else max_stdout_bytes)
        left_out = os.fstat(out.fileno()).st_size - len(stdout)
        return Finished(status, stdout, _end_of(err, kept_bytes), left_out)


def _end_of(file: IO[bytes], most: int) -> bytes:
    file.seek(max(0, os.fstat(file.fileno()).st_size - most))
    return file.read(most)


async def within(
    timeout_s: float, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return what a call returns within so many seconds."""
    return await asyncio.wait_for(call(*args, **kwargs), timeout_s)


def within_sync(
    timeout_s: float | None, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return what a call returns in time, made in a thread; a late call is left behind."""
    future = _start_call(partial(call, *args, **kwargs))
    try:
        return future.result(timeout_s)
    except TimeoutError as error:
        if future.done():
            raise
        raise TimeoutError(f"no answer within {timeout_s:g} s") from error


async def each(items: AsyncIterable[T] | Iterable[T]) -> AsyncIterator[T]:
    """Yield the items of either kind of iterable, awaited where that is asked."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class BackgroundLoop:
    """An event loop in a thread of this name; several threads may wait for work on it."""

    def __init__(self, name: str) -> None:
        self._closing = False
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the work returns. Where the caller is interrupted, the work is cancelled.

        It is a `RuntimeError` that the loop was closed, or that the caller runs on it.
        """
        with self._lock:
            running = self._submit_work(work)
        try:
            return running.result()
        except CancelledError as error:
            raise RuntimeError("this toolbox was closed while the call ran") from error
        except BaseException:
            running.cancel()
            raise

    def close(self, last: Callable[[], Awaitable[None]] | None) -> None:
        """Cancel what runs on the loop, await `last` and end the thread; twice does nothing."""

        async def end_tasks() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            if last is not None:
                await last()

        with self._lock:
            if self._closing:
                return
            ending = self._submit_work(end_tasks())
            self._closing = True
        try:
            ending.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _submit_work(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        problem = None
        if self._closing:
            problem = "this toolbox has been closed"
        elif threading.current_thread() is self._thread:
            problem = (
                "a coroutine that runs on this toolbox's loop cannot wait for the toolbox; make "
                "the tool a plain function, or give it an AsyncToolbox"
            )
        if problem is not None:
            work.close()
            raise RuntimeError(problem)
        return asyncio.run_coroutine_threadsafe(work, self._loop)
