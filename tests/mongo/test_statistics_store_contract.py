"""What every log store keeps for statistics: what was answered, and what was mended."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from mongo.protocol import LogStore
from mongo.records import (
    AnswerCount,
    IndexCommit,
    JudgedSuggestion,
    MendedFailure,
    NewExecution,
    RepairRow,
    SuggestionOutcome,
    ToolKey,
)
from tests.mongo.conftest import OpenLogStore
from tests.mongo.log_store_samples import (
    SEARCH,
    START,
    WORKSPACE,
    learn_anew,
    make_execution,
    make_executions,
    make_id,
    make_suggestion,
)

DAY = date(2026, 2, 28)
ALWAYS = date(2000, 1, 1)


def counted(day: int, kind: str, count: int = 1) -> AnswerCount:
    return AnswerCount(DAY + timedelta(days=day), kind, count)


# Answers


async def test_answers_add_up_by_day_and_kind(log_store: LogStore) -> None:
    """Within a call and over calls, also where the same day and kind come twice in one."""
    await log_store.add_answers(WORKSPACE, [counted(0, "retry"), counted(0, "retry", 4)])
    await log_store.add_answers(WORKSPACE, [counted(0, "retry", 2), counted(0, "give_up", 3)])
    await log_store.add_answers(WORKSPACE, [])
    assert await log_store.list_answers(WORKSPACE, ALWAYS) == [
        counted(0, "give_up", 3), counted(0, "retry", 7),
    ]  # fmt: skip


async def test_answers_are_listed_from_a_day_on(log_store: LogStore) -> None:
    """By day and then kind, in whatever order and in whatever company they were added."""
    await log_store.add_answers(WORKSPACE, [counted(1, "b", 5), counted(0, "b", 6)])
    await log_store.add_answers(WORKSPACE, [counted(0, "b"), counted(-1, "c", 2)])
    await log_store.add_answers(WORKSPACE, [counted(2, "a"), counted(-1, "c"), counted(0, "a", 9)])
    rows = [
        counted(-1, "c", 3), counted(0, "a", 9), counted(0, "b", 7), counted(1, "b", 5),
        counted(2, "a"),
    ]  # fmt: skip
    for day, first in ((-1, 0), (0, 1), (1, 3), (2, 4), (3, 5)):
        assert await log_store.list_answers(WORKSPACE, counted(day, "").day) == rows[first:]


async def test_answers_stay_in_their_workspace(log_store: LogStore) -> None:
    """Also where the name of one begins like another's."""
    names = ("a", "a\x01", "a/b", "ab", "")
    for number, name in enumerate(names, start=1):
        await log_store.add_answers(name, [counted(0, "retry", number)])
    for number, name in enumerate(names, start=1):
        assert await log_store.list_answers(name, ALWAYS) == [counted(0, "retry", number)]
    assert await log_store.list_answers("b", ALWAYS) == []


async def test_a_kind_may_be_any_text(log_store: LogStore) -> None:
    """What means something to a store is text as any other; kinds that look alike differ."""
    kinds = [
        "$inc", "a", "a%2Eb", "a.b", "a.b.c", "a/b", "abstained:not_found", "b'--", "\u2603",
    ]  # fmt: skip
    rows = [counted(0, kind, count) for count, kind in enumerate(kinds, start=1)]
    await log_store.add_answers(WORKSPACE, rows)
    assert await log_store.list_answers(WORKSPACE, ALWAYS) == rows


async def test_answers_are_added_all_or_none(log_store: LogStore) -> None:
    """When one of the counts cannot be stored, none is, of whatever day."""
    await log_store.add_answers(WORKSPACE, [counted(0, "retry")])
    lone_surrogate = "\ud800"
    with pytest.raises(UnicodeEncodeError):
        await log_store.add_answers(
            WORKSPACE, [counted(0, "retry"), counted(1, "retry"), counted(0, lone_surrogate)]
        )
    assert await log_store.list_answers(WORKSPACE, ALWAYS) == [counted(0, "retry")]


async def test_answers_added_at_once_are_all_counted(log_store: LogStore) -> None:
    """Whoever counts first on a day, and over midnight too."""
    await asyncio.gather(
        *(
            log_store.add_answers(WORKSPACE, [counted(0, "retry"), counted(number % 2, "a", 2)])
            for number in range(30)
        )
    )
    assert await log_store.list_answers(WORKSPACE, ALWAYS) == [
        counted(0, "a", 30), counted(0, "retry", 30), counted(1, "a", 30),
    ]  # fmt: skip


