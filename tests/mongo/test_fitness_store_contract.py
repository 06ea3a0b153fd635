"""What every log store does with statistics, marks, changed tools and promotions."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mongo.protocol import LogStore
from mongo.records import (
    ChangedTool,
    DocumentRow,
    FailureRecord,
    IndexCommit,
    PromotionEvent,
    StatisticsRow,
    StoreCounts,
    ToolKey,
)
from tests.mongo.log_store_samples import (
    SEARCH,
    WORKSPACE,
    learn_anew,
    make_id,
    make_mark,
    make_promotion_event,
    make_tool,
)

NO_SERVER = ToolKey(WORKSPACE, None, "search")
ELSEWHERE = ToolKey("elsewhere", "rag-server", "search")


def unplaced(marks: list[FailureRecord]) -> list[FailureRecord]:
    """Marks as they were before they were stored."""
    return [replace(each, position=0) for each in marks]


def names(changed: list[ChangedTool]) -> list[tuple[str, str]]:
    """Which tools changed, in order."""
    return [(each.tool.workspace, each.tool_id) for each in changed]


async def pending(store: LogStore, workspace: str | None = None) -> int:
    """How much waits."""
    return (await store.counts(workspace)).pending


# Statistics


async def test_statistics_come_in_the_order_of_the_tools(log_store: LogStore) -> None:
    """Unknown tools are left out, a tool named twice comes once; other workspaces are others'."""
    rows = [StatisticsRow(SEARCH, b"\x00\xff"), StatisticsRow(NO_SERVER, b"")]
    other = StatisticsRow(ELSEWHERE, b"theirs")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, statistics=rows))
    await log_store.commit_index(IndexCommit("elsewhere", 1, statistics=[other]))
    unknown = SEARCH._replace(tool_name="unknown")
    assert await log_store.get_statistics([NO_SERVER, unknown, SEARCH, NO_SERVER]) == rows[::-1]
    assert await log_store.get_statistics([ELSEWHERE]) == [other]
    assert await log_store.get_statistics([]) == []


async def test_statistics_of_many_tools_come_in_order(log_store: LogStore) -> None:
    """Ten and more places are sorted as numbers."""
    tools = [SEARCH._replace(tool_name=f"t{number}") for number in range(300)]
    rows = [StatisticsRow(tool, tool.tool_name.encode()) for tool in tools]
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, statistics=rows))
    assert await log_store.get_statistics(tools[::-1]) == rows[::-1]


async def test_statistics_are_replaced(log_store: LogStore) -> None:
    """The latest commit counts, and a commit done twice is like one."""
    for data in (b"old", b"new", b"new"):
        row = StatisticsRow(SEARCH, data)
        await log_store.commit_index(IndexCommit(WORKSPACE, 1, statistics=[row]))
    assert await log_store.get_statistics([SEARCH]) == [StatisticsRow(SEARCH, b"new")]


# Marks


async def test_a_mark_is_kept_as_it_was(log_store: LogStore) -> None:
    """Every field comes back, from the queue and from the list alike, with a position."""
    marks = [make_mark(1), make_mark(2, tool=NO_SERVER)]
    assert [await log_store.add_mark(each) for each in marks] == [True, True]
    queued = await log_store.pending_marks(WORKSPACE, 10)
    assert unplaced(queued) == marks
    assert 0 < queued[0].position < queued[1].position
    assert await log_store.list_marks(SEARCH, 10) == queued[:1]
    assert await log_store.list_marks(NO_SERVER, 10) == queued[1:]


async def test_a_mark_is_kept_once(log_store: LogStore) -> None:
    """The first of an id counts, also among racing callers; another workspace has its own ids."""
    mark = make_mark(1)
    answers = await asyncio.gather(*(log_store.add_mark(mark) for _ in range(20)))
    assert sorted(answers) == [False] * 19 + [True]
    assert not await log_store.add_mark(make_mark(1, scenario="another"))
    assert await log_store.add_mark(make_mark(1, "elsewhere"))
    assert unplaced(await log_store.list_marks(SEARCH, 10)) == [mark]
    assert len(await log_store.pending_marks(WORKSPACE, 10)) == 1
    assert len(await log_store.pending_marks("elsewhere", 10)) == 1
    assert await pending(log_store) == 2
    assert await pending(log_store, "elsewhere") == 1


