"""What every log store does, whatever it is made of."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aftercall.models import Outcome
from mongo.errors import StoreUnavailableError
from mongo.protocol import LogStore
from mongo.records import (
    DocumentRow,
    IndexCommit,
    JudgedSuggestion,
    KnowledgeRow,
    RepairRow,
    StoreCounts,
    SuggestionOutcome,
    ToolKey,
)
from tests.mongo.log_store_samples import (
    SCHEMA,
    SCHEMA_HASH,
    SEARCH,
    WORKSPACE,
    learn_anew,
    make_execution,
    make_executions,
    make_id,
    make_suggestion,
    make_tool,
)

NO_SERVER = ToolKey(WORKSPACE, None, "search")
ELSEWHERE = ToolKey("elsewhere", "rag-server", "search")


async def test_what_is_appended_is_found_as_it_was(log_store: LogStore) -> None:
    """An appended execution comes back equal, with the moment of its arrival."""
    new = make_execution(1)
    before = datetime.now(UTC)
    assert await log_store.append(WORKSPACE, [new]) == ["accepted"]
    assert await log_store.get_execution(WORKSPACE, make_id(1)) == new.execution
    (stored,) = await log_store.get_executions(WORKSPACE, [make_id(1)])
    assert stored.execution == new.execution
    assert stored.tool_key == SEARCH
    assert before - timedelta(seconds=1) <= stored.received_at <= datetime.now(UTC)


async def test_appending_again_is_a_duplicate(log_store: LogStore) -> None:
    """The same id with the same content is told from new ones and stored once."""
    await log_store.append(WORKSPACE, make_executions(3))
    verdicts = await log_store.append(WORKSPACE, make_executions(3, first=2))
    assert verdicts == ["duplicate", "accepted", "accepted"]
    assert (await log_store.counts()).executions == 5


async def test_other_content_under_a_taken_id_is_a_conflict(log_store: LogStore) -> None:
    """A conflict changes nothing and does not touch its neighbours."""
    first = make_execution(1)
    await log_store.append(WORKSPACE, [first])
    other = make_execution(1, parameters={"topK": 99}, schema=SCHEMA)
    verdicts = await log_store.append(WORKSPACE, [make_execution(2), other, make_execution(3)])
    assert verdicts == ["accepted", "conflict", "accepted"]
    assert await log_store.get_execution(WORKSPACE, make_id(1)) == first.execution
    assert await log_store.get_schema(WORKSPACE, SCHEMA_HASH) is None


async def test_one_id_twice_in_a_call_is_like_two_calls(log_store: LogStore) -> None:
    """The first of them is stored; the second is a duplicate or a conflict."""
    new, other = make_execution(1), make_execution(1, parameters={"topK": 99})
    assert await log_store.append(WORKSPACE, [new, new, other]) == [
        "accepted",
        "duplicate",
        "conflict",
    ]
    assert await log_store.counts() == StoreCounts(executions=1, pending=1, tools=0, documents=0)


async def test_callers_racing_for_one_id_agree_on_one(log_store: LogStore) -> None:
    """Of many concurrent appends of one execution exactly one is accepted."""
    new = make_execution(1)
    verdicts = await asyncio.gather(*(log_store.append(WORKSPACE, [new]) for _ in range(50)))
    assert sorted(verdict for (verdict,) in verdicts) == ["accepted"] + ["duplicate"] * 49


async def test_concurrent_appends_are_all_kept(log_store: LogStore) -> None:
    """Each concurrent caller gets the verdicts of its own executions, and all are stored."""
    batches = [make_executions(size, first=100 * size) for size in range(1, 30)]
    verdicts = await asyncio.gather(*(log_store.append(WORKSPACE, batch) for batch in batches))
    assert verdicts == [["accepted"] * len(batch) for batch in batches]
    stored = await log_store.pending(WORKSPACE, 1000)
    assert {each.execution.execution_id for each in stored} == {
        new.execution.execution_id for batch in batches for new in batch
    }
    assert len({each.position for each in stored}) == sum(map(len, batches))


async def test_workspaces_do_not_see_each_other(log_store: LogStore) -> None:
    """The same ids and names live side by side in two workspaces."""
    mine, theirs = make_execution(1), make_execution(1, parameters={"topK": 2})
    assert await log_store.append(WORKSPACE, [mine]) == ["accepted"]
    assert await log_store.append("elsewhere", [theirs]) == ["accepted"]
    await log_store.put_tool(make_tool("t-1", schema=True))
    await log_store.commit_index(
        IndexCommit(
            WORKSPACE,
            1,
            knowledge=[KnowledgeRow(SEARCH, b"mine")],
            documents=[DocumentRow(WORKSPACE, make_id(7), b"mine")],
            repairs=[RepairRow(SEARCH, make_id(1), make_id(2), "signature", b"mine")],
        )
    )
    await log_store.save_suggestions([make_suggestion(1)])
    assert await log_store.get_execution("elsewhere", make_id(1)) == theirs.execution
    (other,) = await log_store.session_calls([(ELSEWHERE, "s-1")], 10)
    assert other.execution == theirs.execution
    assert await log_store.get_knowledge(ELSEWHERE) is None
    assert await log_store.get_documents("elsewhere", [make_id(7)]) == []
    assert await log_store.list_repairs(ELSEWHERE, 10) == []
    assert await log_store.list_tools("elsewhere") == []
    assert await log_store.get_tool("elsewhere", "t-1") is None
    assert await log_store.find_tool(ELSEWHERE) is None
    assert not await log_store.delete_tool("elsewhere", "t-1")
    assert await log_store.get_schema("elsewhere", SCHEMA_HASH) is None
    assert await log_store.get_suggestion("elsewhere", make_id(1)) is None


async def test_an_input_schema_is_put_back(log_store: LogStore) -> None:
    """Stored once under its hash, it returns with the single execution, not with many."""
    batch = [make_execution(number, schema=SCHEMA) for number in range(3)]
    await log_store.append(WORKSPACE, batch)
    execution = await log_store.get_execution(WORKSPACE, make_id(1))
    assert execution is not None
    assert execution.input_schema == SCHEMA
    assert execution == batch[1].execution.model_copy(update={"input_schema": SCHEMA})
    (stored,) = await log_store.get_executions(WORKSPACE, [make_id(1)])
    assert stored.schema_hash == SCHEMA_HASH
    assert stored.execution.input_schema is None
    assert await log_store.get_schema(WORKSPACE, SCHEMA_HASH) == SCHEMA


async def test_executions_come_in_the_order_of_the_ids(log_store: LogStore) -> None:
    """Unknown ids are left out."""
    await log_store.append(WORKSPACE, make_executions(5))
    wanted = [make_id(number) for number in (3, 99, 0, 4)]
    found = await log_store.get_executions(WORKSPACE, wanted)
    assert [each.execution.sequence for each in found] == [3, 0, 4]
    assert await log_store.get_execution(WORKSPACE, make_id(99)) is None


async def test_session_calls_are_the_latest_of_one_tool_in_one_session(log_store: LogStore) -> None:
    """Oldest arrival first; other tools, servers, sessions and none at all stay out."""
    await log_store.append(WORKSPACE, make_executions(5))
    await log_store.append(
        WORKSPACE,
        [
            make_execution(10, tool=SEARCH._replace(tool_name="other")),
            make_execution(11, tool=NO_SERVER),
            make_execution(12, session_id="s-2"),
            make_execution(13, session_id=None),
        ],
    )
    calls = await log_store.session_calls([(SEARCH, "s-1")], 3)
    assert [call.execution.sequence for call in calls] == [2, 3, 4]
    earlier = await log_store.session_calls([(SEARCH, "s-1")], 2, before=calls[-1].position)
    assert [call.execution.sequence for call in earlier] == [2, 3]
    (unserved,) = await log_store.session_calls([(NO_SERVER, "s-1")], 10)
    assert unserved.execution.sequence == 11
    assert unserved.tool_key == NO_SERVER
    assert await log_store.session_calls([(SEARCH, "s-1")], 0) == []
    both = await log_store.session_calls([(SEARCH, "s-1"), (NO_SERVER, "s-1")] * 2, 10)
    assert [each.position for each in both] == sorted({each.position for each in both})
    assert {each.tool_key for each in both} == {SEARCH, NO_SERVER}


async def test_only_what_was_learned_from_is_asked_for(log_store: LogStore) -> None:
    """Calls that wait in the queue stay out, wherever they are; by id, and by session."""
    await log_store.append(WORKSPACE, make_executions(4))
    waiting = await log_store.pending(WORKSPACE, 10)
    await log_store.commit_index(
        IndexCommit(WORKSPACE, generation=1, positions=[waiting[1].position, waiting[3].position])
    )
    ids = [make_id(number) for number in range(4)]
    found = await log_store.get_executions(WORKSPACE, ids, learned=True)
    assert [each.execution.sequence for each in found] == [1, 3]
    calls = await log_store.session_calls([(SEARCH, "s-1")], 10, learned=True)
    assert [each.execution.sequence for each in calls] == [1, 3]
    [latest] = await log_store.session_calls([(SEARCH, "s-1")], 1, learned=True)
    assert latest.execution.sequence == 3
    [earlier] = await log_store.session_calls(
        [(SEARCH, "s-1")], 10, waiting[3].position, learned=True
    )
    assert earlier.execution.sequence == 1


async def test_pending_is_oldest_first_in_its_workspace(log_store: LogStore) -> None:
    """Arrival orders the queue, not the client's clock, and positions grow with it."""
    await log_store.append("b", [make_execution(2)])
    await log_store.append("a", [make_execution(1)])
    await log_store.append("b", [make_execution(0)])
    queued = await log_store.pending("b", 10)
    assert [(each.workspace, each.execution.sequence) for each in queued] == [("b", 2), ("b", 0)]
    assert 0 < queued[0].position < queued[1].position
    assert await log_store.pending("b", 1) == queued[:1]
    assert await log_store.pending("b", 0) == []
    [other] = await log_store.pending("a", 10)
    assert (other.workspace, other.execution.sequence) == ("a", 1)
    assert await log_store.pending("nobody", 10) == []


