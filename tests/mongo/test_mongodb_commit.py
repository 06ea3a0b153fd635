"""Commits of the MongoDB store: whole or not at all, whoever is killed or sleeps, and where."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from mongo.errors import StoreError, StoreFencedError
from mongo.mongodb import MongoLogStore, MongoOptions, changes, journal, leases, open_mongo_store
from mongo.mongodb.collections import DERIVED_NAMES, SHARED_NAMES, Record
from mongo.records import (
    DocumentRow,
    IndexCommit,
    KnowledgeRow,
    Lease,
    RepairRow,
    StatisticsRow,
    SuggestionOutcome,
)
from tests.mongo.conftest import mongo_options
from tests.mongo.log_store_samples import (
    SEARCH,
    make_correction,
    make_executions,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)
from tests.mongo.test_health_store_contract import make_health

OPEN = "open"
_LEARNED = {*DERIVED_NAMES.values()}
_QUEUED = {
    SHARED_NAMES[name]
    for name in (
        "executions", "outcomes", "marks", "corrections", "changed_tools", "promotion_history",
    )
}  # fmt: skip
_UNEQUAL = ("fence", "learned_since", "received_at", "received_us")
"""Fields that differ from one time to the next."""


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture
async def options(tmp_path: Path) -> MongoOptions:
    """A database of the test's own."""
    return await mongo_options(tmp_path)


@pytest.fixture
async def store(options: MongoOptions) -> AsyncIterator[MongoLogStore]:
    """The process that is killed, or sleeps."""
    async with await open_mongo_store(options) as opened:
        yield opened


@pytest.fixture
async def other(options: MongoOptions) -> AsyncIterator[MongoLogStore]:
    """Another process."""
    async with await open_mongo_store(options) as opened:
        yield opened


@pytest.fixture
async def client(options: MongoOptions) -> AsyncIterator[AsyncMongoClient[Record]]:
    """Who looks at the records themselves."""
    async with AsyncMongoClient(options.uri) as opened:
        yield opened


async def fill(store: MongoLogStore, workspace: str) -> IndexCommit:
    """A workspace with something in every queue, and a commit that takes some of each."""
    tool = SEARCH._replace(workspace=workspace)
    await store.append(workspace, make_executions(4))
    await store.add_outcomes(
        [SuggestionOutcome(workspace, make_id(1), make_id(n), "success") for n in range(3)]
    )
    for number in (1, 2):
        await store.add_mark(make_mark(number, workspace))
        await store.add_correction(make_correction(number, workspace))
        await store.put_tool(make_tool(f"t-{number}", tool=tool))
        await store.change_promotions([make_promotion_event(f"n-{number}", workspace=workspace)])
    await store.commit_index(
        IndexCommit(
            workspace,
            1,
            knowledge=[KnowledgeRow(tool, b"old")],
            documents=[DocumentRow(workspace, make_id(n), b"old", is_new=True) for n in (1, 2)],
        )
    )
    lease = await store.take_lease(f"learning:{workspace}", "host/1/a", None)
    assert lease is not None
    return IndexCommit(
        workspace,
        1,
        lease,
        positions=[each.position for each in (await store.pending(workspace, 10))[:2]],
        knowledge=[KnowledgeRow(tool, b"new"), KnowledgeRow(tool._replace(tool_name="b"), b"b")],
        documents=[DocumentRow(workspace, make_id(n), b"new", is_new=n == 3) for n in (1, 3)],
        repairs=[RepairRow(tool, make_id(0), make_id(n), "signature", b"r") for n in (1, 2)],
        outcomes=(await store.pending_outcomes(workspace, 10))[:2],
        statistics=[StatisticsRow(tool, b"s")],
        health=[make_health(tool, 3, 4), make_health(tool._replace(tool_name="b"), 1)],
        corrections=[
            (each.position, place)
            for each, place in zip(
                await store.pending_corrections(workspace, 10), (tool, None), strict=True
            )
        ],
        marks=[each.position for each in (await store.pending_marks(workspace, 10))[:1]],
        changed_tools=[each.position for each in (await store.changed_tools(workspace, 10))[:1]],
        promotions=[each.position for each in (await store.pending_promotions(workspace, 10))[:1]],
        removed=[(workspace, make_id(2))],
    )


