"""Shadows of the MongoDB store: killed, given up, overtaken, adopted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pymongo import AsyncMongoClient

from mongo.errors import StoreFencedError
from mongo.mongodb import MongoLogStore, MongoOptions, generations, open_mongo_store, queues
from mongo.mongodb.collections import Record
from mongo.records import DocumentRow, IndexCommit, KnowledgeRow, Lease
from tests.mongo.conftest import mongo_options
from tests.mongo.log_store_samples import (
    SEARCH,
    WORKSPACE,
    make_execution,
    make_executions,
    make_id,
    make_mark,
    make_tool,
)


@pytest.fixture
async def options(tmp_path: Path) -> MongoOptions:
    """A database of the test's own."""
    return await mongo_options(tmp_path)


@pytest.fixture
async def store(options: MongoOptions) -> AsyncIterator[MongoLogStore]:
    """The process that rebuilds."""
    async with await open_mongo_store(options) as opened:
        yield opened


@pytest.fixture
async def other(options: MongoOptions) -> AsyncIterator[MongoLogStore]:
    """A service that answers meanwhile."""
    async with await open_mongo_store(options) as opened:
        yield opened


async def learn(store: MongoLogStore, count: int, data: bytes, lease: Lease | None = None) -> None:
    """Learn from the oldest `count` executions, and from all marks and tools."""
    queued = await store.pending(WORKSPACE, count)
    await store.commit_index(
        IndexCommit(
            WORKSPACE,
            await store.generation(),
            lease,
            positions=[each.position for each in queued],
            knowledge=[KnowledgeRow(SEARCH, data)],
            documents=[DocumentRow(WORKSPACE, make_id(7), data, is_new=True)],
            marks=[each.position for each in await store.pending_marks(WORKSPACE, 10)],
            changed_tools=[each.position for each in await store.changed_tools(WORKSPACE, 10)],
        )
    )


async def waiting(store: MongoLogStore) -> list[int | None]:
    """The executions in the queue, by the numbers they were made of."""
    return [each.execution.sequence for each in await store.pending(WORKSPACE, 100)]


async def fill(store: MongoLogStore) -> None:
    """Six executions, four of them learned from, with a mark and a tool."""
    await store.append(WORKSPACE, make_executions(6))
    await store.add_mark(make_mark(1))
    await store.put_tool(make_tool("t-1"))
    await learn(store, 4, b"old")


async def test_a_shadow_has_everything_in_its_queues_and_learns_beside(
    store: MongoLogStore, other: MongoLogStore
) -> None:
    """What it learns is not seen before it is adopted, and what arrives comes into both queues."""
    await fill(store)
    shadow = await store.open_shadow()
    assert await waiting(shadow) == [0, 1, 2, 3, 4, 5]
    assert len(await shadow.pending_marks(WORKSPACE, 10)) == 1
    assert len(await shadow.changed_tools(WORKSPACE, 10)) == 1
    assert await shadow.pending_vectors(WORKSPACE, 10) == []
    await learn(shadow, 5, b"new")
    await other.append(WORKSPACE, [make_execution(6)])
    assert await waiting(shadow) == [5, 6]
    assert await waiting(store) == [4, 5, 6]
    assert await other.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"old")
    assert await shadow.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"new")
    await shadow.close()


async def test_an_adopted_shadow_is_the_store_for_everybody(
    store: MongoLogStore, other: MongoLogStore, options: MongoOptions
) -> None:
    """Its knowledge, its queues and the facts hold at once; others notice it through their feed."""
    await fill(store)
    await other.put_fact("index", "vectors")
    feed = await other.follow()
    shadow = await store.open_shadow()
    await learn(shadow, 5, b"new")
    await other.append(WORKSPACE, [make_execution(6)])
    assert await store.adopt(shadow, {"index": "vectors-g2"}) == 2
    for each in (store, other):
        assert await each.get_fact("index") == "vectors-g2"
    polled = await feed.poll()
    assert polled.generation == 2
    assert any("index" in change.facts for change in polled.changes)
    for each in (store, other):
        assert await waiting(each) == [5, 6]
        assert await each.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"new")
        assert (await each.counts(WORKSPACE)).pending == 3  # and a vector
        assert await each.pending_marks(WORKSPACE, 10) == []
    async with await open_mongo_store(options) as later:
        assert await later.generation() == 2
        await later.put_fact("index", "vectors-g3")
        assert await other.get_fact("index") == "vectors-g3"


async def test_what_only_a_shadow_had_learned_from_expires_too(
    store: MongoLogStore, options: MongoOptions
) -> None:
    """Its time runs from then; else the server would keep it for ever."""
    await fill(store)
    shadow = await store.open_shadow()
    await learn(shadow, 6, b"new")
    await store.adopt(shadow, {})
    async with AsyncMongoClient[Record](options.uri) as client:
        log = client[options.database]["TOOL_EXECUTION_LOG"]
        rows = await log.find({"workspace": WORKSPACE}).to_list()
    assert len(rows) == 6
    assert all("learned_since" in row and "queued" not in row for row in rows)


