"""What every log store does with health, corrections and recommendations that were taken up."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mongo.protocol import LogStore
from mongo.records import (
    CorrectionRecord,
    HealthRow,
    IndexCommit,
    NewExecution,
    StoreCounts,
    StoredRecommendation,
    ToolKey,
)
from tests.mongo.log_store_samples import (
    SEARCH,
    START,
    WORKSPACE,
    learn_anew,
    make_correction,
    make_execution,
    make_id,
)

NO_SERVER = ToolKey(WORKSPACE, None, "search")
ELSEWHERE = ToolKey("elsewhere", "rag-server", "search")
WHOLE = ToolKey(WORKSPACE, None, "")


def make_health(tool: ToolKey, used: int, troubled: int | None = None) -> HealthRow:
    """Health as of so many seconds."""
    return HealthRow(
        tool,
        b"\x00\xff",
        START + timedelta(seconds=used),
        None if troubled is None else START + timedelta(seconds=troubled, microseconds=7),
    )


def make_recommendation(
    number: int, workspace: str = WORKSPACE, *, at: int = 0
) -> StoredRecommendation:
    """One that was dismissed, with a reason."""
    return StoredRecommendation(
        workspace,
        make_id(number),
        "dismissed",
        START + timedelta(seconds=at, microseconds=7),
        b"\x00\xff",
        reason="it is meant to be so \u2603",
        changed_by="maker",
    )


def unplaced(corrections: list[CorrectionRecord]) -> list[CorrectionRecord]:
    """Corrections as they were before they were stored."""
    return [replace(each, position=0) for each in corrections]


def at(seconds: float, number: int, *, sequence: int | None = None) -> NewExecution:
    """An execution of that time and sequence, under the id of `number`."""
    new = make_execution(number)
    moment = START + timedelta(seconds=seconds)
    execution = new.execution.model_copy(update={"timestamp": moment, "sequence": sequence})
    return replace(new, execution=execution)


async def pending(store: LogStore, workspace: str | None = None) -> int:
    """How much waits."""
    return (await store.counts(workspace)).pending


async def latest_id(store: LogStore, session_id: str = "s-1", **narrowed: str) -> str | None:
    """Which call was a session's latest."""
    found = await store.latest_call(WORKSPACE, session_id, **narrowed)
    return None if found is None else found.execution.execution_id


# The latest call of a session


async def test_the_latest_call_is_the_latest_by_its_own_time(log_store: LogStore) -> None:
    """Then by its sequence, then by arrival: batches may arrive in any order."""
    await log_store.append(WORKSPACE, [at(9, 1), at(3, 2)])
    assert await latest_id(log_store) == make_id(1)
    await log_store.append(WORKSPACE, [at(9, 3, sequence=12), at(9, 4, sequence=9), at(9, 5)])
    assert await latest_id(log_store) == make_id(3)
    await log_store.append(WORKSPACE, [at(9, 6, sequence=12)])
    assert await latest_id(log_store) == make_id(6)
    [stored] = await log_store.get_executions(WORKSPACE, [make_id(6)])
    assert await log_store.latest_call(WORKSPACE, "s-1") == stored


async def test_the_latest_call_is_narrowed_by_server_and_tool(log_store: LogStore) -> None:
    """Each alone or both; a session or a workspace of others has its own calls."""
    tools = [
        SEARCH, NO_SERVER, SEARCH._replace(tool_name="open"), SEARCH._replace(server_name="web"),
        ToolKey(WORKSPACE, "web", "open"), ToolKey(WORKSPACE, "web", "browse"),
    ]  # fmt: skip
    calls = [make_execution(number, tool=tool) for number, tool in enumerate(tools, start=1)]
    await log_store.append(WORKSPACE, [*calls, make_execution(7, session_id="s-2")])
    await log_store.append("elsewhere", [make_execution(8)])
    await log_store.append(WORKSPACE, [make_execution(9, session_id=None)])
    for narrowed, number in (
        ({}, 6),
        ({"server_name": "rag-server"}, 3),
        ({"server_name": "web"}, 6),
        ({"tool_name": "search"}, 4),
        ({"tool_name": "open"}, 5),
        ({"tool_name": "open", "server_name": "rag-server"}, 3),
    ):
        assert await latest_id(log_store, **narrowed) == make_id(number), narrowed
    assert await latest_id(log_store, "s-2") == make_id(7)
    assert await latest_id(log_store, "s-2", tool_name="open") is None
    assert await latest_id(log_store, tool_name="browse", server_name="rag-server") is None
    assert await latest_id(log_store, "s-3") is None