async def content(
    client: AsyncMongoClient[Record], options: MongoOptions, workspace: str
) -> dict[str, list[Record]]:
    """All that a commit may change in a workspace, without its name and what differs by nature."""
    found: dict[str, list[Record]] = {}
    database = client[options.database]
    for name in sorted(_LEARNED | _QUEUED):
        rows = await database[name].find({"workspace": workspace}).sort("_id", 1).to_list()
        found[name] = [
            {
                field: value.removeprefix(workspace) if field == "_id" else value
                for field, value in row.items()
                if field not in (*_UNEQUAL, "workspace")
            }
            for row in rows
        ]
    return found


async def succeed(store: MongoLogStore, lease: Lease, holder: str = "host/2/b") -> Lease:
    """Take over a lease from a holder that shows no sign of life."""
    seen = await store.read_lease(lease.name)
    taken = await store.take_lease(lease.name, holder, seen)
    assert taken is not None
    return taken


@contextmanager
def killed_after(count: int) -> Iterator[list[int]]:
    """Commits are cut short after so many statements were applied; says how many there were."""
    done = [0]
    whole = journal.write

    async def write(collection: Any, statements: Sequence[Any]) -> None:
        for statement in statements:
            if done[0] >= count:
                raise KilledError
            done[0] += 1
            await whole(collection, [statement])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "write", write)
        yield done


async def expected(
    store: MongoLogStore, client: AsyncMongoClient[Record], options: MongoOptions
) -> tuple[dict[str, list[Record]], int]:
    """What a commit leaves that nobody disturbs, and how many statements that takes."""
    commit = await fill(store, "undisturbed")
    with killed_after(10_000) as done:
        await store.commit_index(commit)
    return await content(client, options, "undisturbed"), done[0]


