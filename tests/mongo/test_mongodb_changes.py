"""The feed of changes: nothing is missed, whoever is killed between two steps, or sleeps."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mongo.mongodb import MongoLogStore, changes, open_mongo_store
from mongo.records import Change
from tests.mongo.conftest import mongo_options
from tests.mongo.log_store_samples import WORKSPACE, make_executions


class Clock:
    """Seconds that only a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MongoLogStore]:
    """A store of the test's own."""
    async with await open_mongo_store(await mongo_options(tmp_path)) as opened:
        yield opened


async def following(store: MongoLogStore, clock: Clock) -> changes.Feed:
    """A feed that begins now."""
    feed = changes.Feed(store._db, "", clock)
    await feed.begin()
    return feed


async def facts(feed: changes.Feed) -> list[str]:
    """The facts that it tells next."""
    _, told = await feed.read()
    return [fact for change in told for fact in change.facts]


async def everything(feed: changes.Feed) -> set[str]:
    """The workspaces of which it tells next that anything may have changed."""
    _, told = await feed.read()
    return {change.workspace for change in told if change.everything}


async def test_a_hole_that_stays_is_told_as_everything_after_a_minute(
    store: MongoLogStore,
) -> None:
    """Who was killed between changing and telling: nobody can say what; it is told once."""
    await store.append(WORKSPACE, make_executions(1))
    clock = Clock()
    feed = await following(store, clock)
    await changes.reserve(store._db)  # and killed
    await store.put_fact("behind", "it")
    assert await facts(feed) == ["behind"]
    clock.now += changes.HOLE_S - 1
    assert await everything(feed) == set()
    clock.now += 1
    assert await everything(feed) == {"", WORKSPACE}
    clock.now += 2 * changes.HOLE_S
    assert await everything(feed) == set()


async def test_a_hole_that_is_filled_in_time_is_told_for_what_it_is(store: MongoLogStore) -> None:
    """However late, and also where it is the last number that was given out."""
    clock = Clock()
    feed = await following(store, clock)
    slow, slower = await changes.reserve(store._db), await changes.reserve(store._db)
    assert await facts(feed) == []
    clock.now += changes.HOLE_S - 1
    await changes.tell(store._db, changes.record(slower, Change("", facts=("slower",)), ""))
    assert await facts(feed) == ["slower"]
    await changes.tell(store._db, changes.record(slow, Change("", facts=("slow",)), ""))
    assert await facts(feed) == ["slow"]
    clock.now += 2 * changes.HOLE_S
    assert await everything(feed) == set()


async def test_what_was_under_way_when_a_feed_began_is_waited_for(store: MongoLogStore) -> None:
    """Its number was given out before, and it is told after."""
    number = await changes.reserve(store._db)
    feed = await following(store, Clock())
    await changes.tell(store._db, changes.record(number, Change("", facts=("late",)), ""))
    assert await facts(feed) == ["late"]


async def test_who_slept_through_very_many_changes_is_told_everything_at_once(
    store: MongoLogStore,
) -> None:
    """Not one hole for each that is deleted since: what is waited for stays small."""
    await store.append(WORKSPACE, make_executions(1))
    feed = await following(store, Clock())
    await changes.reserve(store._db, 1_000_000)
    await store.put_fact("behind", "it")
    assert await everything(feed) == {"", WORKSPACE}
    assert len(feed._awaited) <= 10_000
    await store.put_fact("next", "one")
    assert await facts(feed) == ["next"]


async def test_an_idle_feed_reads_no_changes(
    store: MongoLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is polled all the time, by every process: it looks at two records by their ids."""
    await store.put_fact("before", "it")
    feed = await following(store, Clock())
    assert await facts(feed) == []

    async def rows(*_: Any) -> list[Any]:
        raise AssertionError("it asks for changes")

    monkeypatch.setattr(changes.Feed, "_rows", rows)
    assert await facts(feed) == []
