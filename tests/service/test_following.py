"""What other processes do is noticed here: knowledge is read anew, a switch is taken part in."""

import asyncio
from datetime import timedelta
from typing import cast

from mongo.errors import StoreUnavailableError
from mongo.records import Change, Changes
from mongo.upkeep import Upkeep
from retrieval.memory import Memory
from service.following import following

SOON = timedelta(milliseconds=10)


class Store:
    """A feed that a test fills; the store can be away."""

    def __init__(self) -> None:
        self.generation = 1
        self.changes: list[Change] = []
        self.is_away = False
        self.polls = 0

    async def follow(self) -> "Store":
        self._reach()
        return self

    async def poll(self) -> Changes:
        self._reach()
        self.polls += 1
        told, self.changes = self.changes, []
        return Changes(self.generation, told)

    def _reach(self) -> None:
        if self.is_away:
            raise StoreUnavailableError("away")


class Remembered:
    """Stands for a memory: what it was told to forget."""

    def __init__(self) -> None:
        self.forgotten: list[Change] = []
        self.times_all = 0

    def forget(self, change: Change) -> None:
        self.forgotten.append(change)

    def forget_all(self) -> None:
        self.times_all += 1


class Told:
    """What was told of generations; it can refuse."""

    def __init__(self) -> None:
        self.generations: list[int] = []
        self.refuses = False

    async def __call__(self, generation: int) -> None:
        self.generations.append(generation)
        if self.refuses:
            raise StoreUnavailableError("not yet")


async def several_polls(store: Store) -> None:
    seen = store.polls
    async with asyncio.timeout(10):
        while store.polls < seen + 3:  # noqa: ASYNC110  # a store does not tell
            await asyncio.sleep(0.005)


async def test_what_changed_elsewhere_is_forgotten() -> None:
    """Each change once, in order."""
    store, memory, told = Store(), Remembered(), Told()
    changes = [Change("a", registry=True), Change("b", everything=True)]
    async with following(cast("Upkeep", store), cast("Memory", memory), told, SOON):
        store.changes = list(changes)
        await several_polls(store)
    assert memory.forgotten == changes


async def test_a_switch_is_told_once_and_everything_is_forgotten() -> None:
    """The first generation is told before the block begins."""
    store, memory, told = Store(), Remembered(), Told()
    async with following(cast("Upkeep", store), cast("Memory", memory), told, SOON):
        assert told.generations == [1]
        before = memory.times_all
        store.generation = 2
        await several_polls(store)
        assert told.generations == [1, 2]
        assert memory.times_all > before


async def test_a_switch_that_could_not_be_made_is_told_again() -> None:
    """Until it is made."""
    store, memory, told = Store(), Remembered(), Told()
    async with following(cast("Upkeep", store), cast("Memory", memory), told, SOON):
        told.refuses = True
        store.generation = 2
        await several_polls(store)
        assert told.generations.count(2) > 1
        told.refuses = False
        await several_polls(store)
        times = told.generations.count(2)
        await several_polls(store)
        assert told.generations.count(2) == times


async def test_a_store_that_is_away_is_waited_for() -> None:
    """At the start and in the middle; nothing is missed."""
    store, memory, told = Store(), Remembered(), Told()
    store.is_away = True
    async with following(cast("Upkeep", store), cast("Memory", memory), told, SOON):
        assert told.generations == []
        store.is_away = False
        await several_polls(store)
        assert told.generations == [1]
        store.is_away = True
        store.changes = [Change("a", registry=True)]
        await asyncio.sleep(0.05)
        store.is_away = False
        await several_polls(store)
    assert memory.forgotten == [Change("a", registry=True)]