async def test_what_a_commit_learned_is_kept_and_its_executions_leave_the_queue(
    log_store: LogStore,
) -> None:
    """Knowledge, documents and repairs are there; the rest of the queue is untouched."""
    await log_store.append(WORKSPACE, make_executions(5))
    queued = await log_store.pending(WORKSPACE, 10)
    learned = IndexCommit(
        WORKSPACE,
        1,
        positions=[each.position for each in queued[:2]],
        knowledge=[KnowledgeRow(SEARCH, b"\x00\xff"), KnowledgeRow(NO_SERVER, b"")],
        documents=[DocumentRow(WORKSPACE, make_id(number), bytes([number])) for number in (7, 8)],
        repairs=[RepairRow(SEARCH, make_id(0), make_id(1), "signature", b"\x00r")],
    )
    await log_store.commit_index(learned)
    assert await log_store.pending(WORKSPACE, 10) == queued[2:]
    assert await log_store.get_knowledge(SEARCH) == learned.knowledge[0]
    assert await log_store.get_knowledge(NO_SERVER) == learned.knowledge[1]
    wanted = [make_id(8), make_id(9), make_id(7)]
    assert await log_store.get_documents(WORKSPACE, wanted) == learned.documents[::-1]
    assert await log_store.list_repairs(SEARCH, 10) == learned.repairs
    assert await log_store.counts() == StoreCounts(executions=5, pending=3, tools=0, documents=2)