async def test_marks_come_oldest_first_from_the_queue_and_newest_first_from_the_list(
    log_store: LogStore,
) -> None:
    """By arrival, whatever the time they name; at most so many."""
    for number in (3, 1, 2):
        await log_store.add_mark(make_mark(number, "elsewhere" if number == 1 else WORKSPACE))
    queued = await log_store.pending_marks(WORKSPACE, 10)
    assert [each.mark_id for each in queued] == [make_id(number) for number in (3, 2)]
    assert await log_store.pending_marks(WORKSPACE, 1) == queued[:1]
    assert await log_store.pending_marks(WORKSPACE, 0) == []
    assert await log_store.list_marks(SEARCH, 10) == queued[::-1]
    assert await log_store.list_marks(SEARCH, 1) == queued[1:]
    theirs = await log_store.pending_marks("elsewhere", 10)
    assert [each.mark_id for each in theirs] == [make_id(1)]
    assert await log_store.list_marks(ELSEWHERE, 10) == theirs


async def test_a_mark_waits_until_it_was_learned_from(log_store: LogStore) -> None:
    """It counts as pending until a commit names it; it stays in the list, and known."""
    for number in range(4):
        await log_store.add_mark(make_mark(number))
    queued = await log_store.pending_marks(WORKSPACE, 10)
    learned = IndexCommit(WORKSPACE, 1, marks=[each.position for each in queued[:3]])
    await log_store.commit_index(learned)
    await log_store.commit_index(learned)
    assert await log_store.pending_marks(WORKSPACE, 10) == queued[3:]
    assert await pending(log_store) == 1
    assert len(await log_store.list_marks(SEARCH, 10)) == 4
    assert not await log_store.add_mark(make_mark(0))
    assert await pending(log_store) == 1


async def test_marks_of_executions_are_those_that_were_learned_from(log_store: LogStore) -> None:
    """Oldest first, in their workspace; one that waits still says nothing, nor one of no call."""
    marks = [replace(make_mark(number), execution_id=make_id(99)) for number in (1, 2, 3)]
    for mark in (*marks, make_mark(4), make_mark(5), make_mark(6, "elsewhere")):
        await log_store.add_mark(mark)
    assert await log_store.learned_marks(WORKSPACE, [make_id(99)]) == []
    queued = await log_store.pending_marks(WORKSPACE, 10)
    positions = [each.position for each in queued if each.mark_id != make_id(2)]
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, marks=positions))
    named = await log_store.learned_marks(WORKSPACE, [make_id(1005), make_id(99), make_id(99)])
    assert unplaced(named) == [marks[0], marks[2], make_mark(5)]
    assert await log_store.learned_marks("elsewhere", [make_id(99)]) == []
    assert await log_store.learned_marks(WORKSPACE, []) == []
    await learn_anew(log_store)
    assert await log_store.learned_marks(WORKSPACE, [make_id(99)]) == []


# Changed tools


async def test_a_put_and_a_deletion_are_queued(log_store: LogStore) -> None:
    """In their order, with their workspaces; a deletion of nothing is no change."""
    await log_store.put_tool(make_tool("a"))
    await log_store.put_tool(make_tool("b", tool=ELSEWHERE))
    await log_store.put_tool(make_tool("c"))
    await log_store.delete_tool("elsewhere", "b")
    assert not await log_store.delete_tool(WORKSPACE, "nothing")
    changed = await log_store.changed_tools(WORKSPACE, 10)
    assert names(changed) == [(WORKSPACE, "a"), (WORKSPACE, "c")]
    assert names(await log_store.changed_tools("elsewhere", 10)) == [("elsewhere", "b")]
    assert await log_store.changed_tools(WORKSPACE, 1) == changed[:1]
    assert await log_store.changed_tools(WORKSPACE, 0) == []
    assert await pending(log_store) == 3
    assert await pending(log_store, "elsewhere") == 1


async def test_a_put_that_replaces_is_queued_once_at_a_later_position(log_store: LogStore) -> None:
    """However often a tool is put, one change of it waits, at the end."""
    await log_store.put_tool(make_tool("a"))
    await log_store.put_tool(make_tool("b"))
    before = await log_store.changed_tools(WORKSPACE, 10)
    await log_store.put_tool(make_tool("a", description="new"))
    after = await log_store.changed_tools(WORKSPACE, 10)
    assert names(after) == [(WORKSPACE, "b"), (WORKSPACE, "a")]
    assert after[0] == before[1]
    assert after[1].position > before[1].position
    assert await pending(log_store) == 2


