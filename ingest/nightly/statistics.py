"""The step `statistics`: executions since the watermark into usage by tool and day, then a base.

The watermark is the position up to which all is counted. A row knows the last position counted in
it, so a batch that is read again after a kill between its rows and the watermark changes nothing.
The base is what a service tells statistics from: the latest days, summed up, in one fact.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import islice, takewhile
from typing import TypeAlias, TypeVar

from ingest.nightly.night import Night
from ingest.nightly.usage_base import sum_usage, watermark, watermark_fact
from mongo.records import StoredExecution, ToolKey, UsageRow
from retrieval.usage.base import encoded as encoded_base
from retrieval.usage.base import usage_fact, version_fact, version_of
from retrieval.usage.day import DayUsage, day_of, decoded, encoded, failure_of

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

_EARLY = 100_000
"""Executions until a base is made while a long count goes on, so that a large import shows early;
then twice as many each time, since a base is summed up from all rows."""

Place: TypeAlias = tuple[ToolKey, date]

T = TypeVar("T")


async def count_usage(night: Night) -> dict[str, int]:
    """Count what came since the last time, and make the base up to now.

    Raises:
        NightlyLostError, StoreError: what stopped it; it can be run again.
    """
    done = {"executions": 0, "days": 0, "workspaces": 0}
    for workspace in await night.store.workspaces():
        counted = _Counting(night, workspace, done)
        await _make_base(night, workspace, await counted.run())
        done["workspaces"] += 1
    return done


class _Counting:
    """One workspace; rows at hand are written together, then the watermark."""

    def __init__(self, night: Night, workspace: str, done: dict[str, int]) -> None:
        self._night = night
        self._store = night.store
        self._workspace = workspace
        self._done = done
        self._rows: dict[Place, DayUsage] = {}

    async def run(self) -> int:
        """The position up to which all is counted now."""
        fact = watermark_fact(self._workspace)
        written = reached = await watermark(self._store, self._workspace)
        unwritten, early, since_base = 0, _EARLY, 0
        while True:
            page = await self._store.scan_executions(self._workspace, reached, PAGE)
            settled = _settled(page, self._night.clock())
            if settled:
                await self._load(settled)
                await asyncio.to_thread(_count, settled, self._rows)
                reached = settled[-1].position
                unwritten += len(settled)
                since_base += len(settled)
                self._done["executions"] += len(settled)
                self._night.on_progress("statistics", self._done["executions"])
            is_last = len(settled) < len(page) or not page
            if reached > written and (
                is_last or unwritten >= _FLUSH or len(self._rows) >= _MAX_ROWS
            ):
                await self._write()
                await self._night.put_fact(fact, str(reached))
                written, unwritten = reached, 0
                if since_base >= early and not is_last:
                    await _make_base(self._night, self._workspace, written)
                    early, since_base = 2 * early, 0
            if is_last:
                return written

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


async def _make_base(night: Night, workspace: str, through: int) -> None:
    base = await sum_usage(night.store, workspace, through, night.clock())
    if base is None:
        return  # a run that was killed came further than a clock that was set back lets this one
    await night.put_fact(usage_fact(workspace), await asyncio.to_thread(encoded_base, base))
    await night.put_fact(version_fact(workspace), version_of(base))


def _settled(page: Sequence[StoredExecution], now: datetime) -> list[StoredExecution]:
    """Those before the first whose neighbours may not be there yet.

    What arrived in the future did so before a clock was set back: it must not hold up the rest.
    """
    return list(takewhile(lambda each: abs(now - each.received_at) > SETTLE, page))


def _count(executions: Iterable[StoredExecution], rows: Mapping[Place, DayUsage]) -> None:
    for stored in executions:
        rows[_place(stored)].count(stored, failure_of(stored))


def _place(stored: StoredExecution) -> Place:
    return (stored.tool_key, day_of(stored.execution.timestamp))


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