async def test_a_commit_replaces_what_was_known(log_store: LogStore) -> None:
    """Knowledge by tool, documents by id, repairs by pair; a commit done twice counts once."""
    await log_store.append(WORKSPACE, make_executions(2))
    positions = [each.position for each in await log_store.pending(WORKSPACE, 10)]
    first = IndexCommit(
        WORKSPACE,
        1,
        positions=positions[:1],
        knowledge=[KnowledgeRow(SEARCH, b"old")],
        documents=[DocumentRow(WORKSPACE, make_id(7), b"old")],
        repairs=[RepairRow(SEARCH, make_id(0), make_id(1), "old", b"old")],
    )
    second = IndexCommit(
        WORKSPACE,
        1,
        positions=positions[:1],
        knowledge=[KnowledgeRow(SEARCH, b"new")],
        documents=[DocumentRow(WORKSPACE, make_id(7), b"new")],
        repairs=[RepairRow(SEARCH, make_id(0), make_id(1), "new", b"new")],
    )
    await log_store.commit_index(first)
    await log_store.commit_index(second)
    await log_store.commit_index(second)
    assert await log_store.get_knowledge(SEARCH) == second.knowledge[0]
    assert await log_store.get_documents(WORKSPACE, [make_id(7)]) == second.documents
    assert await log_store.list_repairs(SEARCH, 10) == second.repairs
    assert await log_store.counts() == StoreCounts(executions=2, pending=1, tools=0, documents=1)


