"""The MongoDB store where processes are killed or sleep, connections break, and others write."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo.asynchronous.collection import AsyncCollection

from mongo.errors import StoreFencedError
from mongo.mongodb import database, events, knowledge
from mongo.mongodb.store import MongoOptions, MongoStore, open_mongo_store
from mongo.protocol import Store
from mongo.records import Commit, Counter, Cursor, Event, Removal, Row
from tests.mongo.conftest import mongo_options
from tests.mongo.store_samples import (
    SEARCH,
    closing,
    ids,
    make_command,
    make_events,
    read_all,
    scan_all,
)

LATE = datetime(9000, 1, 1, tzinfo=UTC)
WRITES = (
    "bulk_write", "insert_many", "insert_one", "update_one", "find_one_and_update", "delete_many",
)  # fmt: skip


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture
async def options(tmp_path: Path) -> MongoOptions:
    """A database of the test's own."""
    return await mongo_options(tmp_path)


@pytest.fixture
async def store(options: MongoOptions) -> AsyncIterator[MongoStore]:
    """The process that is killed, or sleeps."""
    async with closing(await open_mongo_store(options)) as opened:
        yield opened


@pytest.fixture
async def other(options: MongoOptions) -> AsyncIterator[MongoStore]:
    """Another process."""
    async with closing(await open_mongo_store(options)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for killed processes as long as a test can."""
    monkeypatch.setattr(events, "GAP_S", 0.05)
    monkeypatch.setattr(database, "PATIENCE_S", 0.0)


@contextmanager
def killed_after(steps: int) -> Iterator[list[int]]:
    """The process ends after so many writes, of which it has a list; of several at once, each."""
    done: list[int] = []

    def counted(name: str) -> Any:
        whole = getattr(AsyncCollection, name)

        async def write(collection: Any, *arguments: Any, **options: Any) -> Any:
            if name in ("bulk_write", "insert_many") and len(arguments[0]) > 1:
                for each in arguments[0]:  # cut anywhere
                    await getattr(collection, name)([each], **options)
                return None
            if len(done) >= steps:
                raise KilledError
            done.append(len(done))
            return await whole(collection, *arguments, **options)

        return write

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(AsyncCollection, name, counted(name))
        yield done


@contextmanager
def asleep_before(name: str, collection: str) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """The first who writes so to a collection sleeps before it; says so, and can be woken."""
    asleep, awake = asyncio.Event(), asyncio.Event()
    whole = getattr(AsyncCollection, name)

    async def write(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.name == collection and not asleep.is_set():
            asleep.set()
            await awake.wait()
        return await whole(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AsyncCollection, name, write)
        yield asleep, awake


# Commits.


async def fill(store: Store, workspace: str) -> Commit:
    """A workspace that something was learned of, and a commit that changes some of all."""
    before = [Row("rule", key, b"{old}", rank=5) for key in "abc"]
    tool = SEARCH._replace(workspace=workspace)
    counts = {Counter("calls", hour, tool): hour for hour in (1, 2)}
    await store.knowledge.commit(Commit(workspace, before, counters=counts, moved=(0, 3)))
    return Commit(
        workspace,
        [Row("rule", "b", b"{new}", tool), Row("rule", "d", b"{new}"), Row("pattern", "p", b"{p}")],
        [Removal("rule", "a"), Removal("rule", "b"), Removal("rule", "c", rank=4)],
        {Counter("calls", hour, tool): 10 * hour for hour in (2, 3)},
        (3, 7),
    )


async def learned(store: Store, workspace: str) -> dict[str, Any]:
    """All that a commit may change."""
    cursors = await store.knowledge.read_cursors()
    sums = await store.counters.sum_counters(workspace, ["calls"], since=0, until=9, by=["hour"])
    return {
        "cursor": cursors[workspace],
        "rules": [
            (row.key, row.data, row.serial)
            for row in await scan_all(store.knowledge, "rule", workspace)
        ],
        "patterns": [row.key for row in await scan_all(store.knowledge, "pattern", workspace)],
        "counts": {each.hour: each.number for each in sums},
    }


BEFORE = {
    "cursor": Cursor(3, 1),
    "rules": [(key, b"{old}", 1) for key in "abc"],
    "patterns": [],
    "counts": {1: 1, 2: 2},
}
AFTER = {
    "cursor": Cursor(7, 2),
    "rules": [("b", b"{new}", 2), ("c", b"{old}", 1), ("d", b"{new}", 2)],
    "patterns": ["p"],
    "counts": {1: 1, 2: 22, 3: 30},
}


@pytest.mark.parametrize("is_large", [False, True], ids=["inline", "in pieces"])
async def test_a_commit_that_is_killed_anywhere_is_done_or_not(
    store: MongoStore, other: MongoStore, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """Who reads its cursor next finds all of it or nothing; doing it again does it once."""
    if is_large:
        monkeypatch.setattr(knowledge, "INLINE_BYTES", 0)
        monkeypatch.setattr(database, "MAX_BYTES", 2_000)
    outcomes = []
    for steps in range(100):
        workspace = f"w-{steps}"
        commit = await fill(other, workspace)
        with killed_after(steps) as done, contextlib.suppress(KilledError):
            await store.knowledge.commit(commit)
            break
        # Another one begins to finish it, and is killed too.
        with killed_after(steps // 2), contextlib.suppress(KilledError):
            await store.knowledge.read_cursors()
        found = await learned(other, workspace)
        assert found in (BEFORE, AFTER)
        outcomes.append(found == AFTER)
        if found == BEFORE:
            await other.knowledge.commit(commit)
            assert await learned(other, workspace) == AFTER
        with pytest.raises(StoreFencedError):
            await other.knowledge.commit(commit)
    assert len(done) > 8
    assert outcomes == sorted(outcomes)
    assert outcomes.count(True) > 5
    assert await learned(other, workspace) == AFTER


async def test_who_commits_late_has_seen_what_is_there(
    store: MongoStore, other: MongoStore
) -> None:
    """Another process moved the cursor since it was read."""
    commit = await fill(other, "w")
    with asleep_before("update_one", "CURSORS") as (asleep, awake):
        late = asyncio.create_task(store.knowledge.commit(commit))
        await asleep.wait()
        await other.knowledge.commit(Commit("w", moved=(3, 5)))
        awake.set()
        with pytest.raises(StoreFencedError, match="has been learned to 5"):
            await late


async def test_what_a_sleeper_writes_late_changes_nothing(
    store: MongoStore, other: MongoStore
) -> None:
    """It slept between its commit and applying it; another one went on meanwhile."""
    commit = await fill(other, "w")
    with asleep_before("bulk_write", "KNOWLEDGE") as (asleep, awake):
        late = asyncio.create_task(store.knowledge.commit(commit))
        await asleep.wait()
        assert await learned(other, "w") == AFTER
        newer = Commit(
            "w",
            [Row("rule", "a", b"{newest}"), Row("rule", "b", b"{newest}")],
            [Removal("rule", "d"), Removal("pattern", "p")],
            {Counter("calls", 3, SEARCH._replace(workspace="w")): 5},
        )
        await other.knowledge.commit(newer)
        expected = await learned(other, "w")
        awake.set()
        assert await late == 2
    assert await learned(other, "w") == expected
    newest, old = b"{newest}", b"{old}"
    assert expected["rules"] == [("a", newest, 3), ("b", newest, 3), ("c", old, 1)]
    assert expected["counts"] == {1: 1, 2: 22, 3: 35}


# The log.


async def follow(store: Store, workspace: str, seen: list[Event]) -> None:
    """Read on to the end, as far as it goes now."""
    while page := await store.events.read_after(workspace, seen[-1].position if seen else 0, 3):
        seen += page


async def test_a_writer_that_sleeps_does_not_lose_its_events(
    store: MongoStore, other: MongoStore
) -> None:
    """Readers went past its positions: it takes others, which they have not read yet."""
    seen: list[Event] = []
    with asleep_before("insert_many", "TOOL_EXECUTION_LOG") as (asleep, awake):
        late = asyncio.create_task(store.events.append("w", make_events(2)))
        await asleep.wait()
        await other.events.append("w", make_events(3, first=1))
        await follow(other, "w", seen)
        assert ids(seen) == ["id-1", "id-2", "id-3"]
        awake.set()
        assert await late == ["accepted", "duplicate"]
    await follow(other, "w", seen)
    assert ids(seen) == ["id-1", "id-2", "id-3", "id-0"]
    assert [event.received_at for event in seen] == sorted(event.received_at for event in seen)
    assert (await other.events.read_heads())["w"].counts == {"execution": 4}


@pytest.mark.parametrize("erases", [False, True])
async def test_what_two_count_at_once_is_counted_once(
    store: MongoStore, other: MongoStore, erases: bool
) -> None:
    """Each adds what is new to the counts that are kept, or takes away what it erased."""

    async def count(by: MongoStore) -> None:
        await (by.events.erase_events("w", 2, LATE, 10) if erases else by.events.read_heads())

    await store.events.append("w", make_events(3))
    if erases:
        await store.events.read_heads()
    with asleep_before("update_one", "LOG_HEADS") as (asleep, awake):
        late = asyncio.create_task(count(store))
        await asleep.wait()
        await count(other)
        awake.set()
        await late
    assert (await other.events.read_heads())["w"].counts == {"execution": 1 if erases else 3}


async def test_a_reader_waits_for_a_writer_that_is_slow(
    store: MongoStore, other: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it reserved comes before what others stored meanwhile; then none waits."""
    monkeypatch.setattr(events, "GAP_S", 3_600.0)
    with asleep_before("insert_many", "TOOL_EXECUTION_LOG") as (asleep, awake):
        slow = asyncio.create_task(store.events.append("w", make_events(2)))
        await asleep.wait()
        await other.events.append("w", make_events(2, first=1))
        assert (await other.events.read_heads())["w"].position == 4
        reading = asyncio.create_task(other.events.read_after("w", 0, 10))
        await asyncio.wait([reading], timeout=0.2)
        assert not reading.done()
        awake.set()
        await slow
        seen = await reading
        await follow(other, "w", seen)
        assert ids(seen) == ["id-0", "id-1", "id-2"]


async def test_an_erasure_that_is_killed_anywhere_is_done_by_the_next(
    store: MongoStore, other: MongoStore
) -> None:
    """No event is left that is counted no more."""
    for steps in range(100):
        workspace = f"w-{steps}"
        await other.events.append(workspace, make_events(3))
        with killed_after(steps), contextlib.suppress(KilledError):
            await store.events.erase_events(workspace, 2, LATE, 10)
            break
        await other.events.erase_events(workspace, 2, LATE, 10)
        assert ids(await read_all(other.events, workspace)) == ["id-2"]
        assert (await other.events.read_heads())[workspace].counts == {"execution": 1}
    assert steps > 2


# Commands.


async def commanded(store: Store, workspace: str) -> tuple[list[str], list[tuple[str, int]]]:
    """The events of a workspace, and its state."""
    rows = await store.events.read_state(workspace, "tool")
    return ids(await read_all(store.events, workspace)), [(row.key, row.position) for row in rows]


async def test_a_command_that_is_killed_anywhere_is_done_or_not(
    store: MongoStore, other: MongoStore
) -> None:
    """Who reads its state next finds its event too, or neither."""
    for steps in range(100):
        event, row = make_command(1, "a", expected=0)
        with killed_after(steps), contextlib.suppress(KilledError):
            await store.events.append(f"w-{steps}", [event], [row])
            break
        found, state = await commanded(other, f"w-{steps}")
        assert (found, [name for name, _ in state]) in (([], []), (["id-1"], ["a"]))
    assert steps > 4


@pytest.mark.parametrize("steps", [3, 100])
async def test_a_command_that_is_finished_late_changes_nothing(
    store: MongoStore, other: MongoStore, steps: int
) -> None:
    """Another process has finished it, and done the next, or was killed as it did."""
    event, row = make_command(1, "a", expected=0)
    with asleep_before("bulk_write", "COMMAND_STATE") as (asleep, awake):
        late = asyncio.create_task(store.events.append("w", [event], [row]))
        await asleep.wait()
        [held] = await other.events.read_state("w", "tool")
        second, removed = make_command(2, "a", expected=held.position)
        with killed_after(steps), contextlib.suppress(KilledError):
            await other.events.append("w", [second], [replace(removed, data=None)])
        awake.set()
        assert await late == ["accepted"]
    assert await commanded(other, "w") == (["id-1", "id-2"], [])


# Generations.


async def test_what_a_former_rebuild_learned_is_no_part_of_the_next(
    store: MongoStore, other: MongoStore, options: MongoOptions
) -> None:
    """Though it learns until the next one is written down, and that one is killed as it clears."""
    former, row = await other.open_generation(2), Commit("w", [Row("rule", "former")])
    await former.commit(row)
    with asleep_before("update_one", "STORE") as (asleep, awake):
        newer = asyncio.create_task(store.open_generation(2))
        await asleep.wait()
        await former.commit(row)
        awake.set()
        assert await scan_all(await newer, "rule", "w") == []
    await (await newer).commit(row)
    with killed_after(1), pytest.raises(KilledError):
        async with closing(await open_mongo_store(options)) as third:
            await third.open_generation(2)
    async with closing(await open_mongo_store(options)) as fourth:
        assert await scan_all(await fourth.open_generation(2), "rule", "w") == []


async def test_a_rebuild_that_was_begun_anew_elsewhere_goes_no_further(
    store: MongoStore, other: MongoStore
) -> None:
    """Neither can it learn nor switch; the newer one does both."""
    former = await store.open_generation(2)
    await former.commit(Commit("w", [Row("rule", "former")], moved=(0, 4)))
    newer = await other.open_generation(2)
    assert await newer.read_cursors() == {}
    with pytest.raises(StoreFencedError):
        await former.commit(Commit("w", moved=(4, 5)))
    with pytest.raises(StoreFencedError):
        await store.switch_generation(2, {})
    await newer.commit(Commit("w", [Row("rule", "newer")], moved=(0, 4)))
    await other.switch_generation(2, {})
    await store.refresh_generation()
    assert [row.key for row in await scan_all(store.knowledge, "rule", "w")] == ["newer"]
