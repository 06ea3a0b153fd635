"""From executions and corrections to the health of tools: real store, no network."""

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from ingest import indexer as indexer_module
from ingest.indexer import Indexer
from mongo.errors import StoreUnavailableError
from mongo.records import CorrectionRecord, IndexCommit
from retrieval.health.record import (
    MAX_BOOK_AXES,
    MAX_BOOK_PAIRS,
    MAX_CORRECTIONS,
    MAX_LOW_UTILITY,
    MAX_METHODS,
    MAX_OWN_FAILURES,
    MAX_REFERRALS,
    MAX_ROW,
    MAX_WEAK,
    MAX_WORDED,
    axes_of_pair,
)
from retrieval.knowledge.recovery import workspace_wide
from tests.ingest.conftest import WORKSPACE, Brain
from tests.ingest.fitness_samples import (
    START,
    TOOL,
    a_call,
    a_mark,
    counted,
    id_of,
    scenarios_of,
)
from tests.ingest.health_samples import (
    a_correction,
    a_failure,
    a_referral,
    book_of,
    counts_of,
    health_of,
)


async def correct(brain: Brain, *corrections: CorrectionRecord) -> None:
    """Keep corrections and wait until they are learned from."""
    for each in corrections:
        await brain.store.add_correction(each)
    await brain.indexer.run_until_empty()


async def tied_to(brain: Brain, correction: CorrectionRecord) -> object:
    """The tool that a correction was learned into; None while it is not."""
    found = await brain.store.get_correction(WORKSPACE, correction.correction_id)
    assert found is not None
    return found.tool


async def test_every_call_is_counted_by_its_category(brain: Brain) -> None:
    """As the error was read for all other learning; the times are those of the calls."""
    await brain.learn(
        a_call(5), a_call(1), a_failure(2, "TimeoutError"), a_failure(3, "TimeoutError"),
        a_failure(4, "user_rejected"),
    )  # fmt: skip
    known = await health_of(brain.store)
    assert counts_of(known, ["successes", "failures"]) == [2, 3]
    assert {name: each.count for name, each in known.categories.items()} == {
        "timeout": 2, "user_rejected": 1,
    }  # fmt: skip
    assert (known.first_seen, known.used_at) == (a_call(1).timestamp, a_call(5).timestamp)
    assert known.troubled_at == a_call(3).timestamp
    assert [each.execution_id for each in known.own_failures] == [id_of(2), id_of(3)]
    assert known.own_failures[0].message == "broken in call 2"
    [row] = await brain.store.list_health(WORKSPACE, 10, troubled=True)
    assert (row.tool, row.used_at) == (TOOL, known.used_at)


async def test_a_referral_is_remembered_with_its_axes(brain: Brain) -> None:
    """In the tool's own words and normalised; without evidence it counts, and can be told."""
    await brain.learn(
        a_referral(1, "HTTP Transport", "extraction"),
        a_referral(2, "http-transport", evidence=None),
        a_referral(3, kind="low_utility"),
    )
    known = await health_of(brain.store)
    assert [each.axes for each in known.referrals] == [
        ["http transport", "extraction"], ["http transport"], [],
    ]  # fmt: skip
    assert known.referrals[0].spelled == ["HTTP Transport", "extraction"]
    assert [each.evidence for each in known.referrals] == [
        "the page is HTML", None, "the page is HTML",
    ]  # fmt: skip
    assert known.referrals[2].kind == "low_utility"
    assert known.own_failures == []
    book = await book_of(brain.store)
    assert {axis: seen.tally.count for axis, seen in book.axes.items()} == {
        "http transport": 2, "extraction": 1,
    }  # fmt: skip
    assert book.axes["http transport"].spelled == "http-transport"
    assert book.axes["http transport"].first_seen == a_call(1).timestamp
    [pair] = book.pairs
    assert axes_of_pair(pair) == ("extraction", "http transport")
    assert (await brain.store.list_health(WORKSPACE, 10))[0].tool == TOOL  # and not the book