async def test_a_commit_is_applied_whole_or_not_at_all(log_store: LogStore) -> None:
    """When one of its rows cannot be stored, none is, and its executions stay pending."""
    await log_store.append(WORKSPACE, make_executions(1))
    (queued,) = await log_store.pending(WORKSPACE, 10)
    lone_surrogate = "\ud800"
    with pytest.raises(UnicodeEncodeError):
        await log_store.commit_index(
            IndexCommit(
                WORKSPACE,
                1,
                positions=[queued.position],
                knowledge=[KnowledgeRow(SEARCH, b"half")],
                repairs=[RepairRow(SEARCH, make_id(0), make_id(1), lone_surrogate, b"")],
            )
        )
    assert await log_store.pending(WORKSPACE, 10) == [queued]
    assert await log_store.get_knowledge(SEARCH) is None
    assert (await log_store.counts()).pending == 1


async def test_repairs_come_newest_first(log_store: LogStore) -> None:
    """The latest ones within the limit, of one tool."""
    repairs = [
        RepairRow(SEARCH, make_id(number), make_id(number + 1), f"signature {number}", b"")
        for number in range(4)
    ]
    other = RepairRow(NO_SERVER, make_id(50), make_id(51), "other", b"")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, repairs=repairs[:2]))
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, repairs=[*repairs[2:], other]))
    assert await log_store.list_repairs(SEARCH, 3) == repairs[:0:-1]
    assert await log_store.list_repairs(NO_SERVER, 3) == [other]


async def test_learning_anew_forgets_what_was_learned_and_queues_everything(
    log_store: LogStore,
) -> None:
    """Executions, tools, suggestions and facts stay; order and positions are as before."""
    await log_store.append(WORKSPACE, make_executions(3))
    await log_store.append("elsewhere", make_executions(2))
    queued = {each: await log_store.pending(each, 10) for each in (WORKSPACE, "elsewhere")}
    await log_store.put_tool(make_tool("t-1"))
    await log_store.put_fact("model", "m")
    await log_store.save_suggestions([make_suggestion(1)])
    await log_store.commit_index(
        IndexCommit(
            WORKSPACE,
            1,
            positions=[each.position for each in queued[WORKSPACE][1:]],
            knowledge=[KnowledgeRow(SEARCH, b"k")],
            documents=[DocumentRow(WORKSPACE, make_id(7), b"d")],
            repairs=[RepairRow(SEARCH, make_id(0), make_id(1), "s", b"r")],
        )
    )
    assert await learn_anew(log_store) == 2
    for workspace, before in queued.items():
        assert await log_store.pending(workspace, 10) == before
    assert await log_store.get_knowledge(SEARCH) is None
    assert await log_store.get_documents(WORKSPACE, [make_id(7)]) == []
    assert await log_store.list_repairs(SEARCH, 10) == []
    assert await log_store.get_tool(WORKSPACE, "t-1") == make_tool("t-1")
    assert await log_store.get_fact("model") == "m"
    assert await log_store.get_suggestion(WORKSPACE, make_id(1)) == make_suggestion(1)
    assert await log_store.counts() == StoreCounts(executions=5, pending=6, tools=1, documents=0)


async def test_counts_are_of_one_workspace_or_of_all(log_store: LogStore) -> None:
    """A registered tool is pending too; an unknown workspace has nothing, like an empty store."""
    nothing = StoreCounts(executions=0, pending=0, tools=0, documents=0)
    assert await log_store.counts() == nothing
    await log_store.append(WORKSPACE, make_executions(3))
    await log_store.append("elsewhere", make_executions(2))
    await log_store.put_tool(make_tool("t-1"))
    assert await log_store.counts(WORKSPACE) == StoreCounts(3, 4, 1, 0)
    assert await log_store.counts("elsewhere") == StoreCounts(2, 2, 0, 0)
    assert await log_store.counts() == StoreCounts(5, 6, 1, 0)
    assert await log_store.counts("nobody") == nothing


