"""What arrived behind a base: counted in memory, page by page, in the way of the nightly run.

Positions are given out before a record is there, so behind a gap of positions a record may still
appear. What is young and behind a gap is therefore read again each time, and what of it was counted
is known by its position: nothing counts twice, and nothing has to be counted anew.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from mongo.protocol import LogStore
from mongo.records import StoredExecution, ToolKey
from retrieval.usage.base import Base
from retrieval.usage.counts import Counts, Gathering
from retrieval.usage.day import DayUsage, day_of, failure_of

MAX_TAIL: Final = 500_000
"""Executions in a tail. Its tables hold sums, so that its memory is bounded by hours and names; but
it is counted anew after each start, some ten thousand a second."""

PAGE: Final = 200
"""Executions read and counted at a time: some 10 ms, for which threads compete with the event loop
for the interpreter; between two pages it has its turn."""

_QUICK: Final = 2_000
"""Counted as fast as can be; behind so many, as long as a page took is left to others."""

YOUNG: Final = timedelta(seconds=5)
"""For so long a record may appear before those that are there; some milliseconds are usual. One
that comes later yet is counted by the nightly run."""

MAX_YOUNG: Final = 1_000
"""Read again at most: where more arrive in that time, the oldest of them count as settled."""


class Tail:
    """Counts of the executions behind a base; for one task at a time.

    Args:
        store: holds the log.
        workspace: whose.
        base: what is counted already; its names are shared, and grow.
        clock: tells the time.
    """

    def __init__(
        self, store: LogStore, workspace: str, base: Base, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._gathering = Gathering(base.counts.without_tables(), keeps_names=True)
        self._settled = base.through
        """No record can appear at or before this position."""
        self._young: dict[int, datetime] = {}
        """Positions behind it that were counted, in order, and when they arrived."""
        self.counts: Counts = self._gathering.settle()
        """What was counted so far: replaced, never changed."""
        self.executions = 0
        """How many that are."""
        self.is_complete = False
        """Whether all was counted that had arrived when it was caught up last."""

    async def catch_up(self) -> None:
        """Count what has arrived; when it fails, what was counted stays.

        Raises:
            StoreError: when the store cannot be read.
        """
        after, counted = self._settled, 0
        while self.executions < MAX_TAIL:
            began = time.monotonic()
            page = await self._store.scan_executions(self._workspace, after, PAGE)
            if not page:
                self.is_complete = True
                return
            after = page[-1].position
            new = [each for each in page if each.position not in self._young]
            if new:
                await asyncio.to_thread(self._count, new)
            self._settle()
            counted += len(new)
            if counted > _QUICK:
                await asyncio.sleep(time.monotonic() - began)
        self.is_complete = False

    def _count(self, executions: Sequence[StoredExecution]) -> None:
        days: defaultdict[tuple[ToolKey, date], DayUsage] = defaultdict(DayUsage)
        for stored in executions:
            day = day_of(stored.execution.timestamp)
            days[stored.tool_key, day].count(stored, failure_of(stored))
        for (tool, day), usage in days.items():
            self._gathering.add(tool, day, usage)
        self.counts = self._gathering.settle()
        young = self._young | {each.position: each.received_at for each in executions}
        self._young = dict(sorted(young.items()))
        self.executions += len(executions)

    def _settle(self) -> None:
        """Go past what has no gap before it, what is old, and what is too much to be kept."""
        now = self._clock()
        for position, received_at in list(self._young.items()):
            is_next = position == self._settled + 1
            is_old = abs(now - received_at) > YOUNG  # in the future: a clock was set back
            if not (is_next or is_old or len(self._young) > MAX_YOUNG):
                return
            self._settled = position
            del self._young[position]
