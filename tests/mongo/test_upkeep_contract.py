"""What every log store offers to its keepers: leases, feeds, streams, expiry, usage, switching."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from mongo.errors import StoreError, StoreFencedError
from mongo.protocol import LogStore
from mongo.records import (
    Change,
    DocumentRow,
    HealthRow,
    IndexCommit,
    KnowledgeRow,
    Lease,
    PatternRow,
    RepairRow,
    StatisticsRow,
    StoredExecution,
    SuggestionOutcome,
    ToolKey,
    UsageRow,
)
from mongo.upkeep import ChangeFeed
from tests.mongo.log_store_samples import (
    SCHEMA,
    SCHEMA_HASH,
    SEARCH,
    START,
    WORKSPACE,
    make_correction,
    make_execution,
    make_executions,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)

OpenLogStore = Callable[[Path], Awaitable[LogStore]]

NO_SERVER = ToolKey(WORKSPACE, None, "search")
ELSEWHERE = SEARCH._replace(workspace="elsewhere")
LEARNING = f"learning:{WORKSPACE}"
DAY = date(2026, 2, 20)


async def taken(store: LogStore, name: str = LEARNING, holder: str = "host/1/a") -> Lease:
    """A lease that was free, or is taken over now."""
    lease = await store.take_lease(name, holder, await store.read_lease(name))
    assert lease is not None
    return lease


def numbers(executions: list[StoredExecution]) -> list[int | None]:
    """Which executions these are, by the numbers that they were made with."""
    return [each.execution.sequence for each in executions]


async def learn_executions(store: LogStore, workspace: str = WORKSPACE) -> None:
    """Learn nothing from everything that is queued of a workspace."""
    while queued := await store.pending(workspace, 100):
        await store.commit_index(
            IndexCommit(
                workspace, await store.generation(), positions=[each.position for each in queued]
            )
        )


# Queues


async def test_workspaces_with_work_are_told(log_store: LogStore) -> None:
    """Whatever it is that waits, in order; none is left when all was done."""
    assert await log_store.queued_workspaces() == []
    await log_store.append("e", [make_execution(1)])
    await log_store.add_mark(make_mark(1, "d"))
    await log_store.add_correction(make_correction(1, "c"))
    await log_store.put_tool(make_tool("t", tool=ELSEWHERE))
    await log_store.add_outcomes([SuggestionOutcome("b", make_id(1), make_id(2), "success")])
    document = DocumentRow("a", make_id(1), b"d", is_new=True)
    await log_store.commit_index(IndexCommit("a", 1, documents=[document]))
    waiting = ["a", "b", "c", "d", "e", "elsewhere"]
    assert await queued_workspaces(log_store, waiting) == waiting
    await learn_executions(log_store, "e")
    await log_store.mark_embedded(await log_store.pending_vectors("a", 10))
    left = ["b", "c", "d", "elsewhere"]
    assert await queued_workspaces(log_store, left) == left


async def test_arrivals_are_told_at_once(log_store: LogStore) -> None:
    """In whatever workspace, until they are learned from; other queues are not asked about."""
    await log_store.add_mark(make_mark(1))
    assert not await log_store.has_arrivals()
    await log_store.append("e", [make_execution(1)])
    assert await log_store.has_arrivals()
    await learn_executions(log_store, "e")
    assert not await log_store.has_arrivals()


async def queued_workspaces(store: LogStore, wanted: list[str]) -> list[str]:
    """What the store tells, once it tells this: it may take half a second."""
    told: list[str] = []
    for _ in range(200):
        told = await store.queued_workspaces()
        if told == wanted:
            break
        await asyncio.sleep(0.02)
    return told


async def test_the_number_of_calls_that_an_execution_stands_for_is_kept(
    log_store: LogStore,
) -> None:
    """One unless said otherwise; by every way of reading it."""
    await log_store.append(WORKSPACE, [replace(make_execution(1), stands_for=20)])
    await log_store.append(WORKSPACE, [make_execution(2)])
    queued = await log_store.pending(WORKSPACE, 10)
    assert [each.stands_for for each in queued] == [20, 1]
    assert await log_store.get_executions(WORKSPACE, [make_id(1), make_id(2)]) == queued
    assert await log_store.scan_executions(WORKSPACE, 0, 10) == queued


# Leases


async def test_a_lease_is_taken_kept_and_given_back(log_store: LogStore) -> None:
    """Its token grows with every holder, its beat while one lives."""
    assert await log_store.read_lease(LEARNING) is None
    first = await log_store.take_lease(LEARNING, "host/1/a", None)
    assert first is not None
    assert (first.name, first.holder, first.token, first.held) == (LEARNING, "host/1/a", 1, True)
    assert await log_store.read_lease(LEARNING) == first
    second = await log_store.beat_lease(first)
    assert second is not None
    assert (second.token, second.beat > first.beat) == (1, True)
    again = await log_store.beat_lease(first)  # the token tells who it is, not the beat
    assert again is not None
    assert again.beat > second.beat
    await log_store.give_back_lease(second)
    free = await log_store.read_lease(LEARNING)
    assert free is not None
    assert not free.held
    assert await log_store.beat_lease(second) is None
    other = await log_store.take_lease(LEARNING, "host/2/b", free)
    assert other is not None
    assert (other.holder, other.token, other.held) == ("host/2/b", 2, True)
    assert await log_store.read_lease("nightly") is None


async def test_a_lease_is_taken_over_only_as_it_was_seen(log_store: LogStore) -> None:
    """A beat, another holder or a return since then make the contender look again."""
    held = await taken(log_store)
    beaten = await log_store.beat_lease(held)
    for stale in (None, held):
        assert await log_store.take_lease(LEARNING, "host/2/b", stale) is None
    new = await log_store.take_lease(LEARNING, "host/2/b", beaten)
    assert new is not None
    assert new.token == held.token + 1
    assert await log_store.beat_lease(held) is None
    await log_store.give_back_lease(held)
    assert await log_store.read_lease(LEARNING) == new


@pytest.mark.parametrize("was_held", [False, True])
async def test_of_many_contenders_exactly_one_wins(log_store: LogStore, *, was_held: bool) -> None:
    """Whether nobody had it before or all saw the same dead holder."""
    seen = await taken(log_store) if was_held else None
    answers = await asyncio.gather(
        *(log_store.take_lease(LEARNING, f"host/{n}/x", seen) for n in range(20))
    )
    [winner] = [lease for lease in answers if lease is not None]
    assert await log_store.read_lease(LEARNING) == winner
    assert winner.token == (2 if was_held else 1)


async def test_a_commit_of_a_lost_lease_is_refused_whole(log_store: LogStore) -> None:
    """Taken over, given back or never taken: nothing is written, and the queue stays."""
    await log_store.append(WORKSPACE, make_executions(2))
    queued = await log_store.pending(WORKSPACE, 10)
    lost = await taken(log_store)
    held = await taken(log_store, holder="host/2/b")
    returned = await taken(log_store, "learning:elsewhere")
    await log_store.give_back_lease(returned)
    never = Lease("learning:nobody", "host/3/c", 1)
    for lease in (lost, returned, never):
        workspace = lease.name.removeprefix("learning:")
        row = KnowledgeRow(SEARCH._replace(workspace=workspace), b"k")
        positions = [each.position for each in queued]
        with pytest.raises(StoreFencedError):
            await log_store.commit_index(
                IndexCommit(workspace, 1, lease, positions=positions, knowledge=[row])
            )
        assert await log_store.get_knowledge(row.tool) is None
    assert await log_store.pending(WORKSPACE, 10) == queued
    row = KnowledgeRow(SEARCH, b"k")
    await log_store.commit_index(
        IndexCommit(WORKSPACE, 1, held, positions=positions, knowledge=[row])
    )
    assert await log_store.get_knowledge(SEARCH) == row
    assert await log_store.pending(WORKSPACE, 10) == []


async def test_a_lease_that_beats_still_holds_for_a_commit(log_store: LogStore) -> None:
    """Also where the commit names it as it was when it was taken."""
    lease = await taken(log_store)
    await log_store.beat_lease(lease)
    row = KnowledgeRow(SEARCH, b"k")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, lease, knowledge=[row]))
    assert await log_store.get_knowledge(SEARCH) == row


async def test_a_commit_of_another_generation_is_refused(log_store: LogStore) -> None:
    """Of a past one and of one to come."""
    row = KnowledgeRow(SEARCH, b"k")
    for generation in (0, 2):
        with pytest.raises(StoreFencedError):
            await log_store.commit_index(IndexCommit(WORKSPACE, generation, knowledge=[row]))
    assert await log_store.get_knowledge(SEARCH) is None
    assert await log_store.generation() == 1


# Feeds


async def told(feed: ChangeFeed, enough: Callable[[list[Change]], bool]) -> list[Change]:
    """The changes of as many polls as it takes."""
    seen: list[Change] = []
    for _ in range(200):
        seen += (await feed.poll()).changes
        if enough(seen):
            return seen
        await asyncio.sleep(0.02)
    raise AssertionError(f"told was only {seen}")


async def test_a_feed_tells_the_facts_that_were_set(log_store: LogStore) -> None:
    """Each once, from when it was made; another feed tells them too."""
    await log_store.put_fact("before", "x")
    feed, other = await log_store.follow(), await log_store.follow()
    first = await feed.poll()
    assert (first.generation, first.changes) == (1, [])
    await log_store.put_fact("model", "m")
    for each in (feed, other):
        seen = await told(each, lambda changes: any("model" in c.facts for c in changes))
        assert not any("before" in change.facts for change in seen)
    assert (await feed.poll()).changes == []


async def test_a_feed_tells_of_a_switch(log_store: LogStore) -> None:
    """Every workspace is another one from then on, and the generation is the next."""
    await log_store.append(WORKSPACE, make_executions(1))
    await log_store.append("elsewhere", make_executions(1))
    feed = await log_store.follow()
    await log_store.adopt(await log_store.open_shadow(), {"index": "new"})
    seen = await told(
        feed,
        lambda changes: (
            {WORKSPACE, "elsewhere"} <= {c.workspace for c in changes if c.everything}
            and any("index" in c.facts for c in changes)
        ),
    )
    assert seen
    assert (await feed.poll()).generation == 2


# Usage and patterns


def make_usage(day: int, tool: ToolKey = SEARCH, data: bytes = b"\x00u") -> UsageRow:
    return UsageRow(tool, DAY + timedelta(days=day), data)


async def test_usage_is_kept_by_tool_and_day(log_store: LogStore) -> None:
    """In the order asked for, each once; a later put replaces that of the same day."""
    rows = [make_usage(0), make_usage(1), make_usage(0, NO_SERVER, b"")]
    await log_store.put_usage([*rows, make_usage(0, ELSEWHERE)])
    newer = make_usage(1, data=b"newer")
    await log_store.put_usage([newer])
    await log_store.put_usage([])
    wanted = [(row.tool, row.day) for row in (rows[2], newer, make_usage(5), rows[0], rows[2])]
    assert await log_store.get_usage(WORKSPACE, wanted) == [rows[2], newer, rows[0]]
    assert await log_store.get_usage(WORKSPACE, []) == []


async def test_usage_is_streamed_by_day_and_tool(log_store: LogStore) -> None:
    """From a day on, in pages, without what is another workspace's."""
    tools = (NO_SERVER, SEARCH, SEARCH._replace(tool_name="zoom"))
    rows = [make_usage(day, tool) for day in (-1, 0, 1, 30) for tool in tools]
    await log_store.put_usage([*rows[::-1], make_usage(0, ELSEWHERE)])
    for size in (1, 2, 100):
        found: list[UsageRow] = []
        after: tuple[date, ToolKey] | None = None
        while page := await log_store.scan_usage(WORKSPACE, DAY, after, size):
            assert len(page) <= size
            found += page
            after = (page[-1].day, page[-1].tool)
        assert found == rows[3:]
    assert await log_store.scan_usage(WORKSPACE, DAY, None, 0) == []


