"""Threads in which a `Client` is asked for coroutines.

Not the event loop's own: a service that hangs would take the threads that tools need, and the end
of the loop would wait for it.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

MAX_THREADS = 16
"""Questions asked at once; answers take milliseconds, and further questions wait in line."""


class AskingThreads:
    """Daemon threads, there while there is something to ask.

    Args:
        max_threads: most of them at once.
    """

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._max_threads = max_threads
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, run in this context; given up, it is not begun.

        Raises:
            Exception: what `work` raises.
        """
        context = contextvars.copy_context()
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((future, lambda: context.run(work)))
            is_more_needed = self._running < self._max_threads
            self._running += is_more_needed
        if is_more_needed:
            try:
                threading.Thread(target=self._work, name="aftercall-suggest", daemon=True).start()
            except RuntimeError:  # no more threads: the question waits for one that is there
                with self._lock:
                    self._running -= 1
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                future, work = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = work()
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is the asker's
                future.set_exception(error)
            else:
                future.set_result(answer)
