"""One writer thread with group commit: what waits together is committed together.

An fsync costs the same for one row as for a thousand, so every call that arrived while the last
group was being written goes into the next transaction. Its caller hears of it only after COMMIT has
returned.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mongo.sqlite import files

Argument = TypeVar("Argument")
Result = TypeVar("Result")
MAX_GROUP = 64
"""Most calls in one transaction: bounds how long the first of them waits for the last."""


@dataclass(slots=True, eq=False)
class _Call:
    """One caller's part of a group. The queue mixes result types, hence `Any`."""

    handler: Callable[[sqlite3.Connection, Sequence[Any]], Sequence[Any]]
    argument: Any
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class GroupCommitWriter:
    """Has a connection to itself until it is closed; closing that is its maker's part."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        # A daemon: a store that nobody closed must not keep the process from ending. What was
        # acknowledged is on the disk by then.
        self._thread = threading.Thread(target=self._serve, name="aftercall-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` in the writer thread; its writes are durable when this returns.

        It may run more than once, each time on a clean slate, and must not end the transaction. If
        it raises, its writes are undone and only its own caller sees the error. A caller that is
        cancelled does not know whether its operation was committed.
        """

        def alone(connection: sqlite3.Connection, _: Sequence[None]) -> list[Result]:
            return [operation(connection)]

        return await self.run_together(alone, None)

    async def run_together(
        self,
        handler: Callable[[sqlite3.Connection, Sequence[Argument]], Sequence[Result]],
        argument: Argument,
    ) -> Result:
        """As `run`, for a handler that does the calls waiting for it all at once.

        It is given their arguments and returns one result for each, in order.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._closing:
            if self._is_closed:
                raise files.closed()
            self._queue.put(_Call(handler, argument, future))
        return await future

    def close(self) -> None:
        """Finish what was accepted and end the thread; blocks; twice does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            if group:
                self._commit(group)
                _tell(group)

    def _next_group(self) -> tuple[list[_Call], bool]:
        """Wait for one call and take all that wait behind it; False when it is the last."""
        group: list[_Call] = []
        with contextlib.suppress(queue.Empty):
            while len(group) < MAX_GROUP:
                call = self._queue.get(block=not group)
                if call is None:
                    return group, False
                if not call.future.done():  # cancelled before its turn
                    group.append(call)
        return group, True

    def _commit(self, group: list[_Call]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            for call in group:
                self._fail(call, error)
            return
        try:
            _handle(self._connection, group)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # the thread must live on, the callers must hear
            self._roll_back()
            if len(group) == 1:
                self._fail(group[0], error)
            else:
                # Whose fault it was does not matter: one by one, the others succeed. A savepoint
                # for each would find the culprit too, but costs every call, and a full disk takes
                # the savepoints with it.
                for call in group:
                    self._commit([call])

    def _fail(self, call: _Call, error: Exception) -> None:
        if isinstance(error, sqlite3.Error):
            call.error = files.from_sqlite(error, self._path)
            call.error.__cause__ = error
        else:
            call.error = error

    def _roll_back(self) -> None:
        # SQLite may have done so itself. If this fails, the next BEGIN does too and says why.
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _handle(connection: sqlite3.Connection, group: list[_Call]) -> None:
    """Run the calls, those of one handler together. They are concurrent: any order will do."""
    by_handler: dict[Callable[..., Sequence[Any]], list[_Call]] = {}
    for call in group:
        by_handler.setdefault(call.handler, []).append(call)
    for handler, calls in by_handler.items():
        results = handler(connection, [call.argument for call in calls])
        for call, result in zip(calls, results, strict=True):
            call.result = result


def _tell(group: list[_Call]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
    for call in group:
        by_loop.setdefault(call.future.get_loop(), []).append(call)
    for loop, calls in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_answer, calls)


def _answer(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():  # cancelled meanwhile
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