def make_pattern(number: int, count: int, seen: int = 0, data: bytes = b"\x00p") -> PatternRow:
    return PatternRow(
        WORKSPACE, f"p-{number}", data, START + timedelta(seconds=seen, microseconds=7), count
    )


async def test_patterns_come_by_their_count(log_store: LogStore) -> None:
    """Of equals the latest seen comes first, then by id; at most so many, of one workspace."""
    rows = [
        make_pattern(4, 9), make_pattern(3, 5, seen=2), make_pattern(1, 5), make_pattern(2, 5),
    ]  # fmt: skip
    await log_store.put_patterns(WORKSPACE, rows[::-1])
    await log_store.put_patterns("elsewhere", [replace(make_pattern(1, 99), workspace="elsewhere")])
    assert await log_store.list_patterns(WORKSPACE, 10) == rows
    assert await log_store.list_patterns(WORKSPACE, 2) == rows[:2]
    assert await log_store.list_patterns(WORKSPACE, 0) == []
    wanted = ["p-2", "p-9", "p-4", "p-2"]
    assert await log_store.get_patterns(WORKSPACE, wanted) == [rows[3], rows[0]]


async def test_patterns_are_replaced_and_removed_at_once(log_store: LogStore) -> None:
    """What is put stays, also where its id is among the removed of before."""
    await log_store.put_patterns(WORKSPACE, [make_pattern(number, number) for number in range(4)])
    merged = make_pattern(1, 6, data=b"merged")
    await log_store.put_patterns(WORKSPACE, [merged], removed=["p-2", "p-3", "unknown"])
    assert await log_store.list_patterns(WORKSPACE, 10) == [merged, make_pattern(0, 0)]