@pytest.mark.parametrize("inline_bytes", [journal.INLINE_BYTES, 0], ids=["inline", "chunked"])
async def test_who_takes_the_lease_completes_what_a_killed_holder_began(
    store: MongoLogStore,
    other: MongoLogStore,
    client: AsyncMongoClient[Record],
    options: MongoOptions,
    inline_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed after the commit and each of its parts: exactly what it had committed is there."""
    monkeypatch.setattr(journal, "INLINE_BYTES", inline_bytes)
    monkeypatch.setattr(journal, "CHUNK_BYTES", 500)
    whole, statements = await expected(store, client, options)
    assert statements > 15
    for count in range(statements + 1):
        workspace = f"killed-{count}"
        commit = await fill(store, workspace)
        with killed_after(count), pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal, "_clear", _killed)
            with pytest.raises(KilledError):
                await store.commit_index(commit)
        assert commit.lease is not None
        lease = await succeed(other, commit.lease)
        assert await content(client, options, workspace) == whole
        # Not a second time either, and the next commit finds its way free.
        await succeed(other, lease, "host/3/c")
        assert await content(client, options, workspace) == whole
    assert await client[options.database]["JOURNAL"].count_documents({}) == 0


async def _killed(*_: object) -> None:
    raise KilledError


@pytest.mark.parametrize("inline_bytes", [journal.INLINE_BYTES, 0], ids=["inline", "chunked"])
async def test_a_holder_killed_before_the_commit_has_changed_nothing(
    store: MongoLogStore,
    other: MongoLogStore,
    client: AsyncMongoClient[Record],
    options: MongoOptions,
    inline_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was written down and not named is nothing; the next holder does it all."""
    monkeypatch.setattr(journal, "INLINE_BYTES", inline_bytes)
    whole, _ = await expected(store, client, options)
    commit = await fill(store, "w")
    before = await content(client, options, "w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mongo.mongodb.commit._name_journal", _killed)
        with pytest.raises(KilledError):
            await store.commit_index(commit)
    assert commit.lease is not None
    lease = await succeed(other, commit.lease)
    assert await content(client, options, "w") == before
    await other.commit_index(replace(commit, lease=lease))
    gaps = {"position", "queued_at"}  # places that the killed one had reserved stay empty
    assert _without(await content(client, options, "w"), gaps) == _without(whole, gaps)


def _without(found: dict[str, list[Record]], fields: set[str]) -> dict[str, list[Record]]:
    return {
        name: [{key: row[key] for key in row if key not in fields} for row in rows]
        for name, rows in found.items()
    }


async def test_a_process_that_failed_to_apply_reads_behind_its_own_commit(
    store: MongoLogStore,
) -> None:
    """It does not learn from the same once more: its queues are as its commit says."""
    commit = await fill(store, "w")
    with killed_after(0), pytest.raises(KilledError):
        await store.commit_index(commit)
    waiting = await store.pending("w", 10)
    assert {each.position for each in waiting}.isdisjoint(commit.positions)
    assert await store.get_knowledge(commit.knowledge[0].tool) == commit.knowledge[0]
    later = KnowledgeRow(commit.knowledge[0].tool, b"later")
    await store.commit_index(IndexCommit("w", 1, commit.lease, knowledge=[later]))
    assert await store.get_knowledge(later.tool) == later


async def test_what_a_sleeper_writes_late_changes_nothing(
    store: MongoLogStore,
    other: MongoLogStore,
    client: AsyncMongoClient[Record],
    options: MongoOptions,
) -> None:
    """It slept between its commit and applying it; two holders went on meanwhile."""
    commit = await fill(store, "w")
    assert commit.lease is not None
    asleep, awake = asyncio.Event(), asyncio.Event()
    whole = journal.write
    sleepers: list[Any] = []

    async def write(collection: Any, statements: Sequence[Any]) -> None:
        if asyncio.current_task() in sleepers or not asleep.is_set():
            asleep.set()
            await awake.wait()
        await whole(collection, statements)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "write", write)
        late = asyncio.create_task(store.commit_index(commit))
        await asleep.wait()
        # All its writes are waiting by now: they are begun in one go.
        lease = await succeed(other, commit.lease)
        (first,) = [row for row in commit.documents if row.is_new]
        tool = commit.knowledge[0].tool
        vectors = await other.removed_documents("w", 10)
        await other.mark_removed(vectors)
        await other.commit_index(
            IndexCommit(
                "w",
                1,
                lease,
                knowledge=[KnowledgeRow(tool, b"newest")],
                statistics=[StatisticsRow(tool, b"newest")],
                health=[make_health(tool, 9)],
                repairs=[replace(commit.repairs[0], data=b"newest")],
                removed=[("w", first.document_id)],
            )
        )
        await other.mark_removed(await other.removed_documents("w", 10))
        await other.put_tool(make_tool("t-1", tool=tool, description="newer"))
        expected = await content(client, options, "w")
        awake.set()
        await late
    assert await content(client, options, "w") == expected
    assert await other.get_documents("w", [first.document_id, make_id(2)]) == []
    assert [each.tool_id for each in await other.changed_tools("w", 10)] == ["t-2", "t-1"]