async def test_the_latest_call_of_a_long_session_is_found(log_store: LogStore) -> None:
    """Whatever the number of its calls and tools, also of a tool that was called long ago."""
    tools = [SEARCH._replace(tool_name=f"t{number % 30}") for number in range(600)]
    calls = [make_execution(number, tool=tool) for number, tool in enumerate(tools)]
    await log_store.append(WORKSPACE, [make_execution(700), *calls])
    assert await latest_id(log_store) == make_id(599)
    assert await latest_id(log_store, tool_name="t7") == make_id(577)
    assert await latest_id(log_store, tool_name="search") == make_id(700)


# Health


async def test_health_comes_in_the_order_of_the_tools(log_store: LogStore) -> None:
    """Unknown tools are left out, a tool named twice comes once; other workspaces are others'."""
    tools = [SEARCH._replace(tool_name=f"t{number}") for number in range(300)]
    rows = [
        make_health(tool, number, number if number % 2 else None)
        for number, tool in enumerate(tools)
    ]
    other, whole = make_health(ELSEWHERE, 1), make_health(WHOLE, 2)
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, health=[*rows, whole]))
    await log_store.commit_index(IndexCommit("elsewhere", 1, health=[other]))
    unknown = SEARCH._replace(tool_name="unknown")
    assert await log_store.get_health([*tools[::-1], unknown, tools[3]]) == rows[::-1]
    assert await log_store.get_health([ELSEWHERE, WHOLE]) == [other, whole]
    assert await log_store.get_health([]) == []


async def test_health_is_replaced(log_store: LogStore) -> None:
    """With its moments; the latest commit counts, and a commit done twice is like one."""
    latest = make_health(SEARCH, 3)
    for row in (make_health(SEARCH, 1, 2), latest, latest):
        await log_store.commit_index(IndexCommit(WORKSPACE, 1, health=[row]))
    assert await log_store.get_health([SEARCH]) == [latest]
    assert await log_store.list_health(WORKSPACE, 10, troubled=True) == []


async def test_tools_are_listed_by_their_latest_use_or_trouble(log_store: LogStore) -> None:
    """The latest first, at most so many; what concerns a whole workspace is no tool."""
    first = make_health(SEARCH, 1, 9)
    second = make_health(NO_SERVER, 2)
    third = make_health(SEARCH._replace(tool_name="open"), 3, 5)
    rows = [first, second, third, make_health(WHOLE, 4, 4)]
    assert await log_store.workspaces_with_health() == []
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, health=rows))
    theirs = make_health(ELSEWHERE, 5, 5)
    await log_store.commit_index(IndexCommit("elsewhere", 1, health=[theirs]))
    assert await log_store.list_health(WORKSPACE, 10) == [third, second, first]
    assert await log_store.list_health(WORKSPACE, 2) == [third, second]
    assert await log_store.list_health(WORKSPACE, 0) == []
    assert await log_store.list_health(WORKSPACE, 10, troubled=True) == [first, third]
    assert await log_store.list_health(WORKSPACE, 1, troubled=True) == [first]
    assert await log_store.tools_with_health(WORKSPACE, 2) == [third.tool, second.tool]
    assert await log_store.workspaces_with_health() == [WORKSPACE, "elsewhere"]


async def test_many_rows_come_in_the_order_asked_for(log_store: LogStore) -> None:
    """However the store divides the reading."""
    rows = [
        make_health(SEARCH._replace(tool_name=f"tool-{number % 7}-{number}"), number, 500 - number)
        for number in range(150)
    ]
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, health=rows))
    assert await log_store.get_health([row.tool for row in rows]) == rows
    assert await log_store.list_health(WORKSPACE, 200) == rows[::-1]
    assert await log_store.list_health(WORKSPACE, 140, troubled=True) == rows[:140]


# Corrections