async def test_what_a_former_holder_still_writes_changes_nothing(log_store: LogStore) -> None:
    """A night that was stopped between a look at its lease and its write finds a newer one."""
    former = await taken(log_store, "nightly", "host/1/a")
    older, newer = make_usage(0, data=b"older"), make_usage(0, data=b"newer")
    await log_store.put_usage([older], former)
    await log_store.put_fact("counted", "1", former)
    await log_store.put_patterns(WORKSPACE, [make_pattern(1, 1)], lease=former)
    later = await taken(log_store, "nightly", "host/2/b")
    await log_store.put_usage([newer], later)
    await log_store.put_fact("counted", "2", later)
    await log_store.put_patterns(WORKSPACE, [make_pattern(1, 2)], lease=later)
    with pytest.raises(StoreFencedError):
        await log_store.put_usage([older, make_usage(1)], former)
    with pytest.raises(StoreFencedError):
        await log_store.put_fact("counted", "1", former)
    with pytest.raises(StoreFencedError):
        await log_store.put_patterns(WORKSPACE, [make_pattern(1, 1)], ["p-1"], former)
    assert await log_store.get_usage(WORKSPACE, [(SEARCH, DAY)]) == [newer]
    assert await log_store.get_fact("counted") == "2"
    assert await log_store.list_patterns(WORKSPACE, 9) == [make_pattern(1, 2)]
    await log_store.put_usage([make_usage(0, data=b"again")], later)
    await log_store.put_fact("counted", "3", later)
    assert await log_store.get_fact("counted") == "3"


