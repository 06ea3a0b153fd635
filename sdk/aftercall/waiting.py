"""Waiting for at most so long, and an event loop beside a synchronous program."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import CancelledError, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def within(
    timeout_s: float, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """What a call returns within so many seconds.

    Raises:
        TimeoutError: it did not return in time; it is cancelled.
    """
    return await asyncio.wait_for(call(*args, **kwargs), timeout_s)


def within_sync(timeout_s: float, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `within`, in a thread of its own: a call that is late is left behind.

    It runs in the caller's context: what is current there (a span) is what the call is part of.

    Raises:
        TimeoutError: it did not return in time.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # raised again in the caller's thread
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="aftercall-within", daemon=True).start()
    try:
        return future.result(timeout_s)
    except TimeoutError as error:
        if future.done():
            raise
        raise TimeoutError(f"no answer within {timeout_s:g} s") from error


async def each(items: AsyncIterable[T] | Iterable[T]) -> AsyncIterator[T]:
    """The items of either kind of iterable, awaited where that is asked."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class BackgroundLoop:
    """An event loop in a thread of its own; several threads may wait for work on it.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._closing = False
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns. Where the caller is interrupted, the work is cancelled.

        Raises:
            RuntimeError: the loop was closed, or the caller runs on it.
        """
        with self._lock:
            running = self._submit(work)
        try:
            return running.result()
        except CancelledError as error:
            raise RuntimeError("this toolbox was closed while the call ran") from error
        except BaseException:
            running.cancel()
            raise

    def close(self, last: Callable[[], Awaitable[None]] | None) -> None:
        """Cancel what runs on the loop, await `last` and end the thread; twice does nothing."""

        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            if last is not None:
                await last()

        with self._lock:
            if self._closing:
                return
            ending = self._submit(end())
            self._closing = True
        try:
            ending.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
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