async def test_answers_outlive_what_is_learned_and_what_expires(log_store: LogStore) -> None:
    """They belong to the log: learning anew could not make them again."""
    await log_store.append(WORKSPACE, make_executions(1))
    [stored] = await log_store.pending(WORKSPACE, 1)
    await log_store.commit_index(IndexCommit(WORKSPACE, 1, positions=[stored.position]))
    await log_store.add_answers(WORKSPACE, [counted(0, "retry")])
    shadow = await log_store.open_shadow()
    await shadow.add_answers(WORKSPACE, [counted(0, "retry")])
    assert await shadow.list_answers(WORKSPACE, ALWAYS) == [counted(0, "retry", 2)]
    await log_store.adopt(shadow, {})
    await learn_anew(log_store)
    await log_store.expire_executions(WORKSPACE, datetime.now(UTC) + timedelta(days=1), 10)
    assert await log_store.list_answers(WORKSPACE, ALWAYS) == [counted(0, "retry", 2)]


async def test_what_was_answered_is_no_work(log_store: LogStore) -> None:
    """A workspace of which nothing else is known has nothing in the log."""
    await log_store.add_answers(WORKSPACE, [counted(0, "retry")])
    assert await log_store.workspaces() == []
    assert await log_store.queued_workspaces() == []
    assert (await log_store.counts()).pending == 0


async def test_answers_are_there_after_reopening(
    open_log_store: OpenLogStore, tmp_path: Path
) -> None:
    """And counting goes on where it stopped."""
    for times in (1, 2):
        store = await open_log_store(tmp_path / "data")
        try:
            await store.add_answers(WORKSPACE, [counted(0, "retry", 2)])
            rows = [counted(0, "retry", 2 * times)]
            assert await store.list_answers(WORKSPACE, ALWAYS) == rows
        finally:
            await store.close()


# What was mended


def following(new: NewExecution, suggestion_id: str) -> NewExecution:
    """The execution as one that followed a suggestion."""
    execution = new.execution.model_copy(update={"suggestion_id": suggestion_id})
    return replace(new, execution=execution)


def mending(new: NewExecution, failed: int) -> NewExecution:
    """The execution as one that names the failure that it mends."""
    execution = new.execution.model_copy(update={"repair_of": make_id(failed)})
    return replace(new, execution=execution)


async def mend(
    store: LogStore, pairs: Sequence[tuple[int, int]], tool: ToolKey = SEARCH, generation: int = 1
) -> None:
    """Learn repairs of executions, given by their numbers."""
    rows = [RepairRow(tool, make_id(failed), make_id(mended), "s", b"") for failed, mended in pairs]
    await store.commit_index(IndexCommit(tool.workspace, generation, repairs=rows))


def moments(failed: int, mended: int, *, followed: bool = False) -> MendedFailure:
    return MendedFailure(
        START + timedelta(seconds=failed), START + timedelta(seconds=mended), followed
    )


async def test_mended_failures_come_latest_first_whatever_their_tool(log_store: LogStore) -> None:
    """By the order in which the repairs were learned, not by the times; at most so many."""
    await log_store.append(WORKSPACE, make_executions(9))
    await mend(log_store, [(5, 6)])
    await mend(log_store, [(1, 4), (2, 4)], ToolKey(WORKSPACE, None, "other"))
    await mend(log_store, [(3, 8)])
    latest = [moments(3, 8), moments(2, 4), moments(1, 4), moments(5, 6)]
    assert await log_store.latest_mended(WORKSPACE, 10) == latest
    assert await log_store.latest_mended(WORKSPACE, 2) == latest[:2]
    assert await log_store.latest_mended(WORKSPACE, 0) == []


async def test_a_success_that_followed_a_suggestion_says_so(log_store: LogStore) -> None:
    """By what the success itself named: neither what the failure did, nor what its values say."""
    misleading = make_execution(3, parameters={"suggestionId": make_id(7), "x": '"suggestionId":"'})
    await log_store.append(
        WORKSPACE,
        [
            following(make_execution(0), make_id(7)), make_execution(1),
            following(make_execution(2, parameters={"suggestionId": None}), make_id(7)), misleading,
        ],
    )  # fmt: skip
    await mend(log_store, [(0, 1), (0, 2), (1, 3)])
    assert await log_store.latest_mended(WORKSPACE, 10) == [
        moments(1, 3), moments(0, 2, followed=True), moments(0, 1),
    ]  # fmt: skip


async def test_a_repair_counts_only_while_both_executions_are_there(log_store: LogStore) -> None:
    """It still counts for the limit, which bounds the work; another workspace's are others."""
    await log_store.append(WORKSPACE, make_executions(2))
    await log_store.append("elsewhere", make_executions(4))
    await mend(log_store, [(0, 1), (0, 2), (3, 1)])
    assert await log_store.latest_mended(WORKSPACE, 10) == [moments(0, 1)]
    assert await log_store.latest_mended(WORKSPACE, 2) == []
    assert await log_store.latest_mended("elsewhere", 10) == []


