"""Counting answers: what `/suggest` answered, in memory first and then in the store.

Whoever asked waits for none of it: counts are written every few seconds, and at the end.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime

from aftercall.models import AnswerCounts, SuggestResponse
from mongo.protocol import LogStore
from mongo.records import AnswerCount
from service.logs import log_event
from service.statistics.answer_kinds import kinds_of, told
from service.statistics.kept import Kept

logger = logging.getLogger(__name__)

EVERY_S = 5.0
"""Seconds from one writing to the next: what a kill loses at most."""

_CLOSING_S = 5.0
"""Seconds for the last writing: a store that is away must not hold up the end."""

_KEPT_S = 5.0
"""Seconds for which what other processes wrote is not read again."""


class AnswerCounter:
    """Counts answers by workspace, day and kind.

    Args:
        store: where counts become durable.
        clock: the time now, with a zone.
    """

    def __init__(
        self, store: LogStore, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._clock = clock
        self._unwritten: dict[str, Counter[tuple[date, str]]] = {}
        self._written: Kept[tuple[str, date], list[AnswerCount]] = Kept(_KEPT_S)
        # A count is either written or not: who reads must not meet it on its way.
        self._writing = asyncio.Lock()
        self._is_failing = False

    def answered(self, workspace: str, response: SuggestResponse) -> None:
        """Count an answer; returns at once."""
        now = self._clock()
        counts = self._unwritten.setdefault(workspace, Counter())
        day = now.astimezone(UTC).date()
        counts.update((day, kind) for kind in kinds_of(response, now))

    async def counts(self, workspace: str, since: datetime) -> AnswerCounts:
        """What was answered from an hour on, by this process and by others.

        Those of others are up to some ten seconds old.

        Args:
            workspace: whose.
            since: the beginning of an hour, with a zone.

        Raises:
            StoreError: when the store cannot say.
        """
        day = since.astimezone(UTC).date()
        async with self._writing:
            written = await self._written.get(
                (workspace, day), lambda: self._store.list_answers(workspace, day)
            )
            unwritten = _counts(self._unwritten.get(workspace, Counter()))
        return told([*written, *unwritten], since)

    async def flush(self) -> bool:
        """Write what is not written yet; False when the store did not take all.

        What it refused stays for the next time. A store that did write and could not say so
        (a connection that broke in between) makes these answers count twice, which is rare.
        """
        async with self._writing:
            return all([await self._write(each) for each in list(self._unwritten)])

    async def _write(self, workspace: str) -> bool:
        taken = self._unwritten.pop(workspace)
        try:
            await self._store.add_answers(workspace, _counts(taken))
        except BaseException as error:
            self._unwritten.setdefault(workspace, Counter()).update(taken)
            if not isinstance(error, Exception):
                raise
            if not self._is_failing:
                log_event(logger, "answers are not counted", level="warning", error=error)
            self._is_failing = True
            return False
        self._is_failing = False
        self._written.forget()
        return True


@asynccontextmanager
async def counting_answers(
    store: LogStore, every_s: float = EVERY_S
) -> AsyncIterator[AnswerCounter]:
    """A counter whose counts are written in the background until the block ends, and then once."""
    counter = AnswerCounter(store)
    ended = asyncio.Event()
    task = asyncio.create_task(_keep_writing(counter, ended, every_s), name="counting answers")
    try:
        yield counter
    finally:
        ended.set()
        # Not cancelled: a writing that is cut off could be in the store or not.
        _, late = await asyncio.wait([task], timeout=_CLOSING_S)
        for each in late:
            each.cancel()
        if late:
            await asyncio.wait(late)


async def _keep_writing(counter: AnswerCounter, ended: asyncio.Event, every_s: float) -> None:
    has_ended = False
    while not has_ended:
        try:
            async with asyncio.timeout(every_s):
                has_ended = await ended.wait()
        except TimeoutError:
            pass
        await counter.flush()


def _counts(counter: Counter[tuple[date, str]]) -> list[AnswerCount]:
    return [AnswerCount(day, kind, count) for (day, kind), count in counter.items()]