async def test_a_tool_is_replaced_by_its_id(log_store: LogStore) -> None:
    """The latest put counts, once; its input schema is found by hash."""
    await log_store.put_tool(make_tool("t-1", description="old"))
    newer = make_tool("t-1", description="new", schema=True)
    await log_store.put_tool(newer)
    assert await log_store.get_tool(WORKSPACE, "t-1") == newer
    assert await log_store.list_tools(WORKSPACE) == [newer]
    assert await log_store.get_schema(WORKSPACE, SCHEMA_HASH) == SCHEMA
    assert (await log_store.counts()).tools == 1


async def test_of_tools_of_one_name_the_latest_put_is_found(log_store: LogStore) -> None:
    """Also when the latest put replaced an older id; a tool without a server is another tool."""
    first, second = make_tool("t-1"), make_tool("t-2")
    unserved = make_tool("t-3", tool=NO_SERVER)
    for tool in (first, second, unserved):
        await log_store.put_tool(tool)
    assert await log_store.find_tool(SEARCH) == second
    await log_store.put_tool(first)
    assert await log_store.find_tool(SEARCH) == first
    assert await log_store.find_tool(NO_SERVER) == unserved
    assert await log_store.find_tool(SEARCH._replace(tool_name="unknown")) is None


async def test_tools_are_listed_by_id_and_can_be_deleted(log_store: LogStore) -> None:
    """Deleting says whether there was one."""
    for tool_id in ("b", "c", "a"):
        await log_store.put_tool(make_tool(tool_id))
    assert [each.tool.tool_id for each in await log_store.list_tools(WORKSPACE)] == ["a", "b", "c"]
    assert await log_store.delete_tool(WORKSPACE, "b")
    assert not await log_store.delete_tool(WORKSPACE, "b")
    assert await log_store.get_tool(WORKSPACE, "b") is None
    assert (await log_store.counts()).tools == 2


async def test_a_suggestion_is_kept_as_it_was_answered(log_store: LogStore) -> None:
    """All its fields come back; saving the same id again changes nothing."""
    issued = make_suggestion(1)
    await log_store.save_suggestions([issued, make_suggestion(2)])
    await log_store.save_suggestions([make_suggestion(1, lesson="another"), make_suggestion(3)])
    assert await log_store.get_suggestion(WORKSPACE, make_id(1)) == issued
    assert await log_store.get_suggestion(WORKSPACE, make_id(3)) == make_suggestion(3)
    assert await log_store.get_suggestion(WORKSPACE, make_id(9)) is None


async def test_an_outcome_is_kept_once_per_suggestion_and_execution(log_store: LogStore) -> None:
    """The first word counts; another execution may report on the same suggestion."""
    outcome = SuggestionOutcome(WORKSPACE, make_id(1), make_id(10), "success")
    other = replace(outcome, execution_id=make_id(11))
    theirs = replace(outcome, workspace="elsewhere")
    assert await log_store.add_outcomes([outcome, outcome]) == 1
    assert await log_store.add_outcomes([replace(outcome, outcome="failure")]) == 0
    assert await log_store.add_outcomes([other, theirs]) == 2
    assert await log_store.pending_outcomes(WORKSPACE, 10) == [outcome, other]
    assert await log_store.pending_outcomes("elsewhere", 10) == [theirs]


async def test_an_outcome_waits_until_it_was_learned_from(log_store: LogStore) -> None:
    """It counts as pending until a commit names it, and again where all is learned anew."""
    outcomes = [
        SuggestionOutcome(WORKSPACE, make_id(1), make_id(number), "success")
        for number in range(10, 18)
    ]
    await log_store.add_outcomes(outcomes)
    assert (await log_store.counts()).pending == 8
    learned = IndexCommit(WORKSPACE, 1, outcomes=outcomes[:3])
    await log_store.commit_index(learned)
    await log_store.commit_index(learned)
    assert await log_store.pending_outcomes(WORKSPACE, 10) == outcomes[3:]
    assert await log_store.pending_outcomes(WORKSPACE, 2) == outcomes[3:5]
    assert (await log_store.counts()).pending == 5
    await learn_anew(log_store)
    assert await log_store.pending_outcomes(WORKSPACE, 10) == outcomes


