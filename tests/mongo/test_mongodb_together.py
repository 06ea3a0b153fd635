"""Changes of several records in MongoDB, where the process dies in between."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from mongo.errors import StoreUnavailableError
from mongo.mongodb import MongoLogStore, bulk
from mongo.mongodb.collections import Collection
from mongo.records import PatternRow, StoredPromotion
from tests.mongo.conftest import open_mongo
from tests.mongo.log_store_samples import START, WORKSPACE, make_promotion_event

CHANGES = [
    make_promotion_event("a"),
    make_promotion_event("b"),
    make_promotion_event("a", is_promoted=False),
    make_promotion_event("c", "1.2.0"),
]
HELD = [CHANGES[1].promoted, CHANGES[3].promoted]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[MongoLogStore]:
    """A store for the time of a block."""
    async with await open_mongo(folder) as store:
        yield store


@contextmanager
def cut(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[None]:
    """Let the connection break after so many rounds of writing, as when the process dies there."""
    write = bulk.upsert
    rounds = 0

    async def upsert(collection: Collection, operations: Sequence[Any]) -> int:
        nonlocal rounds
        rounds += 1
        if rounds > after:
            raise AutoReconnect("cut off by the test")
        return await write(collection, operations)

    with monkeypatch.context() as patch:
        patch.setattr(bulk, "upsert", upsert)
        yield


async def held(store: MongoLogStore) -> list[StoredPromotion]:
    """What holds in the workspace of the tests."""
    return await store.list_promotions(WORKSPACE)


@pytest.mark.parametrize("rounds", [0, 1])
async def test_promotions_that_were_cut_off_are_completed_when_a_store_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """Wherever it was: all of them hold, and each is in the history and in the queue once."""
    async with opened(tmp_path) as store:
        with cut(monkeypatch, after=rounds), pytest.raises(StoreUnavailableError):
            await store.change_promotions(CHANGES)
    async with opened(tmp_path) as store:
        assert await held(store) == HELD
        assert await store.promotion_history(WORKSPACE, "a", 10) == [CHANGES[2], CHANGES[0]]
        queued = await store.pending_promotions(WORKSPACE, 10)
        assert [each.promoted for each in queued] == [
            each.promoted for each in CHANGES if each.promoted
        ]


async def test_what_was_cut_off_is_completed_before_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the later one counts, in whatever process it is made."""
    later = make_promotion_event("b", "1.9.0")
    async with opened(tmp_path) as store, opened(tmp_path) as other:
        with cut(monkeypatch, after=1), pytest.raises(StoreUnavailableError):
            await store.change_promotions(CHANGES)
        await other.change_promotions([later])
        assert await held(store) == [later.promoted, CHANGES[3].promoted]
        assert await store.promotion_history(WORKSPACE, "b", 10) == [later, CHANGES[1]]
        assert len(await store.pending_promotions(WORKSPACE, 10)) == 4


async def test_a_change_that_is_completed_twice_and_late_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes may complete one change, and the slower one after the next change."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    write = bulk.upsert

    async def upsert(collection: Collection, operations: Sequence[Any]) -> int:
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return await write(collection, operations)

    later = make_promotion_event("b", is_promoted=False)
    async with opened(tmp_path) as slow, opened(tmp_path) as other:
        monkeypatch.setattr(bulk, "upsert", upsert)
        change = asyncio.create_task(slow.change_promotions(CHANGES))
        await begun.wait()
        await other.change_promotions([later])
        go_on.set()
        await change
        assert await held(slow) == [CHANGES[3].promoted]
        assert await slow.promotion_history(WORKSPACE, "b", 10) == [later, CHANGES[1]]
        assert len(await slow.pending_promotions(WORKSPACE, 10)) == 3


async def test_patterns_that_were_cut_off_are_put_and_dropped_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was merged is never beside what it was merged from, once the store is open again."""
    parts = [PatternRow(WORKSPACE, name, b"p", START, 1) for name in ("a", "b")]
    whole = replace(parts[0], data=b"both", count=2)
    async with opened(tmp_path) as store:
        await store.put_patterns(WORKSPACE, parts)
        with cut(monkeypatch, after=0), pytest.raises(StoreUnavailableError):
            await store.put_patterns(WORKSPACE, [whole], removed=["b"])
        assert await store.list_patterns(WORKSPACE, 10) == parts
    async with opened(tmp_path) as store:
        assert await store.list_patterns(WORKSPACE, 10) == [whole]


async def test_many_large_patterns_are_put(tmp_path: Path) -> None:
    """Also more than one record of MongoDB may hold."""
    rows = [
        PatternRow(WORKSPACE, f"p-{number:02}", bytes([number]) * (1 << 20), START, 100 - number)
        for number in range(30)
    ]
    async with opened(tmp_path) as store:
        await store.put_patterns(WORKSPACE, rows)
        assert await store.list_patterns(WORKSPACE, 100) == rows