async def test_a_correction_is_kept_as_it_was(log_store: LogStore) -> None:
    """Every field comes back, from the queue, by its id and from the list alike."""
    corrections = [make_correction(1), make_correction(2)]
    assert [await log_store.add_correction(each) for each in corrections] == [True, True]
    queued = await log_store.pending_corrections(WORKSPACE, 10)
    assert unplaced(queued) == corrections
    assert 0 < queued[0].position < queued[1].position
    assert await log_store.get_correction(WORKSPACE, make_id(1)) == queued[0]
    assert await log_store.get_correction("elsewhere", make_id(1)) is None
    assert await log_store.list_corrections(WORKSPACE, 10) == queued[::-1]


async def test_a_correction_is_kept_once(log_store: LogStore) -> None:
    """The first of an id counts, also among racing callers; another workspace has its own ids."""
    first = make_correction(1)
    answers = await asyncio.gather(*(log_store.add_correction(first) for _ in range(20)))
    assert sorted(answers) == [False] * 19 + [True]
    assert not await log_store.add_correction(make_correction(1, text="another"))
    assert await log_store.add_correction(make_correction(1, "elsewhere"))
    assert unplaced(await log_store.list_corrections(WORKSPACE, 10)) == [first]
    assert await pending(log_store) == 2
    assert await pending(log_store, "elsewhere") == 1


async def test_corrections_come_oldest_first_from_the_queue_and_newest_first_from_the_list(
    log_store: LogStore,
) -> None:
    """By arrival, whatever the time they name; at most so many."""
    for number in (3, 1, 2):
        workspace = "elsewhere" if number == 1 else WORKSPACE
        await log_store.add_correction(make_correction(number, workspace))
    queued = await log_store.pending_corrections(WORKSPACE, 10)
    assert [each.correction_id for each in queued] == [make_id(number) for number in (3, 2)]
    assert await log_store.pending_corrections(WORKSPACE, 1) == queued[:1]
    assert await log_store.pending_corrections(WORKSPACE, 0) == []
    assert await log_store.list_corrections(WORKSPACE, 10) == queued[::-1]
    assert await log_store.list_corrections(WORKSPACE, 1) == queued[1:]
    theirs = await log_store.pending_corrections("elsewhere", 10)
    assert [each.correction_id for each in theirs] == [make_id(1)]
    assert await log_store.list_corrections("elsewhere", 10) == theirs


async def test_a_correction_is_tied_to_its_tool_by_a_commit(log_store: LogStore) -> None:
    """At once, or when its execution has come; until then it is untied, and found by its id."""
    for number in (1, 2, 3):
        await log_store.add_correction(make_correction(number))
    one, two, three = await log_store.pending_corrections(WORKSPACE, 10)
    executions = [each.execution_id for each in (three, two, one)]
    assert await log_store.untied_corrections(WORKSPACE, executions) == []
    looked_at = IndexCommit(
        WORKSPACE, 1, corrections=[(one.position, SEARCH), (two.position, None)]
    )
    for _ in range(2):
        await log_store.commit_index(looked_at)
        assert await log_store.pending_corrections(WORKSPACE, 10) == [three]
        assert await pending(log_store) == 1
        assert await log_store.untied_corrections(WORKSPACE, executions) == [two]
    assert await log_store.untied_corrections("elsewhere", executions) == []
    assert await log_store.untied_corrections(WORKSPACE, []) == []
    tied = replace(one, tool=SEARCH)
    assert await log_store.list_corrections(WORKSPACE, 10, tool=SEARCH) == [tied]
    later = IndexCommit(WORKSPACE, 1, corrections=[(two.position, NO_SERVER)])
    await log_store.commit_index(later)
    assert await log_store.untied_corrections(WORKSPACE, executions) == []
    also = replace(two, tool=NO_SERVER)
    assert await log_store.list_corrections(WORKSPACE, 10, tool=NO_SERVER) == [also]
    assert await log_store.list_corrections(WORKSPACE, 10) == [three, also, tied]
    assert await log_store.get_correction(WORKSPACE, two.correction_id) == also
    assert not await log_store.add_correction(make_correction(2))


