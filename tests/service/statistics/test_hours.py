"""Hours that are over are summed once; what is answered is what was counted all the same."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from aftercall.models import LATEST_WINDOWS
from mongo.contents import hour_of
from mongo.records import Commit, Counter, ToolKey
from mongo.sqlite.store import SqliteStore, open_sqlite_store
from retrieval.knowledge.rows import counters as what
from service.api.statistics import ToolWindow, read_latency, read_totals, read_trend
from service.context import Caches, Context, Space

WORKSPACE = "default"
TOOL = ToolKey(WORKSPACE, "web", "search")
NOW = datetime(2026, 11, 22, 10, 30, tzinfo=UTC)
HOUR = hour_of(NOW)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_sqlite_store(tmp_path)
    yield opened
    await opened.close()


@dataclass
class Counted:
    """A context with a store, and what was counted in it, by hour."""

    store: SqliteStore
    context: Context
    successes: dict[int, int]

    async def count(self, hours: Mapping[int, int]) -> None:
        """Successes of some hours, each of them a call of 20 ms."""
        bucket = f"{what.DURATION}{what.bucket_of(20.0)}"
        counters = {
            Counter(name, hour, tool): number
            for hour, number in hours.items()
            for name, tool in ((what.SUCCESS, TOOL), (bucket, TOOL), (what.COUNTED, None))
        }
        await self.store.knowledge.commit(Commit(WORKSPACE, counters=counters))
        for hour, number in hours.items():
            self.successes[hour] = self.successes.get(hour, 0) + number

    async def check(self) -> None:
        """What is answered is what was counted, whole and in parts."""
        space = Space(self.context, WORKSPACE)
        for window in (*LATEST_WINDOWS, "2026-11-01..2026-11-22", "2026-11-21T08..2026-11-22T20"):
            trend = await read_trend(space, ToolWindow(window=window))
            took = await read_latency(space, ToolWindow(window=window))
            since = hour_of(trend.since)
            expected = sum(n for hour, n in self.successes.items() if since <= hour <= HOUR)
            assert sum(point.successes for point in trend.points) == expected
            assert sum(point.calls for point in took.points) == expected
        totals = await read_totals(space)
        day = sum(n for hour, n in self.successes.items() if hour >= HOUR - 24)
        assert totals.windows[0].totals.successes == day


@pytest.fixture
async def counted(store: SqliteStore) -> Counted:
    context = SimpleNamespace(
        store=store, clock=lambda: NOW, suggester=SimpleNamespace(is_settled=lambda: True),
        caches=Caches(),
    )  # fmt: skip
    found = Counted(store, cast("Context", context), {})
    await found.count({HOUR: 3, HOUR - 1: 5, HOUR - 20: 7, HOUR - 30: 11, HOUR - 500: 13})
    await found.check()
    return found


async def test_late_calls_count_in_hours_that_are_over(counted: Counted) -> None:
    """And so do calls of the present hour, alone or with late ones in one commit."""
    for hours in ({HOUR: 1}, {HOUR - 3: 2}, {HOUR - 500: 1}, {HOUR: 4, HOUR - 30: 1}):
        await counted.count(hours)
        await counted.check()


async def test_another_generation_is_summed_anew(counted: Counted) -> None:
    """Also where its calls are as many as those of the one before it."""
    other = {hour - 2 if hour < HOUR else hour: n for hour, n in counted.successes.items()}
    await counted.store.open_generation(2)
    await counted.store.switch_generation(2, {})
    counted.successes = {}
    await counted.check()
    await counted.count(other)
    await counted.check()