async def test_mended_failures_are_those_of_the_generation(log_store: LogStore) -> None:
    """A shadow knows its own, which hold after the switch."""
    await log_store.append(WORKSPACE, make_executions(3))
    await mend(log_store, [(0, 1)])
    shadow = await log_store.open_shadow()
    assert await shadow.latest_mended(WORKSPACE, 10) == []
    await mend(shadow, [(0, 2)], generation=2)
    assert await shadow.latest_mended(WORKSPACE, 10) == [moments(0, 2)]
    assert await log_store.latest_mended(WORKSPACE, 10) == [moments(0, 1)]
    await log_store.adopt(shadow, {})
    assert await log_store.latest_mended(WORKSPACE, 10) == [moments(0, 2)]


async def test_successes_of_suggestions_mend_what_they_name(log_store: LogStore) -> None:
    """Latest outcomes first, whoever said them; neither failures nor what names nothing."""
    await log_store.append(
        WORKSPACE,
        [
            make_execution(0), make_execution(1),
            mending(make_execution(2), 0), mending(make_execution(3), 1),
            mending(make_execution(4), 0), mending(make_execution(6), 9),
            make_execution(5, parameters={"repairOf": make_id(0), "x": '"repairOf":"'}),
        ],
    )  # fmt: skip
    said = [
        SuggestionOutcome(WORKSPACE, make_id(7), make_id(number), "success")
        for number in (3, 2, 5, 6, 8)
    ]
    await log_store.add_outcomes(
        [*said, SuggestionOutcome(WORKSPACE, make_id(7), make_id(4), "failure")]
    )
    latest = [moments(0, 2, followed=True), moments(1, 3, followed=True)]
    assert await log_store.latest_followed(WORKSPACE, 10) == latest
    assert await log_store.latest_followed(WORKSPACE, 5) == latest[:1]
    assert await log_store.latest_followed(WORKSPACE, 0) == []
    assert await log_store.latest_followed("elsewhere", 10) == []


async def test_a_success_of_several_suggestions_mends_once(log_store: LogStore) -> None:
    """Whoever reports it for each of those it followed."""
    await log_store.append(WORKSPACE, [make_execution(0), mending(make_execution(2), 0)])
    await log_store.add_outcomes(
        [
            SuggestionOutcome(WORKSPACE, make_id(number), make_id(2), "success")
            for number in (7, 8, 9)
        ]
    )
    assert await log_store.latest_followed(WORKSPACE, 10) == [moments(0, 2, followed=True)]


# What was promised


async def test_a_judged_suggestion_has_the_confidence_that_was_told(log_store: LogStore) -> None:
    """Beside the estimate, and both to their last digit."""
    told = {1: (0.30000000000000004, 0.1), 2: (0.1, 1 / 3), 3: (1.0, 0.0), 4: (0.0, 1.0)}
    for number, (estimate, confidence) in told.items():
        issued = make_suggestion(number, estimate=estimate)
        suggestion = issued.suggestion.model_copy(update={"confidence": confidence})
        await log_store.save_suggestions([replace(issued, suggestion=suggestion)])
        await log_store.add_outcomes(
            [SuggestionOutcome(WORKSPACE, make_id(number), make_id(10), "success")]
        )
    assert await log_store.judged_suggestions(WORKSPACE, 10) == [
        JudgedSuggestion(estimate, "success", None, confidence)
        for estimate, confidence in reversed(told.values())
    ]


async def test_no_agent_fills_what_is_known_of_suggestions(log_store: LogStore) -> None:
    """Of one that says much more than others, the latest 50 are taken, also over many pages."""
    await log_store.save_suggestions([make_suggestion(1)])
    await log_store.append(WORKSPACE, [make_execution(number, agent="ada") for number in range(3)])
    await log_store.add_outcomes([_said(number) for number in range(3)])
    loud = [make_execution(number, agent="eve") for number in range(100, 2_300)]
    await log_store.append(WORKSPACE, loud)
    await log_store.add_outcomes([_said(number) for number in range(100, 2_300)])
    for limit, of_one in ((100, 50), (1_000, 100)):
        judged = await log_store.judged_suggestions(WORKSPACE, limit)
        assert [each.agent for each in judged] == [*["eve"] * of_one, *["ada"] * 3]


def _said(execution: int) -> SuggestionOutcome:
    return SuggestionOutcome(WORKSPACE, make_id(1), make_id(execution), "success")