async def test_several_corrections_of_one_execution_are_tied_in_their_order(
    log_store: LogStore,
) -> None:
    """None stands for another; an execution that is asked for twice comes once."""
    corrections = [replace(make_correction(n), execution_id=make_id(99)) for n in (2, 1, 3)]
    for each in corrections:
        await log_store.add_correction(each)
    queued = await log_store.pending_corrections(WORKSPACE, 10)
    await log_store.commit_index(
        IndexCommit(WORKSPACE, 1, corrections=[(each.position, None) for each in queued])
    )
    found = await log_store.untied_corrections(WORKSPACE, [make_id(99), make_id(5), make_id(99)])
    assert unplaced(found) == corrections


# Recommendations


async def test_what_was_done_about_a_recommendation_is_replaced(log_store: LogStore) -> None:
    """Field by field; the latest touched come first, other workspaces are others'."""
    for each in (make_recommendation(1, at=1), make_recommendation(2, at=2)):
        await log_store.put_recommendation(each)
    await log_store.put_recommendation(make_recommendation(1, "elsewhere"))
    again = replace(
        make_recommendation(1, at=3), state="taken", data=b"", reason=None, changed_by=None
    )
    await log_store.put_recommendation(again)
    assert await log_store.list_recommendations(WORKSPACE) == [again, make_recommendation(2, at=2)]
    assert await log_store.list_recommendations("elsewhere") == [
        make_recommendation(1, "elsewhere")
    ]
    assert await pending(log_store) == 0


# All together


async def test_learning_anew_forgets_health_and_unties_corrections(log_store: LogStore) -> None:
    """They wait again, in their order; what people did and the store's facts stay."""
    for number in (2, 1, 3):
        await log_store.add_correction(make_correction(number))
    queued = await log_store.pending_corrections(WORKSPACE, 10)
    done = make_recommendation(1)
    await log_store.put_recommendation(done)
    await log_store.put_fact("axes:default", "names")
    await log_store.commit_index(
        IndexCommit(
            WORKSPACE,
            1,
            health=[make_health(SEARCH, 1, 1), make_health(WHOLE, 1)],
            corrections=[(queued[0].position, SEARCH), (queued[1].position, None)],
        )
    )
    for _ in range(2):
        await learn_anew(log_store)
        assert await log_store.get_health([SEARCH, WHOLE]) == []
        assert await log_store.workspaces_with_health() == []
        assert await log_store.pending_corrections(WORKSPACE, 10) == queued
        assert await log_store.list_corrections(WORKSPACE, 10, tool=SEARCH) == []
        assert await log_store.counts() == StoreCounts(0, 3, 0, 0)
        assert await log_store.list_recommendations(WORKSPACE) == [done]
        assert await log_store.get_fact("axes:default") == "names"


async def test_a_commit_that_fails_ties_nothing(log_store: LogStore) -> None:
    """Health is whole or not at all, with the corrections behind it."""
    await log_store.add_correction(make_correction(1))
    queued = await log_store.pending_corrections(WORKSPACE, 10)
    unwritable = SEARCH._replace(tool_name="\ud800")
    with pytest.raises(UnicodeEncodeError):
        await log_store.commit_index(
            IndexCommit(
                WORKSPACE,
                1,
                corrections=[(queued[0].position, SEARCH)],
                health=[make_health(SEARCH, 1), make_health(unwritable, 1)],
            )
        )
    assert await log_store.pending_corrections(WORKSPACE, 10) == queued
    assert await log_store.list_corrections(WORKSPACE, 10) == queued
    assert await log_store.get_health([SEARCH]) == []


async def test_all_of_it_is_there_after_reopening(
    open_log_store: Callable[[Path], Awaitable[LogStore]], tmp_path: Path
) -> None:
    """What was acknowledged is in the next store, its queue included."""
    store = await open_log_store(tmp_path / "data")
    await store.add_correction(make_correction(1))
    await store.put_recommendation(make_recommendation(1))
    await store.commit_index(IndexCommit(WORKSPACE, 1, health=[make_health(SEARCH, 1, 2)]))
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        assert unplaced(await store.pending_corrections(WORKSPACE, 10)) == [make_correction(1)]
        assert await store.list_recommendations(WORKSPACE) == [make_recommendation(1)]
        assert await store.get_health([SEARCH]) == [make_health(SEARCH, 1, 2)]
        assert await pending(store) == 1
    finally:
        await store.close()
