"""Blocking work beside an event loop, in threads that hold up nobody's end."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> "asyncio.Future[T]":
    """Start `call` in a daemon thread; the future gets what it returns or raises.

    Unlike the loop's own pool, one that hangs keeps neither the loop nor the process from ending.
    Must be called in a running loop.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = call()
        except StopIteration as stop:  # which a future does not take
            problem = RuntimeError(f"StopIteration: {stop.value!r}")
            report(lambda: done.set_exception(problem))
        except BaseException as error:  # noqa: BLE001  # it is raised again where it is awaited
            raised = error
            report(lambda: done.set_exception(raised))
        else:
            report(lambda: done.set_result(result))

    def report(settle: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(lambda: None if done.done() else settle())

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="aftercall-tool", daemon=True).start()
    return done