# Streams


async def test_executions_are_streamed_in_the_order_of_their_arrival(log_store: LogStore) -> None:
    """In pages of any size, learned from or not, of one workspace."""
    await log_store.append(WORKSPACE, make_executions(7))
    await log_store.append("elsewhere", make_executions(3, first=50))
    await learn_executions(log_store)
    await log_store.append(WORKSPACE, make_executions(2, first=7))
    for size in (1, 4, 100):
        found: list[StoredExecution] = []
        while page := await log_store.scan_executions(
            WORKSPACE, found[-1].position if found else 0, size
        ):
            assert len(page) <= size
            found += page
        assert numbers(found) == list(range(9))
    assert await log_store.scan_executions(WORKSPACE, 0, 0) == []
    assert await log_store.scan_executions("nobody", 0, 10) == []


async def test_only_what_arrived_before_a_moment_is_streamed(log_store: LogStore) -> None:
    """The moment itself is not before it."""
    await log_store.append(WORKSPACE, [make_execution(1)])
    [stored] = await log_store.pending(WORKSPACE, 10)
    at = stored.received_at
    assert await log_store.scan_executions(WORKSPACE, 0, 10, at) == []
    later = at + timedelta(milliseconds=1)
    assert await log_store.scan_executions(WORKSPACE, 0, 10, later) == [stored]