async def test_a_suggestion_may_have_no_estimate(log_store: LogStore) -> None:
    """Not every action is calibrated; None is told from 0."""
    await log_store.save_suggestions(
        [make_suggestion(1, estimate=None), make_suggestion(2, estimate=0.0)]
    )
    none, zero = [await log_store.get_suggestion(WORKSPACE, make_id(n)) for n in (1, 2)]
    assert none is not None
    assert zero is not None
    assert (none.estimate, zero.estimate) == (None, 0.0)


async def test_judged_suggestions_come_latest_first(log_store: LogStore) -> None:
    """By the order in which outcomes were said, whatever they are about; at most so many."""
    numbers = [3, 1, 2]
    await log_store.save_suggestions([make_suggestion(n, estimate=n / 10) for n in numbers])
    for number in numbers:
        await log_store.add_outcomes([_said(number, 10)])
    await log_store.add_outcomes([_said(3, 11, "failure")])
    judged = await log_store.judged_suggestions(WORKSPACE, 10)
    assert [(each.estimate, each.outcome) for each in judged] == [
        (0.3, "failure"), (0.2, "success"), (0.1, "success"), (0.3, "success"),
    ]  # fmt: skip
    assert await log_store.judged_suggestions(WORKSPACE, 2) == judged[:2]
    assert await log_store.judged_suggestions(WORKSPACE, 0) == []


async def test_the_judge_is_the_agent_of_the_execution(log_store: LogStore) -> None:
    """None where the execution is not known, or is another workspace's."""
    await log_store.save_suggestions([make_suggestion(1)])
    await log_store.append(WORKSPACE, [make_execution(10, agent="ada")])
    await log_store.append("elsewhere", [make_execution(11, agent="eve")])
    await log_store.add_outcomes([_said(1, number) for number in (10, 11, 12)])
    judged = await log_store.judged_suggestions(WORKSPACE, 10)
    assert [each.agent for each in judged] == [None, None, "ada"]
    await log_store.append(WORKSPACE, [make_execution(12, agent="bob")])
    [latest, *_] = await log_store.judged_suggestions(WORKSPACE, 1)
    assert latest == JudgedSuggestion(0.875, "success", "bob", 0.9)


async def test_only_what_has_an_estimate_is_judged(log_store: LogStore) -> None:
    """Neither advice without one, nor what was never suggested; and the limit counts the others."""
    await log_store.save_suggestions([make_suggestion(1), make_suggestion(2, estimate=None)])
    await log_store.add_outcomes([_said(number, 10) for number in (1, 2, 9)])
    assert len(await log_store.judged_suggestions(WORKSPACE, 1)) == 1
    assert len(await log_store.judged_suggestions(WORKSPACE, 10)) == 1


async def test_judged_suggestions_stay_in_their_workspace(log_store: LogStore) -> None:
    """Even where the suggestion's id is the same; learning from an outcome leaves it judged."""
    there = [make_suggestion(1, estimate=0.25, workspace=each) for each in ("b", "a")]
    await log_store.save_suggestions([make_suggestion(1), *there])
    outcomes = [replace(_said(1, 10), workspace=each) for each in ("b", "a", "b")]
    outcomes[2] = replace(outcomes[2], execution_id=make_id(11), outcome="failure")
    assert await log_store.workspaces_with_outcomes() == []
    await log_store.add_outcomes(outcomes)
    for workspace in ("a", "b"):
        said = [each for each in outcomes if each.workspace == workspace]
        await log_store.commit_index(IndexCommit(workspace, 1, outcomes=said))
    assert await log_store.workspaces_with_outcomes() == ["a", "b"]
    assert await log_store.judged_suggestions(WORKSPACE, 10) == []
    assert [each.outcome for each in await log_store.judged_suggestions("b", 10)] == [
        "failure", "success",
    ]  # fmt: skip
    await learn_anew(log_store)
    assert await log_store.workspaces_with_outcomes() == ["a", "b"]


def _said(number: int, execution: int, outcome: Outcome = "success") -> SuggestionOutcome:
    """What an execution said of a suggestion."""
    return SuggestionOutcome(WORKSPACE, make_id(number), make_id(execution), outcome)


async def test_a_fact_is_the_last_that_was_put(log_store: LogStore) -> None:
    """An unknown fact is None."""
    assert await log_store.get_fact("model") is None
    await log_store.put_fact("model", "first")
    await log_store.put_fact("model", "second")
    assert await log_store.get_fact("model") == "second"


