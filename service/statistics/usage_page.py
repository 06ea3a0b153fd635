"""The usage of one workspace, kept up to now: questions share the work and wait a little for it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from ingest.nightly.usage_base import sum_usage, watermark
from mongo.errors import StoreError
from mongo.protocol import LogStore
from retrieval.usage.base import Base, decoded, no_base, usage_fact, version_fact
from service.statistics.tail import Tail


@dataclass(frozen=True, slots=True)
class Known:
    """A base and the tail behind it."""

    base: Base
    tail: Tail
    is_whole: bool = True
    """Whether the base holds what was counted; else it only says how far that goes."""
    is_stored: bool = True
    """Whether the base is the one that the nightly run left, or there is nothing to leave."""

    @property
    def is_complete(self) -> bool:
        """Whether all is there that had arrived when it was looked at last."""
        return self.is_whole and self.tail.is_complete


class UsagePage:
    """What is known of one workspace. All on one event loop.

    Args:
        store: holds what was counted, and the log.
        workspace: whose.
        clock: tells the time.
        on_caught_up: told the workspace when all is known of which a question was told a part.
    """

    def __init__(
        self,
        store: LogStore,
        workspace: str,
        clock: Callable[[], datetime],
        on_caught_up: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._on_caught_up = on_caught_up
        self._first_until: float | None = None
        """Until when the first questions wait where nothing was summed up before."""
        self._owes_more = False
        """Whether somebody was told a part."""
        self._version: str | None = None
        """What the version said when the base was read; None before."""
        self._asked = 0
        self._waiting: list[tuple[int, asyncio.Future[Exception | None]]] = []
        self._first = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._known: Known | None = None

    @property
    def is_working(self) -> bool:
        """Whether it reads or counts at the moment."""
        return self._task is not None

    async def now(self, patience_s: float, first_patience_s: float = 0.0) -> tuple[Known, bool]:
        """What is known, and whether it was brought up to this moment within the patience.

        The base is waited for however long that takes, once: without it there is no answer.

        Args:
            patience_s: seconds to wait for the tail.
            first_patience_s: seconds from the first question on, if those are more, where there is
                no base: nothing but zeros could be told.

        Raises:
            StoreError: when the store cannot be read.
        """
        self._asked += 1
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        done: asyncio.Future[Exception | None] = loop.create_future()
        self._waiting.append((self._asked, done))
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="counting usage")
        if self._known is None:
            first = asyncio.ensure_future(self._first.wait())
            try:
                await asyncio.wait((done, first), return_when=asyncio.FIRST_COMPLETED)
            finally:
                first.cancel()
        if self._first_until is None:
            self._first_until = loop.time() + first_patience_s
        if self._known is not None and self._known.base.computed_at is None:
            until = max(until, self._first_until)
        await asyncio.wait((done,), timeout=max(0.0, until - loop.time()))
        if done.done() and (problem := done.result()) is not None:
            raise problem
        if self._known is None:
            raise StoreError("the statistics are being closed")
        self._owes_more |= not done.done()
        return self._known, done.done()

    async def close(self) -> None:
        """Stop what works; those who wait are told what is known."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _work(self) -> None:
        """Once more for those who asked while it worked: what they ask for may have come late."""
        try:
            while self._waiting:
                asked, problem = self._asked, None
                try:
                    await self._refresh()
                except Exception as error:  # noqa: BLE001  # theirs who wait, whatever it is
                    problem = error
                self._tell(asked, problem)
                if self._owes_more and problem is None and self._known and self._known.is_complete:
                    self._owes_more = False
                    self._on_caught_up(self._workspace)
        finally:
            self._task = None
            self._tell(self._asked, None)

    def _tell(self, asked: int, problem: Exception | None) -> None:
        for number, done in self._waiting:
            if number <= asked and not done.done():
                done.set_result(problem)
        self._waiting = [each for each in self._waiting if each[0] > asked]

    async def _refresh(self) -> None:
        version = await self._store.get_fact(version_fact(self._workspace)) or ""
        if self._known is None or version != self._version:
            await self._begin()
            self._version = version  # the base may be a later one; then it is read once more
        else:
            await self._known.tail.catch_up()

    async def _begin(self) -> None:
        """Begin anew at the base that is stored now; what is known is told until that is there."""
        known = await self._stored()
        if known is None:
            known = await self._summed()
        if self._known is None or not self._known.is_whole:
            self._show(known)
        await known.tail.catch_up()
        self._show(known)

    async def _stored(self) -> Known | None:
        """At what the nightly run left; None where it left nothing that is understood."""
        fact = await self._store.get_fact(usage_fact(self._workspace))
        if fact is None:
            return None
        base = await asyncio.to_thread(decoded, fact, self._workspace)
        return None if base is None else Known(base, self._tail(base))

    async def _summed(self) -> Known:
        """At what is summed up here: nothing was counted yet, or by an earlier version."""
        through = await watermark(self._store, self._workspace)
        known = Known(no_base(through), self._tail(no_base(through)))
        if not through:
            return known
        known = replace(known, is_whole=False, is_stored=False)
        if self._known is None:
            self._show(known)
        base = await sum_usage(self._store, self._workspace, through, self._clock())
        # Rows that are being counted are left alone: the base that is made of them will be read.
        return known if base is None else Known(base, self._tail(base), is_stored=False)

    def _tail(self, base: Base) -> Tail:
        return Tail(self._store, self._workspace, base, self._clock)

    def _show(self, known: Known) -> None:
        self._known = known
        self._first.set()