async def test_a_tool_that_changes_while_it_is_worked_on_stays_queued(log_store: LogStore) -> None:
    """A commit takes off the change that it read, not the one that came since."""
    await log_store.put_tool(make_tool("a"))
    await log_store.put_tool(make_tool("b"))
    read = await log_store.changed_tools(WORKSPACE, 10)
    await log_store.put_tool(make_tool("a", description="new"))
    commit = IndexCommit(WORKSPACE, 1, changed_tools=[each.position for each in read])
    await log_store.commit_index(commit)
    await log_store.commit_index(commit)
    assert names(await log_store.changed_tools(WORKSPACE, 10)) == [(WORKSPACE, "a")]
    await log_store.delete_tool(WORKSPACE, "b")
    assert names(await log_store.changed_tools(WORKSPACE, 10)) == [
        (WORKSPACE, "a"),
        (WORKSPACE, "b"),
    ]
    assert await pending(log_store) == 2


async def test_a_tool_put_under_another_name_has_changed_under_both(log_store: LogStore) -> None:
    """So that whoever keeps documents by name hears of the old name too."""
    await log_store.put_tool(make_tool("a"))
    await log_store.put_tool(make_tool("a", tool=NO_SERVER))
    changed = await log_store.changed_tools(WORKSPACE, 10)
    assert [(each.tool, each.tool_id) for each in changed] == [(SEARCH, "a"), (NO_SERVER, "a")]
    await log_store.delete_tool(WORKSPACE, "a")
    changed = await log_store.changed_tools(WORKSPACE, 10)
    assert [(each.tool, each.tool_id) for each in changed] == [(SEARCH, "a"), (NO_SERVER, "a")]
    assert await pending(log_store) == 2


async def test_tools_come_in_the_order_of_the_ids(log_store: LogStore) -> None:
    """Unknown ones are left out, one named twice comes once, other workspaces are others'."""
    tools = [make_tool(f"t-{number}") for number in range(12)]
    for each in (*tools, make_tool("elsewhere", tool=ELSEWHERE)):
        await log_store.put_tool(each)
    wanted = [*(each.tool.tool_id for each in tools[::-1]), "unknown", "elsewhere", "t-3"]
    assert await log_store.get_tools(WORKSPACE, wanted) == tools[::-1]
    assert await log_store.get_tools(WORKSPACE, []) == []


async def test_positions_of_changes_are_never_used_again(
    open_log_store: Callable[[Path], Awaitable[LogStore]], tmp_path: Path
) -> None:
    """Nor after the queue was emptied and the store reopened: a late commit harms nothing."""
    store = await open_log_store(tmp_path / "data")
    await store.put_tool(make_tool("a"))
    [first] = await store.changed_tools(WORKSPACE, 10)
    commit = IndexCommit(WORKSPACE, 1, changed_tools=[first.position])
    await store.commit_index(commit)
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        await store.put_tool(make_tool("a", description="new"))
        await store.commit_index(commit)
        [second] = await store.changed_tools(WORKSPACE, 10)
        assert second.position > first.position
    finally:
        await store.close()


# Documents that change or go


async def test_a_removed_document_is_gone_and_its_vector_is_to_go(log_store: LogStore) -> None:
    """Also from the queue of those without a vector; it waits until its vector is gone."""
    new = DocumentRow(WORKSPACE, make_id(1), b"new", is_new=True)
    old, theirs = replace(new, document_id=make_id(2)), replace(new, workspace="elsewhere")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[new, old]))
    await log_store.commit_index(IndexCommit("elsewhere", 1, documents=[theirs]))
    gone = IndexCommit(WORKSPACE, 1, removed=[(WORKSPACE, make_id(n)) for n in (1, 2, 1)])
    await log_store.commit_index(gone)
    await log_store.commit_index(gone)
    assert await log_store.get_documents(WORKSPACE, [make_id(1), make_id(2)]) == []
    assert await log_store.pending_vectors(WORKSPACE, 10) == []
    assert await log_store.pending_vectors("elsewhere", 10) == [theirs]
    assert await log_store.counts(WORKSPACE) == StoreCounts(0, 2, 0, 0)
    removed = await log_store.removed_documents(WORKSPACE, 10)
    assert [(each.workspace, each.document_id) for each in removed] == gone.removed[:2]
    assert await log_store.removed_documents(WORKSPACE, 1) == removed[:1]
    assert await log_store.removed_documents("elsewhere", 1) == []
    await log_store.mark_removed(removed[:1])
    assert await log_store.removed_documents(WORKSPACE, 10) == removed[1:]
    await log_store.mark_removed(removed)
    assert await log_store.counts(WORKSPACE) == StoreCounts(0, 0, 0, 0)


