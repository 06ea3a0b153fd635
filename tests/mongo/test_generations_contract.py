"""What every store promises of generations: learned beside, switched in one step, fenced."""

from dataclasses import replace
from pathlib import Path

import pytest

from mongo.errors import StoreFencedError
from mongo.protocol import Knowledge, Store
from mongo.records import Commit, Counter, Cursor, Row
from tests.mongo.conftest import OpenStore
from tests.mongo.store_samples import (
    WORKSPACE,
    closing,
    keys,
    large,
    make_events,
    put,
    read_all,
    scan_all,
)

CALLS = Counter("calls", 5)


async def learn(knowledge: Knowledge, key: str, moved: tuple[int, int] = (0, 3)) -> None:
    """A row, a pattern and a count."""
    rows = [Row("rule", key), Row("pattern", key)]
    await knowledge.commit(Commit(WORKSPACE, rows, counters={CALLS: 1}, moved=moved))


async def calls(store: Store) -> int:
    """What the current generation has counted."""
    return sum(
        s.number for s in await store.counters.sum_counters(WORKSPACE, ["calls"], since=0, until=9)
    )


async def test_a_generation_is_learned_beside_the_current_one(store: Store) -> None:
    """Neither sees what the other learned, until it takes its place; facts change with it."""
    await store.events.append(WORKSPACE, make_events(3))
    assert store.knowledge.generation == 1
    assert not await store.refresh_generation()
    await learn(store.knowledge, "old")
    await learn(store.knowledge, "older", (3, 3))
    beside = await store.open_generation(2)
    assert beside.generation == 2
    assert await beside.read_cursors() == {}
    await learn(beside, "new")
    assert keys(await scan_all(store.knowledge, "rule")) == ["old", "older"]
    assert keys(await scan_all(beside, "rule")) == ["new"]
    assert (await beside.count_rows("rule"), await beside.count_rows("pattern")) == (1, 1)
    assert await calls(store) == 2
    await store.switch_generation(2, {"index": "two", "model": "m"})
    await store.refresh_generation()
    assert store.knowledge.generation == 2
    assert keys(await scan_all(store.knowledge, "rule")) == ["new"]
    assert keys(await scan_all(store.knowledge, "pattern")) == ["new"]
    assert await store.knowledge.read_cursors() == {WORKSPACE: Cursor(3, 1)}
    assert await calls(store) == 1
    assert await store.metadata.get("index") == "two"
    assert len(await read_all(store.events)) == 3
    # The new one is learned on, and another one comes after it.
    await learn(store.knowledge, "next", (3, 4))
    third = await store.open_generation(3)
    assert await third.read_cursors() == {}
    await store.switch_generation(3, {})
    await store.refresh_generation()
    assert store.knowledge.generation == 3
    assert await calls(store) == 0
    assert await store.metadata.get("model") == "m"


async def test_a_generation_begins_as_a_copy_of_the_base(store: Store) -> None:
    """With its cursor and counts; what either learns from then on is its own."""
    base = await store.open_generation(0)
    assert base.generation == 0
    assert await base.read_cursors() == {}
    await learn(base, "expired")
    await put(base, *(Row("pattern", f"k-{n:02}", large(n).data) for n in range(3)))
    await learn(base, "elder", (3, 4))
    await put(base, Row("rule", "there"), workspace="elsewhere", moved=(0, 7))
    assert await scan_all(store.knowledge, "rule") == []
    beside = await store.open_generation(2)
    assert await beside.read_cursors() == {WORKSPACE: Cursor(4, 3), "elsewhere": Cursor(7, 1)}
    for kind in ("rule", "pattern"):
        assert await scan_all(beside, kind) == await scan_all(base, kind)
    await learn(beside, "new", (4, 9))
    await learn(base, "later", (4, 5))
    assert keys(await scan_all(beside, "rule")) == ["elder", "expired", "new"]
    assert keys(await scan_all(base, "rule")) == ["elder", "expired", "later"]
    await store.switch_generation(2, {})
    await store.refresh_generation()
    assert await calls(store) == 3
    assert keys(await scan_all(store.knowledge, "rule")) == ["elder", "expired", "new"]
    assert keys(await scan_all(await store.open_generation(0), "rule"))[-1] == "later"
    # What is learned anew begins with the base of now.
    third = await store.open_generation(3)
    assert keys(await scan_all(third, "rule")) == ["elder", "expired", "later"]
    assert len(await scan_all(third, "pattern")) == 6


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_switch_that_does_not_follow_the_current_one_is_refused(
    store: Store, is_begun: bool
) -> None:
    """And changes nothing: neither the generation nor facts."""
    await learn(store.knowledge, "old")
    await store.metadata.put("index", "one")
    if is_begun:
        await store.open_generation(2)
    for number in (1, 3):
        with pytest.raises(StoreFencedError):
            await store.switch_generation(number, {"index": "other"})
    assert not await store.refresh_generation()
    assert store.knowledge.generation == 1
    assert await store.metadata.get("index") == "one"
    assert keys(await scan_all(store.knowledge, "rule")) == ["old"]


async def test_the_generation_is_there_when_the_store_is_opened_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """With the base; one that was begun and not finished begins anew."""
    async with closing(await open_store(tmp_path)) as store:
        await learn(await store.open_generation(0), "base")
        await learn(await store.open_generation(2), "second", (3, 5))
        await store.switch_generation(2, {})
        await store.refresh_generation()
        await learn(await store.open_generation(3), "unfinished", (3, 4))
    async with closing(await open_store(tmp_path)) as store:
        assert store.knowledge.generation == 2
        assert keys(await scan_all(store.knowledge, "rule")) == ["base", "second"]
        third = await store.open_generation(3)
        assert await scan_all(third, "rule") == [Row("rule", "base", serial=1)]
        await learn(third, "finished", (3, 4))
        await store.switch_generation(3, {})
    async with closing(await open_store(tmp_path)) as store:
        assert store.knowledge.generation == 3
        found = await scan_all(store.knowledge, "rule")
        assert found == [
            replace(found[0], key="base", serial=1), replace(found[1], key="finished", serial=2)
        ]  # fmt: skip