async def test_documents_are_streamed_by_id(log_store: LogStore) -> None:
    """In pages, of one workspace."""
    rows = [DocumentRow(WORKSPACE, f"d-{number}", bytes([number])) for number in range(7)]
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=rows[::-1]))
    theirs = DocumentRow("elsewhere", "d-9", b"")
    await log_store.commit_index(IndexCommit("elsewhere", 1, documents=[theirs]))
    for size in (1, 3, 100):
        found: list[DocumentRow] = []
        while page := await log_store.scan_documents(
            WORKSPACE, found[-1].document_id if found else "", size
        ):
            found += page
        assert found == rows


async def test_workspaces_are_those_with_anything_in_the_log(log_store: LogStore) -> None:
    """Or a tool; in order."""
    assert await log_store.workspaces() == []
    await log_store.append("c", [make_execution(1)])
    await log_store.put_tool(make_tool("t", tool=SEARCH._replace(workspace="b")))
    await log_store.append("a", [make_execution(1)])
    assert await log_store.workspaces() == ["a", "b", "c"]


# Expiry

TOMORROW = datetime.now(UTC) + timedelta(days=1)


async def test_only_what_was_learned_from_expires(log_store: LogStore) -> None:
    """At most so many at a time; what still waits stays, and so does what was learned."""
    await log_store.append(WORKSPACE, make_executions(6))
    await log_store.append("elsewhere", make_executions(2))
    queued = await log_store.pending(WORKSPACE, 10)
    await log_store.commit_index(
        IndexCommit(
            WORKSPACE,
            1,
            positions=[each.position for each in queued if each.execution.sequence != 1],
            knowledge=[KnowledgeRow(SEARCH, b"k")],
        )
    )
    assert await log_store.expire_executions(WORKSPACE, queued[0].received_at, 10) == 0
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 0) == 0
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 2) == 2
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 3
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 0
    assert numbers(await log_store.scan_executions(WORKSPACE, 0, 10)) == [1]
    assert await log_store.get_execution(WORKSPACE, make_id(0)) is None
    assert (await log_store.counts(WORKSPACE)).executions == 1
    assert (await log_store.counts("elsewhere")).executions == 2
    assert await log_store.get_knowledge(SEARCH) == KnowledgeRow(SEARCH, b"k")


async def test_a_schema_goes_with_the_last_that_names_it(log_store: LogStore) -> None:
    """An execution that stays or a tool keeps it; what said of it stays too."""
    other = {"type": "object", "title": "other"}
    old, kept = make_execution(1, schema=SCHEMA), make_execution(2, schema=other)
    await log_store.append(WORKSPACE, [old, kept])
    await log_store.add_outcomes([SuggestionOutcome(WORKSPACE, make_id(9), make_id(1), "success")])
    await learn_executions(log_store)
    await log_store.append(WORKSPACE, [make_execution(3, schema=other)])
    await log_store.put_tool(make_tool("t-1", schema=True))
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 2
    assert kept.schema_hash is not None
    assert await log_store.get_schema(WORKSPACE, kept.schema_hash) == other
    assert await log_store.get_schema(WORKSPACE, SCHEMA_HASH) == SCHEMA
    await log_store.delete_tool(WORKSPACE, "t-1")
    await log_store.append(WORKSPACE, [replace(old, execution=make_execution(4).execution)])
    await learn_executions(log_store)
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 2
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 0
    assert await log_store.get_schema(WORKSPACE, SCHEMA_HASH) is None
    assert await log_store.get_schema(WORKSPACE, kept.schema_hash) is None
    assert len(await log_store.pending_outcomes(WORKSPACE, 10)) == 1


async def test_an_expired_execution_may_come_again(log_store: LogStore) -> None:
    """As a new one, behind all others: its place is not given out twice."""
    await log_store.append(WORKSPACE, make_executions(2))
    last = (await log_store.pending(WORKSPACE, 10))[-1].position
    await learn_executions(log_store)
    assert await log_store.expire_executions(WORKSPACE, TOMORROW, 10) == 2
    assert await log_store.append(WORKSPACE, [make_execution(1)]) == ["accepted"]
    [stored] = await log_store.pending(WORKSPACE, 10)
    assert stored.position > last


# Switching