async def test_a_document_that_comes_back_keeps_its_new_vector(log_store: LogStore) -> None:
    """Made anew before the vector was removed, it waits for a vector and not for its removal."""
    new = DocumentRow(WORKSPACE, make_id(1), b"new", is_new=True)
    gone = IndexCommit(WORKSPACE, 1, removed=[(WORKSPACE, make_id(1))])
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[new]))
    await log_store.commit_index(gone)
    stale = await log_store.removed_documents(WORKSPACE, 10)
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[new]))
    assert await log_store.removed_documents(WORKSPACE, 10) == []
    assert await log_store.pending_vectors(WORKSPACE, 10) == [new]
    await log_store.commit_index(gone)
    await log_store.mark_removed(stale)
    assert len(await log_store.removed_documents(WORKSPACE, 10)) == 1


async def test_a_text_that_changes_while_it_is_embedded_is_embedded_again(
    log_store: LogStore,
) -> None:
    """Queued again since it was read, a document waits on: its old text does not count."""
    new = DocumentRow(WORKSPACE, make_id(1), b"first text", is_new=True)
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[new]))
    read = await log_store.pending_vectors(WORKSPACE, 10)
    newer = replace(new, data=b"second text")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[newer]))
    await log_store.mark_embedded(read)
    assert await log_store.pending_vectors(WORKSPACE, 10) == [newer]
    assert await pending(log_store) == 1
    await log_store.mark_embedded(await log_store.pending_vectors(WORKSPACE, 10))
    assert await pending(log_store) == 0


# Promotions


async def test_a_promotion_is_kept_as_it_was(log_store: LogStore) -> None:
    """With its quality and its time, in its workspace only; the next one replaces it."""
    first, second = make_promotion_event("search"), make_promotion_event("search", "1.2.0")
    other = make_promotion_event("search", "9.0.0", workspace="elsewhere")
    for event in (first, other):
        await log_store.change_promotions([event])
    assert await log_store.get_promotion(WORKSPACE, "search") == first.promoted
    await log_store.change_promotions([second])
    assert await log_store.get_promotion(WORKSPACE, "search") == second.promoted
    assert await log_store.get_promotion("elsewhere", "search") == other.promoted
    assert await log_store.get_promotion(WORKSPACE, "unknown") is None
    assert await log_store.promotion_history(WORKSPACE, "search", 10) == [second, first]
    assert await log_store.promotion_history(WORKSPACE, "search", 1) == [second]
    assert await log_store.promotion_history("elsewhere", "search", 10) == [other]
    assert await log_store.promotion_history(WORKSPACE, "unknown", 10) == []


async def test_promotions_are_listed_by_namespace(log_store: LogStore) -> None:
    """Those that hold; what was removed is in the history only."""
    events = [make_promotion_event(namespace) for namespace in ("b", "c", "a")]
    gone = make_promotion_event("c", is_promoted=False)
    await log_store.change_promotions([*events, gone])
    held = [events[2].promoted, events[0].promoted]
    assert await log_store.list_promotions(WORKSPACE) == held
    assert await log_store.list_promotions("elsewhere") == []
    assert await log_store.get_promotion(WORKSPACE, "c") is None
    assert await log_store.promotion_history(WORKSPACE, "c", 10) == [gone, events[1]]


async def test_promotions_change_all_or_none(log_store: LogStore) -> None:
    """When one change cannot be stored, none is, and no history says otherwise."""
    first = make_promotion_event("search")
    await log_store.change_promotions([first])
    changes = [
        make_promotion_event("search", is_promoted=False),
        make_promotion_event("lone surrogate \ud800", is_promoted=False),
    ]
    with pytest.raises(UnicodeEncodeError):
        await log_store.change_promotions(changes)
    assert await log_store.list_promotions(WORKSPACE) == [first.promoted]
    assert await log_store.promotion_history(WORKSPACE, "search", 10) == [first]
    assert len(await log_store.pending_promotions(WORKSPACE, 10)) == 1
    await log_store.change_promotions([])
    assert await pending(log_store) == 1


async def test_a_promotion_waits_for_its_document(log_store: LogStore) -> None:
    """Each that was made, oldest first, until a commit names it; a removal promotes nothing."""
    events = [
        make_promotion_event("b"),
        make_promotion_event("a", workspace="elsewhere"),
        make_promotion_event("b", is_promoted=False),
        make_promotion_event("b", "1.2.0"),
    ]
    await log_store.change_promotions(events)
    queued = await log_store.pending_promotions(WORKSPACE, 10)
    assert [each.promoted for each in queued] == [events[0].promoted, events[3].promoted]
    assert await log_store.pending_promotions(WORKSPACE, 1) == queued[:1]
    assert await log_store.pending_promotions(WORKSPACE, 0) == []
    [theirs] = await log_store.pending_promotions("elsewhere", 10)
    assert theirs.promoted == events[1].promoted
    commit = IndexCommit(WORKSPACE, 1, promotions=[queued[0].position])
    await log_store.commit_index(commit)
    await log_store.commit_index(commit)
    assert await log_store.pending_promotions(WORKSPACE, 10) == queued[1:]
    assert await pending(log_store) == 2
    assert await pending(log_store, "elsewhere") == 1