async def test_learning_for_a_generation_that_has_passed_is_refused(
    store: MongoLogStore, other: MongoLogStore
) -> None:
    """Whoever did not notice the switch yet loses nothing: it reads anew."""
    await fill(store)
    late = await other.pending(WORKSPACE, 10)
    await store.adopt(await store.open_shadow(), {})
    with pytest.raises(StoreFencedError):
        await other.commit_index(IndexCommit(WORKSPACE, 1, positions=[late[0].position]))
    assert await waiting(store) == [0, 1, 2, 3, 4, 5]
    assert await other.generation() == 2
    assert await waiting(other) == [0, 1, 2, 3, 4, 5]


async def test_a_shadow_that_is_given_up_leaves_the_queues_as_they_were(
    store: MongoLogStore, options: MongoOptions
) -> None:
    """What only the shadow had learned from still waits; what it had not does not wait again."""
    await fill(store)
    before = await store.counts(WORKSPACE)
    shadow = await store.open_shadow()
    await learn(shadow, 5, b"new")
    await shadow.close()
    await store.drop_shadow()
    assert await waiting(store) == [4, 5]
    assert await store.counts(WORKSPACE) == before
    assert await store.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"old")
    async with AsyncMongoClient[Record](options.uri) as client:
        names = await client[options.database].list_collection_names()
    assert "TOOL_KNOWLEDGE" in names
    assert "TOOL_KNOWLEDGE_2" not in names


@pytest.mark.parametrize("stage", ["prepare_generation", "queue_all", "learned"])
async def test_a_rebuild_after_a_killed_one_begins_from_nothing(
    store: MongoLogStore, other: MongoLogStore, stage: str
) -> None:
    """Wherever it was killed; until then, the store goes on as it was."""
    await fill(store)
    if stage == "learned":
        await learn(await store.open_shadow(), 3, b"half")
    else:
        where = queues if stage == "queue_all" else generations.layout
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(where, stage, _killed)
            with pytest.raises(InterruptedError):
                await store.open_shadow()
    assert await waiting(other) == [4, 5]
    await learn(other, 1, b"meanwhile")
    assert await waiting(other) == [5]
    shadow = await other.open_shadow()
    assert await waiting(shadow) == [0, 1, 2, 3, 4, 5]
    assert await shadow.get_knowledge(SEARCH) is None
    await shadow.close()
    await other.drop_shadow()
    assert await waiting(other) == [5]


async def _killed(*_: object) -> None:
    raise InterruptedError


async def test_a_switch_needs_the_leases_to_be_held(
    store: MongoLogStore, other: MongoLogStore
) -> None:
    """One that has passed to another, before the switch or in the middle of it, forbids it."""
    await fill(store)
    name = f"learning:{WORKSPACE}"
    mine = await store.take_lease(name, "host/1/a", None)
    assert mine is not None
    theirs = await other.take_lease(name, "host/2/b", mine)
    assert theirs is not None
    with pytest.raises(StoreFencedError):
        await store.adopt(await store.open_shadow(), {"index": "v"}, [mine])

    async def overtaken(*_: object) -> int:
        # The last thing before the switch, when the leases were found to be held.
        assert await other.take_lease(name, "host/3/c", theirs) is not None
        return 1_000

    shadow = await store.open_shadow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generations.changes, "reserve", overtaken)
        with pytest.raises(StoreFencedError):
            await store.adopt(shadow, {"index": "v"}, [theirs])
    assert await store.generation() == 1
    assert await store.get_fact("index") is None
    assert await store.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"old")


async def test_a_holder_of_all_leases_learns_into_the_shadow_and_switches(
    store: MongoLogStore,
) -> None:
    """Commits of a shadow are fenced by the same leases."""
    await fill(store)
    lease = await store.take_lease(f"learning:{WORKSPACE}", "host/1/a", None)
    assert lease is not None
    shadow = await store.open_shadow()
    await learn(shadow, 6, b"new", lease)
    assert await store.adopt(shadow, {}, [lease]) == 2
    assert await waiting(store) == []
    assert await store.beat_lease(lease) is not None


async def test_stores_are_rebuilt_again_and_again(
    store: MongoLogStore, options: MongoOptions
) -> None:
    """What one rebuild had still in its queues is in those of the next; old ones are dropped."""
    await fill(store)
    for generation in (2, 3, 4):
        shadow = await store.open_shadow()
        assert await waiting(shadow) == [0, 1, 2, 3, 4, 5]
        await learn(shadow, 4, bytes([generation]))
        assert await store.adopt(shadow, {"round": str(generation)}) == generation
        assert await waiting(store) == [4, 5]
        assert await store.get_fact("round") == str(generation)
    await store.drop_shadow()
    async with AsyncMongoClient[Record](options.uri) as client:
        names = await client[options.database].list_collection_names()
    assert [each for each in names if each.startswith("TOOL_KNOWLEDGE")] == ["TOOL_KNOWLEDGE_4"]