async def fill(store: LogStore) -> None:
    """Two of everything that is queued, all of it learned from."""
    await store.append(WORKSPACE, make_executions(2))
    for number in (1, 2):
        await store.add_mark(make_mark(number))
        await store.add_correction(make_correction(number))
        await store.put_tool(make_tool(f"t-{number}"))
    await store.add_outcomes(
        [SuggestionOutcome(WORKSPACE, make_id(1), make_id(n), "success") for n in (1, 2)]
    )
    await store.change_promotions([make_promotion_event(each) for each in ("a", "b")])
    await learn_all(store, "old")


async def learn_all(store: LogStore, name: str, workspace: str = WORKSPACE) -> dict[str, int]:
    """Learn from all that waits in a workspace, writing `name` everywhere; how much it was."""
    tool = SEARCH._replace(workspace=workspace)
    executions = await store.pending(workspace, 100)
    marks = await store.pending_marks(workspace, 100)
    corrections = await store.pending_corrections(workspace, 100)
    tools = await store.changed_tools(workspace, 100)
    promotions = await store.pending_promotions(workspace, 100)
    outcomes = await store.pending_outcomes(workspace, 100)
    data = name.encode()
    await store.commit_index(
        IndexCommit(
            workspace,
            await store.generation(),
            positions=[each.position for each in executions],
            marks=[each.position for each in marks],
            corrections=[(each.position, tool) for each in corrections],
            changed_tools=[each.position for each in tools],
            promotions=[each.position for each in promotions],
            outcomes=outcomes,
            knowledge=[KnowledgeRow(tool, data)],
            statistics=[StatisticsRow(tool, data)],
            health=[HealthRow(tool, data, START)],
            documents=[DocumentRow(workspace, make_id(7), data, is_new=True)],
            repairs=[RepairRow(tool, make_id(0), make_id(1), name, data)],
        )
    )
    queues = {
        "executions": executions, "marks": marks, "corrections": corrections, "tools": tools,
        "promotions": promotions, "outcomes": outcomes,
    }  # fmt: skip
    return {queue: len(found) for queue, found in queues.items() if found}


async def learned(store: LogStore, workspace: str = WORKSPACE) -> list[str]:
    """What a store says was learned of a workspace, by the names that were written."""
    tool = SEARCH._replace(workspace=workspace)
    knowledge = await store.get_knowledge(tool)
    rows = [
        *([knowledge] if knowledge else []),
        *await store.get_statistics([tool]),
        *await store.get_health([tool]),
        *await store.get_documents(workspace, [make_id(7)]),
        *await store.list_repairs(tool, 10),
    ]
    return [row.data.decode() for row in rows]


TWO_OF_EACH = {
    "executions": 2, "marks": 2, "corrections": 2, "tools": 2, "promotions": 2, "outcomes": 2,
}  # fmt: skip


async def test_a_shadow_has_learned_nothing_and_disturbs_nobody(log_store: LogStore) -> None:
    """Its queues hold all there is; what it learns is not seen before it is adopted."""
    await fill(log_store)
    before = await log_store.counts()
    shadow = await log_store.open_shadow()
    try:
        assert await shadow.generation() == 2
        assert await learned(shadow) == []
        assert await shadow.list_corrections(WORKSPACE, 10, tool=SEARCH) == []
        assert await shadow.learned_marks(WORKSPACE, [make_id(1001)]) == []
        assert (await shadow.counts()).executions == 2
        assert (await shadow.counts()).documents == 0
        assert await queued_workspaces(shadow, [WORKSPACE]) == [WORKSPACE]
        assert await learn_all(shadow, "new") == TWO_OF_EACH
        assert await learned(shadow) == ["new"] * 5
        assert await learn_all(shadow, "new") == {}
        assert len(await shadow.list_corrections(WORKSPACE, 10, tool=SEARCH)) == 2
        assert len(await shadow.learned_marks(WORKSPACE, [make_id(1001)])) == 1
        assert await log_store.counts() == before
        assert await learned(log_store) == ["old"] * 5
        assert await log_store.pending(WORKSPACE, 10) == []
        assert len(await log_store.list_corrections(WORKSPACE, 10, tool=SEARCH)) == 2
        assert await log_store.generation() == 1
        with pytest.raises(StoreFencedError):
            await shadow.commit_index(IndexCommit(WORKSPACE, 1))
    finally:
        await shadow.close()
    await log_store.drop_shadow()
    await log_store.drop_shadow()
    assert await learned(log_store) == ["old"] * 5
    assert await log_store.counts() == before