# All together


async def test_learning_anew_forgets_what_was_learned_and_queues_it_again(
    log_store: LogStore,
) -> None:
    """Marks, tools and promotions stay, in their order; statistics and removals are forgotten."""
    for number in (2, 1):
        await log_store.add_mark(make_mark(number))
    for tool_id in ("b", "a", "gone"):
        await log_store.put_tool(make_tool(tool_id))
    await log_store.delete_tool(WORKSPACE, "gone")
    events: list[PromotionEvent] = [make_promotion_event("search", v) for v in ("1.1.0", "1.2.0")]
    await log_store.change_promotions(events)
    marks, tools, promotions = (
        await log_store.pending_marks(WORKSPACE, 10),
        await log_store.changed_tools(WORKSPACE, 10),
        await log_store.pending_promotions(WORKSPACE, 10),
    )
    await log_store.commit_index(
        IndexCommit(
            WORKSPACE,
            1,
            statistics=[StatisticsRow(SEARCH, b"s")],
            marks=[each.position for each in marks],
            changed_tools=[each.position for each in tools],
            promotions=[each.position for each in promotions],
            removed=[(WORKSPACE, make_id(1))],
        )
    )
    assert await pending(log_store) == 1
    for _ in range(2):
        await learn_anew(log_store)
        assert await log_store.get_statistics([SEARCH]) == []
        assert await log_store.pending_marks(WORKSPACE, 10) == marks
        again = await log_store.changed_tools(WORKSPACE, 10)
        assert names(again) == [(WORKSPACE, "b"), (WORKSPACE, "a")]
        assert await log_store.pending_promotions(WORKSPACE, 10) == promotions
        assert await log_store.removed_documents(WORKSPACE, 10) == []
        assert await log_store.counts() == StoreCounts(0, 6, 2, 0)
    assert await log_store.get_promotion(WORKSPACE, "search") == events[1].promoted


async def test_a_commit_takes_nothing_off_a_queue_when_it_fails(log_store: LogStore) -> None:
    """Statistics are whole or not at all, with the marks, tools and promotions behind them."""
    await log_store.add_mark(make_mark(1))
    await log_store.put_tool(make_tool("a"))
    await log_store.change_promotions([make_promotion_event("search")])
    unwritable = SEARCH._replace(tool_name="\ud800")
    with pytest.raises(UnicodeEncodeError):
        await log_store.commit_index(
            IndexCommit(
                WORKSPACE,
                1,
                marks=[each.position for each in await log_store.pending_marks(WORKSPACE, 10)],
                changed_tools=[
                    each.position for each in await log_store.changed_tools(WORKSPACE, 10)
                ],
                promotions=[
                    each.position for each in await log_store.pending_promotions(WORKSPACE, 10)
                ],
                statistics=[StatisticsRow(SEARCH, b"half"), StatisticsRow(unwritable, b"")],
                documents=[DocumentRow(WORKSPACE, make_id(1), b"half")],
            )
        )
    assert await log_store.counts() == StoreCounts(0, 3, 1, 0)
    assert await log_store.get_statistics([SEARCH]) == []


async def test_all_of_it_is_there_after_reopening(
    open_log_store: Callable[[Path], Awaitable[LogStore]], tmp_path: Path
) -> None:
    """What was acknowledged is in the next store, its queues included."""
    store = await open_log_store(tmp_path / "data")
    event = make_promotion_event("search")
    later = replace(event, at=event.at + timedelta(days=1))
    await store.add_mark(make_mark(1))
    await store.put_tool(make_tool("a"))
    await store.change_promotions([event, later])
    await store.commit_index(IndexCommit(WORKSPACE, 1, statistics=[StatisticsRow(SEARCH, b"s")]))
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        assert unplaced(await store.pending_marks(WORKSPACE, 10)) == [make_mark(1)]
        assert names(await store.changed_tools(WORKSPACE, 10)) == [(WORKSPACE, "a")]
        assert await store.promotion_history(WORKSPACE, "search", 10) == [later, event]
        assert await store.get_statistics([SEARCH]) == [StatisticsRow(SEARCH, b"s")]
        assert await pending(store) == 4
    finally:
        await store.close()