async def test_who_waits_for_axes_is_told_after_the_commit(brain: Brain) -> None:
    """Once for each batch and workspace that named any, when they can be read."""
    told: list[str] = []
    brain.indexer = Indexer(
        store=brain.store, memory=brain.memory, index=brain.index, embedder=brain.embedder,
        on_axes=told.append,
    )  # fmt: skip
    await brain.learn(a_call(1), a_failure(2, "TimeoutError"), a_referral(3))
    assert told == []
    await brain.learn(a_referral(4, "transport"), a_referral(5, "extraction"))
    assert told == [WORKSPACE]
    await correct(brain, a_correction(6, 1, "parsing"))
    assert told == [WORKSPACE] * 2
    assert set((await brain.memory.axis_book(WORKSPACE)).axes) == {
        "transport", "extraction", "parsing",
    }  # fmt: skip


async def test_a_weak_success_stays_a_success(brain: Brain) -> None:
    """A success with an empty list and `success_no_parse` is recorded as it was sent."""
    call = a_call(1, result=[], result_status="success_no_parse")
    await brain.learn(call, a_call(2, result=["a film"]))
    known = await health_of(brain.store)
    assert counts_of(known, ["successes", "failures", "weak"]) == [2, 0, 1]
    why = "the tool calls it 'success_no_parse', and the result is an empty list"
    assert known.recent_weak[0].why == why
    [stored] = await brain.store.get_executions(WORKSPACE, [id_of(1)])
    assert stored.execution.outcome == "success"
    assert stored.execution.result == []
    assert stored.execution.result_status == "success_no_parse"
    assert await counted(brain.store) == (["success", "success"], 2, 0)


async def test_repairs_are_attempts_and_outcomes(brain: Brain) -> None:
    """Retries, calls that mend another, and calls that followed a suggestion."""
    await brain.learn(
        a_call(1, failed=True),
        a_call(2, attempt=2),
        a_call(3, failed=True, repair_of=id_of(1)),
        a_call(4, suggestion_id=id_of(77)),
    )
    known = await health_of(brain.store)
    assert counts_of(known, ["repair_attempts", "repair_successes"]) == [3, 2]


async def test_methods_are_counted_apart(brain: Brain) -> None:
    """With the sessions that used them, of which no more is kept than tells several apart."""
    calls = [
        a_call(number, parameters={"action": "open", "title": "x"}, session_id=f"s{number}")
        for number in range(1, 6)
    ]
    private = a_failure(9, "TimeoutError", parameters={"action": "close"}, session_id="s1")
    await brain.learn(*calls, private, a_call(10))
    known = await health_of(brain.store)
    assert known.method_parameter == "action"
    opened, closed = known.methods["open"], known.methods["close"]
    assert (opened.successes.count, len(opened.sessions)) == (5, 2)
    assert (closed.failures.count, closed.categories["timeout"].count) == (1, 1)
    assert len(closed.sessions) == 1


async def test_broken_contracts_are_tallied_by_place(brain: Brain) -> None:
    """Path, mismatch and what was expected; never what was delivered."""
    broken = {"mismatch": "min_items", "expected": 1, "actual": "somebody's data"}
    await brain.learn(
        a_failure(1, "contract_violation", details={"path": "/films/3", **broken}),
        a_failure(2, "contract_violation", details={"path": "/films/5", **broken}),
        a_failure(3, "contract_violation"),
    )
    known = await health_of(brain.store)
    [violation] = known.violations
    assert (violation.path, violation.mismatch, violation.expected) == (
        "/films/*",
        "min_items",
        "1",
    )
    assert violation.tally.count == 2
    assert len(known.own_failures) == 3
    assert "somebody" not in known.model_dump_json()


async def test_a_correction_counts_in_the_tool_that_was_corrected(brain: Brain) -> None:
    """And is tied to it; sent twice it counts once."""
    correction = a_correction(2, 1, "HTML parsing")
    await brain.learn(a_call(1))
    await correct(brain, correction, correction)
    known = await health_of(brain.store)
    assert known.corrections.count == 1
    [kept] = known.recent_corrections
    assert (kept.text, kept.axes) == (correction.text, ["html parsing"])
    assert known.troubled_at == correction.corrected_at
    assert await tied_to(brain, correction) == TOOL
    assert (await brain.memory.health([TOOL]))[TOOL].corrections.count == 1
    assert (await brain.store.counts()).pending == 0


async def test_a_correction_may_come_before_its_call(brain: Brain) -> None:
    """It waits, off the queue and untied, until the call is recorded."""
    correction = a_correction(2, 1)
    await correct(brain, correction)
    assert await tied_to(brain, correction) is None
    assert (await brain.store.counts()).pending == 0
    await brain.learn(a_call(5))
    assert (await health_of(brain.store)).corrections.count == 0
    await brain.learn(a_call(1))
    assert (await health_of(brain.store)).corrections.count == 1
    assert await tied_to(brain, correction) == TOOL
    assert await counted(brain.store) == (["low", "success"], 1, 1)