async def test_what_a_shadow_learned_takes_the_place_of_what_was_known(
    log_store: LogStore,
) -> None:
    """With the facts, in the next generation; what rests on the former one is refused."""
    await fill(log_store)
    shadow = await log_store.open_shadow()
    await learn_all(shadow, "new")
    assert await log_store.adopt(shadow, {"index": "vectors-g2", "model": "m"}) == 2
    assert await log_store.generation() == 2
    assert await learned(log_store) == ["new"] * 5
    assert await log_store.get_fact("index") == "vectors-g2"
    assert await log_store.get_fact("model") == "m"
    counts = await log_store.counts()
    assert (counts.executions, counts.documents, counts.tools) == (2, 1, 2)
    assert counts.pending == 1
    [waiting] = await log_store.pending_vectors(WORKSPACE, 10)
    assert waiting.data == b"new"
    assert len(await log_store.list_corrections(WORKSPACE, 10, tool=SEARCH)) == 2
    with pytest.raises(StoreFencedError):
        await log_store.commit_index(IndexCommit(WORKSPACE, 1))
    assert await learn_all(log_store, "later") == {}
    assert await learned(log_store) == ["later"] * 5
    with pytest.raises(StoreError):
        await shadow.pending(WORKSPACE, 1)


async def test_what_arrives_while_a_shadow_works_comes_into_its_queues(
    log_store: LogStore,
) -> None:
    """Of every kind, also in a new workspace, and through the shadow itself."""
    await fill(log_store)
    shadow = await log_store.open_shadow()
    await learn_all(shadow, "new")
    await log_store.append(WORKSPACE, [make_execution(5)])
    await shadow.append(WORKSPACE, [make_execution(6)])
    await log_store.append("elsewhere", [make_execution(7)])
    await log_store.add_mark(make_mark(5))
    await log_store.add_correction(make_correction(5))
    await log_store.put_tool(make_tool("t-5"))
    await log_store.delete_tool(WORKSPACE, "t-1")
    await log_store.change_promotions([make_promotion_event("c")])
    await log_store.add_outcomes([SuggestionOutcome(WORKSPACE, make_id(1), make_id(5), "failure")])
    assert await queued_workspaces(shadow, [WORKSPACE, "elsewhere"]) == [WORKSPACE, "elsewhere"]
    assert await learn_all(shadow, "new", "elsewhere") == {"executions": 1}
    arrived = await learn_all(shadow, "new")
    assert arrived == {
        "executions": 2, "marks": 1, "corrections": 1, "tools": 2, "promotions": 1, "outcomes": 1,
    }  # fmt: skip
    await log_store.adopt(shadow, {})
    assert await learn_all(log_store, "new") == {}
    assert await learned(log_store, "elsewhere") == ["new"] * 5


async def test_what_a_shadow_had_not_learned_from_is_queued_after_the_switch(
    log_store: LogStore,
) -> None:
    """What it left in its queues, and what it never saw; nothing twice."""
    await fill(log_store)
    shadow = await log_store.open_shadow()
    [first, _] = await shadow.pending(WORKSPACE, 10)
    await shadow.commit_index(IndexCommit(WORKSPACE, 2, positions=[first.position]))
    await log_store.append(WORKSPACE, [make_execution(5)])
    await log_store.append("elsewhere", [make_execution(6)])
    await log_store.put_tool(make_tool("t-1", description="again"))
    await log_store.add_mark(make_mark(5))
    await log_store.adopt(shadow, {})
    assert numbers(await log_store.pending(WORKSPACE, 10)) == [1, 5]
    assert numbers(await log_store.pending("elsewhere", 10)) == [6]
    changed = await log_store.changed_tools(WORKSPACE, 10)
    assert sorted(each.tool_id for each in changed) == ["t-1", "t-2"]
    assert len(await log_store.pending_marks(WORKSPACE, 10)) == 3
    assert len(await log_store.pending_corrections(WORKSPACE, 10)) == 2
    assert (await log_store.counts()).pending == 14
    assert await learn_all(log_store, "new") == TWO_OF_EACH | {"marks": 3}
    assert await log_store.append(WORKSPACE, [make_execution(9)]) == ["accepted"]
    assert numbers(await log_store.pending(WORKSPACE, 10)) == [9]


