"""The step `statistics`: executions since the watermark into usage by tool and day, then windows.

The watermark is the position up to which all is counted. A row knows the last position counted in
it, so a batch that is read again after a kill between its rows and the watermark changes nothing.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from typing import TypeAlias, TypeVar

from aftercall.wire import ErrorCategory, Execution
from ingest.nightly.night import Night
from mongo.records import StoredExecution, ToolKey, UsageRow
from retrieval.reading import read_error
from retrieval.usage.day import DayUsage, day_of, decoded, encoded
from retrieval.usage.windows import LONGEST, WindowSum, told, usage_fact, windows_of

SETTLE = timedelta(minutes=2)
"""Positions are given out before a record is there (`mongo.upkeep`): after so long it is."""

PAGE = 2_000
"""Executions read at a time: a few megabytes."""

_FLUSH = 20_000
"""Executions between two watermarks; rows are written as often."""

_MAX_ROWS = 1_000
"""Rows of a tool's day held at a time, some 10 kB each; with more they are written sooner."""

_ROWS_AT_ONCE = 200
"""Rows in one call of the store."""

Place: TypeAlias = tuple[ToolKey, date]

T = TypeVar("T")


def watermark_fact(workspace: str) -> str:
    """The name of the store's fact that holds the last counted position of a workspace."""
    return f"counted:{workspace}"


async def count_usage(night: Night) -> dict[str, int]:
    """Count what came since the last time, and make the windows up to now.

    Raises:
        NightlyLostError, StoreError: what stopped it; it can be run again.
    """
    done = {"executions": 0, "days": 0, "windows": 0}
    for workspace in await night.store.workspaces():
        counted = _Counting(night, workspace, done)
        await counted.run()
        await _make_windows(night, workspace)
        done["windows"] += 1
    return done


class _Counting:
    """One workspace; rows at hand are written together, then the watermark."""

    def __init__(self, night: Night, workspace: str, done: dict[str, int]) -> None:
        self._night = night
        self._store = night.store
        self._workspace = workspace
        self._done = done
        self._rows: dict[Place, DayUsage] = {}

    async def run(self) -> None:
        fact = watermark_fact(self._workspace)
        written = reached = int(await self._store.get_fact(fact) or 0)
        unwritten = 0
        while True:
            page = await self._store.scan_executions(self._workspace, reached, PAGE)
            settled = _settled(page, self._night.clock())
            if settled:
                await self._load(settled)
                await asyncio.to_thread(_count, settled, self._rows)
                reached = settled[-1].position
                unwritten += len(settled)
                self._done["executions"] += len(settled)
                self._night.on_progress("statistics", self._done["executions"])
            is_last = len(settled) < len(page) or not page
            if reached > written and (
                is_last or unwritten >= _FLUSH or len(self._rows) >= _MAX_ROWS
            ):
                await self._write()
                await self._night.put_fact(fact, str(reached))
                written, unwritten = reached, 0
            if is_last:
                return

    async def _load(self, executions: Sequence[StoredExecution]) -> None:
        wanted = dict.fromkeys(map(_place, executions))
        missing = [place for place in wanted if place not in self._rows]
        for chunk in _chunks(missing, _ROWS_AT_ONCE):
            known = await self._store.get_usage(self._workspace, chunk)
            self._rows |= {(row.tool, row.day): decoded(row.data) for row in known}
        for place in missing:
            self._rows.setdefault(place, DayUsage())

    async def _write(self) -> None:
        for chunk in _chunks(self._rows.items(), _ROWS_AT_ONCE):
            await self._night.put_usage(
                [UsageRow(tool, day, encoded(usage)) for (tool, day), usage in chunk]
            )
        self._done["days"] += len(self._rows)
        self._rows.clear()


async def _make_windows(night: Night, workspace: str) -> None:
    now = night.clock()
    sums = windows_of(now)
    since = day_of(now - LONGEST - timedelta(hours=1))
    after: tuple[date, ToolKey] | None = None
    while rows := await night.store.scan_usage(workspace, since, after, _ROWS_AT_ONCE):
        await asyncio.to_thread(_add, rows, sums)
        after = (rows[-1].day, rows[-1].tool)
    await night.put_fact(usage_fact(workspace), told(sums).model_dump_json())


def _add(rows: Iterable[UsageRow], sums: Sequence[WindowSum]) -> None:
    for row in rows:
        usage = decoded(row.data)
        for each in sums:
            each.add(row.tool, row.day, usage)


def _settled(page: Sequence[StoredExecution], now: datetime) -> list[StoredExecution]:
    """Those before the first whose neighbours may not be there yet.

    What arrived in the future did so before a clock was set back: it must not hold up the rest.
    """
    return list(takewhile(lambda each: abs(now - each.received_at) > SETTLE, page))


def _count(executions: Iterable[StoredExecution], rows: Mapping[Place, DayUsage]) -> None:
    for stored in executions:
        rows[_place(stored)].count(stored, _category(stored.execution))


def _category(execution: Execution) -> ErrorCategory | None:
    # Some 90 microseconds for a failure, a third of all that counting one costs: no cache of texts
    # is needed, and none could know what the parameters have to say.
    if execution.error is None:
        return None
    return read_error(execution.error, execution.parameters).category


def _place(stored: StoredExecution) -> Place:
    return (stored.tool_key, day_of(stored.execution.timestamp))


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