async def test_a_correction_waits_for_a_call_behind_the_batch(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is stored already, and learned from later: together with its correction, once."""
    monkeypatch.setattr(indexer_module, "BATCH", 2)
    await brain.intake.accept(WORKSPACE, [a_call(number) for number in range(1, 6)])
    correction = a_correction(9, 5)
    await brain.store.add_correction(correction)
    await brain.indexer.learn_step()
    assert await tied_to(brain, correction) is None
    await brain.indexer.run_until_empty()
    assert await tied_to(brain, correction) == TOOL
    assert (await health_of(brain.store)).corrections.count == 1
    assert await counted(brain.store) == (["success"] * 4 + ["low"], 4, 1)


async def test_corrections_of_other_workspaces_are_not_ours(brain: Brain) -> None:
    """The same execution id in another tenant's workspace is another call."""
    await brain.learn(a_call(1))
    await correct(brain, a_correction(2, 1, workspace="elsewhere"))
    assert (await health_of(brain.store)).corrections.count == 0


async def test_a_corrected_success_heals_nothing(brain: Brain) -> None:
    """It counts as a low mark of that call, in its version and scenario, once."""
    call = a_call(1, context="list the films on this page", tool_version="1.1.0")
    await brain.learn(call)
    await correct(brain, a_correction(2, 1), a_correction(3, 1))
    assert await counted(brain.store, "1.1.0") == (["low"], 0, 1)
    [scenario] = await scenarios_of(brain.store)
    assert [each.kind for each in scenario.trials] == ["low"]
    assert (scenario.count, scenario.message) == (1, "that doesn't look like a movie list")
    assert (await health_of(brain.store)).successes.count == 1  # what the tool said stays


async def test_a_mark_and_a_correction_of_one_call_are_one_failure(brain: Brain) -> None:
    """In batches of their own, long after the call."""
    await brain.learn(a_call(1))
    await correct(brain, a_correction(2, 1))
    await brain.learn(*(a_call(number) for number in range(10, 150)))
    await brain.store.add_mark(a_mark(200, of=1))
    await correct(brain, a_correction(300, 1))
    kinds, successes, failures = await counted(brain.store)
    assert (successes, failures, kinds[-1]) == (140, 1, "high")


async def test_a_refusal_is_a_referral_and_useless_answers_are_failures(brain: Brain) -> None:
    """In tool choice: the one is an honest word, the others add up."""
    await brain.learn(
        a_referral(1, "transport", context="fetch a page"),
        a_referral(2, kind="low_utility", context="fetch a page"),
    )
    assert await counted(brain.store) == (["referral", "failure"], 0, 2)
    [scenario] = await scenarios_of(brain.store)
    assert [each.kind for each in scenario.trials] == ["referral", "failure"]


async def test_a_batch_that_could_not_be_committed_is_counted_once_later(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails after all was learned: nothing is lost or doubled, nor told too early."""
    told: list[str] = []
    brain.new_indexer = partial(brain.new_indexer, on_axes=told.append)  # type: ignore[call-arg]
    await brain.restart()
    await brain.learn(a_call(1))
    await brain.intake.accept(WORKSPACE, [a_referral(2, "transport")])
    await brain.store.add_correction(a_correction(3, 1))

    async def refuse(_: IndexCommit) -> None:
        raise StoreUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(brain.store, "commit_index", refuse)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await brain.indexer.learn_step()
    assert told == []
    assert await brain.indexer.run_until_empty() == 2
    known = await health_of(brain.store)
    assert counts_of(known, ["successes", "failures", "corrections"]) == [1, 1, 1]
    assert (await book_of(brain.store)).axes["transport"].tally.count == 1
    assert told == [WORKSPACE]


async def test_one_unreadable_record_does_not_hold_up_the_others(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be counted is passed over whole; those behind it are counted."""
    from ingest import health

    original = health.weakness_of

    def breaks_on_one(execution: Any) -> str | None:
        if execution.execution_id == id_of(1):
            raise RuntimeError("no")
        return original(execution)

    monkeypatch.setattr(health, "weakness_of", breaks_on_one)
    await brain.learn(a_call(1), a_call(2, result=[]))
    known = await health_of(brain.store)
    assert counts_of(known, ["successes", "weak"]) == [1, 1]
    assert (await brain.store.counts()).pending == 0


async def test_a_restart_goes_on_from_the_store(brain: Brain) -> None:
    """A new indexer, with nothing at hand, counts on."""
    for number in range(1, 4):
        await brain.restart()
        await brain.learn(a_referral(number, "transport"))
    assert (await health_of(brain.store)).failures.count == 3
    assert (await book_of(brain.store)).axes["transport"].tally.count == 3


async def test_late_arrivals_fall_into_their_place(brain: Brain) -> None:
    """Lists keep the latest by the time of the call, whenever they arrive."""
    await brain.learn(*(a_referral(number, "a") for number in range(100, 100 + MAX_REFERRALS)))
    await brain.learn(a_referral(1, "b"), a_referral(120, "c").model_copy(
        update={"execution_id": id_of(900)}
    ))  # fmt: skip
    known = await health_of(brain.store)
    ats = [each.at for each in known.referrals]
    assert ats == sorted(ats)
    assert len(ats) == MAX_REFERRALS
    assert [each.execution_id for each in known.referrals].count(id_of(900)) == 1
    assert id_of(1) not in {each.execution_id for each in known.referrals}
    assert known.failures.count == MAX_REFERRALS + 2
    assert all(each.message for each in known.referrals[-MAX_WORDED:])
    assert not any(each.message for each in known.referrals[:-MAX_WORDED])
    assert all(each.evidence for each in known.referrals)


async def test_a_flood_of_low_utility_leaves_the_boundaries(brain: Brain) -> None:
    """Each kind of referral has its own room."""
    await brain.learn(*(a_referral(number, "a", "b") for number in range(1, 7)))
    flood = [a_failure(number, "low_utility") for number in range(100, 300)]
    await brain.learn(*flood)
    kinds = Counter(each.kind for each in (await health_of(brain.store)).referrals)
    assert kinds == {"wrong_tool_boundary": 6, "low_utility": MAX_LOW_UTILITY}


async def test_a_hostile_tool_stays_bounded(brain: Brain) -> None:
    """Long words, thousands of axes and kinds, any script; the tallies count on."""
    junk = '\U0001f600"\\\x01' * 20_000
    calls = []
    for number in range(1, 120):
        axes = [f"{junk[:40]} {number} {axis}" for axis in range(1_000)]
        fields = {"parameters": {"action": f"m{number}" + "x" * 60}}
        referral = a_referral(3 * number, *axes, evidence=junk, **fields)
        violation = {"path": f"/{number}{junk[:200]}", "mismatch": junk[:999], "expected": junk}
        calls += [
            referral,
            a_failure(3 * number + 1, "contract_violation", details=violation, **fields),
            a_call(3 * number + 2, result=[], result_status="weak", **fields),
        ]
    await brain.learn(*calls)
    await correct(
        brain, *(a_correction(n, 3, junk[:60], text=junk[:2_000]) for n in range(400, 500))
    )
    [row] = await brain.store.get_health([TOOL])
    assert len(row.data) <= MAX_ROW
    known = await health_of(brain.store)
    assert counts_of(known, ["failures", "successes", "corrections"]) == [238, 119, 100]
    for events, most in (
        (known.referrals, MAX_REFERRALS),
        (known.recent_weak, MAX_WEAK),
        (known.recent_corrections, MAX_CORRECTIONS),
        (known.own_failures, MAX_OWN_FAILURES),
        (known.methods, MAX_METHODS),
    ):
        assert 0 < len(events) <= most
    assert known.referrals[-1].at == START + timedelta(minutes=3 * 119)
    book = await book_of(brain.store)
    assert len(book.axes) <= MAX_BOOK_AXES
    assert len(book.pairs) <= MAX_BOOK_PAIRS


async def test_the_health_of_a_tool_that_works_is_tiny(brain: Brain) -> None:
    """Most tools are: a few hundred bytes, and no axes are written for them."""
    await brain.learn(*(a_call(number, result=["x"]) for number in range(1, 200)))
    [row] = await brain.store.get_health([TOOL])
    assert len(row.data) < 250
    assert await brain.store.get_health([workspace_wide(WORKSPACE)]) == []