async def test_nothing_in_is_nothing_out(log_store: LogStore) -> None:
    """Empty lists are no errors."""
    assert await log_store.append(WORKSPACE, []) == []
    assert await log_store.get_executions(WORKSPACE, []) == []
    assert await log_store.get_documents(WORKSPACE, []) == []
    await log_store.save_suggestions([])
    await log_store.commit_index(IndexCommit(WORKSPACE, 1))
    assert (await log_store.counts()).executions == 0


async def test_everything_is_there_after_reopening(
    open_log_store: Callable[[Path], Awaitable[LogStore]], tmp_path: Path
) -> None:
    """A closed store gives its content, its queue and its positions to the next one."""
    store = await open_log_store(tmp_path / "data")
    await store.append(WORKSPACE, make_executions(3))
    await store.put_fact("model", "m")
    queued = await store.pending(WORKSPACE, 10)
    await store.commit_index(IndexCommit(WORKSPACE, 1, positions=[queued[0].position]))
    await store.close()
    store = await open_log_store(tmp_path / "data")
    try:
        assert await store.pending(WORKSPACE, 10) == queued[1:]
        assert await store.get_fact("model") == "m"
        assert await store.append(WORKSPACE, make_executions(4)) == [
            *["duplicate"] * 3,
            "accepted",
        ]
        latest = (await store.pending(WORKSPACE, 10))[-1]
        assert latest.position > queued[-1].position
    finally:
        await store.close()


async def test_a_closed_store_says_so(log_store: LogStore) -> None:
    """After close, reads and writes are refused; closing twice or at once does nothing."""
    await asyncio.gather(log_store.close(), log_store.close())
    await log_store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await log_store.append(WORKSPACE, make_executions(1))
    with pytest.raises(StoreUnavailableError, match="closed"):
        await log_store.counts()


async def test_closing_finishes_what_was_accepted(
    open_log_store: Callable[[Path], Awaitable[LogStore]], tmp_path: Path
) -> None:
    """A call under way when the store closes is either durable or refused, never lost."""
    store = await open_log_store(tmp_path / "data")
    calls = [
        asyncio.create_task(store.append(WORKSPACE, [make_execution(number)]))
        for number in range(50)
    ]
    await asyncio.sleep(0)  # lets every call begin
    await store.close()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    accepted = {make_id(number) for number in range(50) if answers[number] == ["accepted"]}
    assert accepted
    refused = [answer for answer in answers if answer != ["accepted"]]
    assert all(isinstance(answer, StoreUnavailableError) for answer in refused)
    store = await open_log_store(tmp_path / "data")
    try:
        kept = {each.execution.execution_id for each in await store.pending(WORKSPACE, 100)}
        assert kept == accepted
    finally:
        await store.close()


async def test_a_cancelled_caller_does_not_disturb_others(log_store: LogStore) -> None:
    """Cancelling some of many appends leaves the others durable and the store working."""
    calls = [
        asyncio.create_task(log_store.append(WORKSPACE, [make_execution(number)]))
        for number in range(40)
    ]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[1::2] == [["accepted"]] * 20
    survivors = [make_id(number) for number in range(1, 40, 2)]
    assert len(await log_store.get_executions(WORKSPACE, survivors)) == 20
    assert await log_store.append(WORKSPACE, [make_execution(99)]) == ["accepted"]


async def test_a_new_document_waits_for_its_vector(log_store: LogStore) -> None:
    """It counts as pending until it is marked; a changed one that has its vector does not."""
    new = DocumentRow(WORKSPACE, make_id(1), b"new", is_new=True)
    known = DocumentRow(WORKSPACE, make_id(2), b"known")
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, documents=[new, known]))
    await log_store.commit_index(
        IndexCommit(WORKSPACE, 1, documents=[replace(new, data=b"newer", is_new=False)])
    )
    assert await log_store.pending_vectors(WORKSPACE, 10) == [replace(new, data=b"newer")]
    assert (await log_store.counts()).pending == 1
    await log_store.mark_embedded(await log_store.pending_vectors(WORKSPACE, 10))
    assert await log_store.pending_vectors(WORKSPACE, 10) == []
    assert (await log_store.counts()).pending == 0