async def test_a_commit_without_the_lease_is_refused(
    store: MongoLogStore,
    other: MongoLogStore,
    client: AsyncMongoClient[Record],
    options: MongoOptions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lost, given back, or of another generation: nothing is written, and nothing is left."""
    monkeypatch.setattr(journal, "INLINE_BYTES", 0)
    commit = await fill(store, "w")
    before = await content(client, options, "w")
    assert commit.lease is not None
    lease = await succeed(other, commit.lease)
    await other.give_back_lease(lease)
    for refused in (
        commit,
        replace(commit, lease=lease),
        replace(commit, lease=None, generation=2),
        replace(commit, lease=replace(lease, name="learning:another")),
    ):
        with pytest.raises(StoreFencedError):
            await store.commit_index(refused)
    assert await content(client, options, "w") == before
    database = client[options.database]
    assert await database["JOURNAL"].count_documents({}) == 0
    assert await database["LEASES"].count_documents({"journal": {"$exists": True}}) == 0


async def test_a_commit_is_about_one_workspace(store: MongoLogStore) -> None:
    """One that names two is a mistake of the caller, and changes nothing."""
    with pytest.raises(StoreError, match="one workspace"):
        await store.commit_index(IndexCommit("w", 1, knowledge=[KnowledgeRow(SEARCH, b"k")]))
    assert await store.get_knowledge(SEARCH) is None


async def test_a_large_commit_is_written_down_in_pieces(
    store: MongoLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record of the journal comes near the limit of a document, whatever a commit holds."""
    kept = []
    write_chunks = journal.write_chunks

    async def watched(db: Any, workspace: str, entry: str, chunks: Sequence[Any]) -> None:
        kept.extend(chunks)
        await write_chunks(db, workspace, entry, chunks)

    monkeypatch.setattr(journal, "write_chunks", watched)
    rows = [
        KnowledgeRow(SEARCH._replace(tool_name=f"t-{number}"), bytes(3 << 20))
        for number in range(12)
    ]
    await store.commit_index(IndexCommit(SEARCH.workspace, 1, knowledge=rows))
    assert len(kept) > 2
    assert await store.get_knowledge(rows[-1].tool) == rows[-1]


async def test_a_commit_of_very_many_names_is_told_as_everything(
    store: MongoLogStore, other: MongoLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is done with: the next one finds its way free."""
    monkeypatch.setattr(changes, "_MOST_NAMES", 5)
    feed = await other.follow()
    removed = [("w", f"d-{number}") for number in range(6)]
    await store.commit_index(IndexCommit("w", 1, removed=removed))
    assert [change.everything for change in (await feed.poll()).changes] == [True]
    tool = SEARCH._replace(workspace="w")
    await store.commit_index(IndexCommit("w", 1, knowledge=[KnowledgeRow(tool, b"k")]))
    assert [change.learned for change in (await feed.poll()).changes] == [(tool,)]


async def test_what_was_written_down_and_never_named_is_thrown_away(
    store: MongoLogStore,
    client: AsyncMongoClient[Record],
    options: MongoOptions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By whoever takes the lease, once it is old."""
    monkeypatch.setattr(journal, "INLINE_BYTES", 0)
    kept = client[options.database]["JOURNAL"]
    commit = await fill(store, "w")
    assert commit.lease is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mongo.mongodb.commit._name_journal", _killed)
        with pytest.raises(KilledError):
            await store.commit_index(commit)
    lease = await succeed(store, commit.lease)
    assert await kept.count_documents({}) == 1
    monkeypatch.setattr(journal, "_UNNAMED", timedelta(0))
    await succeed(store, lease)
    assert await kept.count_documents({}) == 0


async def test_many_commits_at_once_are_all_applied(store: MongoLogStore) -> None:
    """Without a lease, too: each waits for the one before it."""
    rows = [KnowledgeRow(SEARCH._replace(tool_name=f"t-{number}"), b"k") for number in range(8)]
    await asyncio.gather(
        *(store.commit_index(IndexCommit(SEARCH.workspace, 1, knowledge=[row])) for row in rows)
    )
    assert [await store.get_knowledge(row.tool) for row in rows] == rows


async def test_a_lease_name_is_never_taken_twice_at_once(store: MongoLogStore) -> None:
    """Of many who saw the same, one has it; also where a commit had made its record."""
    await store.commit_index(IndexCommit("w", 1))
    for seen in (None, 1):
        present = await store.read_lease("learning:w")
        assert (present is None) == (seen is None)
        taken = await asyncio.gather(
            *(store.take_lease("learning:w", f"h/{number}/x", present) for number in range(8))
        )
        (lease,) = [each for each in taken if each is not None]
        assert lease.token == 1 + (0 if present is None else present.token)
        assert await store.read_lease("learning:w") == lease
    assert leases.workspace_of("learning:w") == "w"