async def test_a_vector_of_the_former_generation_is_none_of_the_next(log_store: LogStore) -> None:
    """Marks of what was read before the switch do nothing after it."""
    await fill(log_store)
    gone = IndexCommit(WORKSPACE, 1, removed=[(WORKSPACE, make_id(8))])
    await log_store.commit_index(gone)
    stale = await log_store.pending_vectors(WORKSPACE, 10)
    stale_gone = await log_store.removed_documents(WORKSPACE, 10)
    shadow = await log_store.open_shadow()
    await learn_all(shadow, "new")
    await shadow.commit_index(replace(gone, generation=2))
    await log_store.adopt(shadow, {})
    await log_store.mark_embedded(stale)
    await log_store.mark_removed(stale_gone)
    assert len(await log_store.pending_vectors(WORKSPACE, 10)) == 1


async def test_a_switch_needs_its_leases(log_store: LogStore) -> None:
    """When one is lost, nothing changes, and the next rebuild begins anew."""
    await fill(log_store)
    lost, kept = await taken(log_store), await taken(log_store, "rebuild")
    await taken(log_store, holder="host/2/b")
    shadow = await log_store.open_shadow()
    await learn_all(shadow, "new")
    with pytest.raises(StoreFencedError):
        await log_store.adopt(shadow, {"index": "new"}, [kept, lost])
    assert await log_store.generation() == 1
    assert await learned(log_store) == ["old"] * 5
    assert await log_store.get_fact("index") is None
    again = await log_store.open_shadow()
    assert await learned(again) == []
    assert await learn_all(again, "newer") == TWO_OF_EACH
    assert await log_store.adopt(again, {}, [kept]) == 2
    assert await learned(log_store) == ["newer"] * 5


async def test_what_an_earlier_shadow_left_is_thrown_away(
    open_log_store: OpenLogStore, tmp_path: Path
) -> None:
    """After its process was stopped; the store opens, and all begins anew."""
    store = await open_log_store(tmp_path / "data")
    await fill(store)
    shadow = await store.open_shadow()
    await learn_all(shadow, "left")
    await shadow.close()
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        assert await learned(store) == ["old"] * 5
        assert await store.generation() == 1
        shadow = await store.open_shadow()
        assert await learned(shadow) == []
        assert await learn_all(shadow, "new") == TWO_OF_EACH
        await store.adopt(shadow, {})
        assert await learned(store) == ["new"] * 5
    finally:
        await store.close()


async def test_rebuilds_follow_each_other(open_log_store: OpenLogStore, tmp_path: Path) -> None:
    """Each in the next generation, which is kept over reopening."""
    store = await open_log_store(tmp_path / "data")
    await fill(store)
    for generation in (2, 3, 4):
        shadow = await store.open_shadow()
        assert await learn_all(shadow, str(generation)) == TWO_OF_EACH
        assert await store.adopt(shadow, {}) == generation
        assert await learned(store) == [str(generation)] * 5
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        assert await store.generation() == 4
        assert await learned(store) == ["4"] * 5
    finally:
        await store.close()


async def test_what_expires_while_a_shadow_works_does_not_wait_for_ever(
    log_store: LogStore,
) -> None:
    """Neither in the shadow nor after the switch."""
    await log_store.append(WORKSPACE, make_executions(3))
    await learn_executions(log_store)
    shadow = await log_store.open_shadow()
    expired = await log_store.expire_executions(WORKSPACE, TOMORROW, 2)
    assert await shadow.pending(WORKSPACE, 0) == []
    await learn_executions(shadow)
    assert (await shadow.counts(WORKSPACE)).pending == 0
    await log_store.adopt(shadow, {})
    counts = await log_store.counts(WORKSPACE)
    assert (counts.executions, counts.pending) == (3 - expired, 0)


async def test_a_store_that_is_no_shadow_is_not_adopted(log_store: LogStore) -> None:
    """It stays open, and nothing changes."""
    with pytest.raises(StoreError):
        await log_store.adopt(log_store, {})
    assert await log_store.generation() == 1
