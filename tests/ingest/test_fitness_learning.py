"""From executions and marks to how tools fare: real store, real index, no network."""

from itertools import permutations

import pytest

from ingest.scenarios import normalised, scenario_id
from mongo.errors import StoreUnavailableError
from mongo.records import FailureRecord, IndexCommit
from retrieval.fitness.statistics import MAX_NEGATIVE_TAGS, MAX_SCENARIOS, MAX_TRIALS
from tests.ingest.conftest import WORKSPACE, Brain
from tests.ingest.fitness_samples import (
    TOOL,
    a_call,
    a_mark,
    counted,
    id_of,
    scenarios_of,
    statistics_of,
    worded,
)

ELSEWHERE = TOOL._replace(workspace="elsewhere")


async def mark(brain: Brain, *marks: FailureRecord) -> None:
    """Mark failures and wait until they are learned from."""
    for each in marks:
        await brain.store.add_mark(each)
    await brain.indexer.run_until_empty()


async def test_every_execution_is_a_trial_of_its_version(brain: Brain) -> None:
    """Nobody needs to mark a failure; without a version it counts under none."""
    await brain.learn(
        a_call(1), a_call(2, failed=True), a_call(3, tool_version="1.1.0"),
        a_call(4, failed=True, tool_version="1.1.0"), a_call(5, tool_version="1.1.0"),
    )  # fmt: skip
    assert await counted(brain.store) == (["success", "failure"], 1, 1)
    assert await counted(brain.store, "1.1.0") == (["success", "failure", "success"], 2, 1)


async def test_trials_fall_into_their_place(brain: Brain) -> None:
    """A late arrival is counted at the time of its call."""
    await brain.learn(a_call(5), a_call(1, failed=True))
    await brain.learn(a_call(3, failed=True))
    assert await counted(brain.store) == (["failure", "failure", "success"], 1, 2)


async def test_a_mark_is_a_trial_of_its_severity(brain: Brain) -> None:
    """Under its version, with its tags; one that names no call is a call of its own."""
    await mark(
        brain,
        a_mark(1, severity="low"),
        a_mark(2, severity="high", version="1.1.0", tags=["not-for-code"]),
        a_mark(3, severity="medium", of=99),
    )
    assert await counted(brain.store) == (["low", "medium"], 0, 2)
    assert await counted(brain.store, "1.1.0") == (["high"], 0, 1)
    known = await statistics_of(brain.store)
    assert list(known.negative_tags) == ["not-for-code"]
    assert (await brain.store.counts()).pending == 0


@pytest.mark.parametrize("order", list(permutations("ehl")), ids="".join)
@pytest.mark.parametrize("failed", [True, False], ids=["failed", "succeeded"])
@pytest.mark.parametrize("together", [True, False], ids=["one batch", "batches"])
@pytest.mark.parametrize("recorded", [None, "1.0.0", "1.1.0"])
async def test_a_call_and_the_marks_that_name_it_count_once(
    brain: Brain, order: str, failed: bool, together: bool, recorded: str | None
) -> None:
    """In any order: one failure, of the graver kind, under the version that the marks name."""
    marks = {
        "h": a_mark(2, of=1, severity="high", version="1.1.0"),
        "l": a_mark(3, of=1, severity="low", version="1.1.0"),
    }
    for each in order:
        if each == "e":
            call = a_call(1, failed=failed, tool_version=recorded, context="translate it")
            await brain.intake.accept(WORKSPACE, [call])
        else:
            await brain.store.add_mark(marks[each])
        if not together:
            await brain.indexer.run_until_empty()
    await brain.indexer.run_until_empty()
    before = await statistics_of(brain.store)
    assert await counted(brain.store, "1.1.0") == (["high"], 0, 1)
    assert set(before.versions) == {"1.1.0"}
    await brain.rebuild()
    assert await statistics_of(brain.store) == before


async def test_a_call_of_long_ago_is_still_counted_once(brain: Brain) -> None:
    """A mark may name a call, or come before one, that the trials no longer go back to."""
    await brain.learn(a_call(1), a_call(2, failed=True))
    await mark(brain, a_mark(3, of=999_000))
    await brain.learn(*(a_call(number) for number in range(10, 10 + 2 * MAX_TRIALS)))
    await mark(brain, a_mark(500, of=1), a_mark(501, of=2))
    await brain.learn(a_call(4).model_copy(update={"execution_id": id_of(999_000)}))
    kinds, successes, failures = await counted(brain.store)
    assert (successes, failures) == (2 * MAX_TRIALS, 3)
    assert kinds == ["success"] * (MAX_TRIALS - 2) + ["high"] * 2


async def test_a_mark_of_another_tools_call_is_its_own(brain: Brain) -> None:
    """It is about the tool that it names, and takes nothing from the other."""
    other = TOOL._replace(tool_name="other")
    await brain.learn(a_call(1, tool=other))
    await mark(brain, a_mark(2, of=1))
    assert await counted(brain.store, tool=other) == (["success"], 1, 0)
    assert await counted(brain.store) == (["high"], 0, 1)


async def test_a_context_becomes_a_scenario(brain: Brain) -> None:
    """Calls of like wording meet in one document, embedded once, with all their trials."""
    await brain.learn(
        a_call(1, context="Translate 3  pages", agent="ada"),
        a_call(2, context="translate 12 PAGES\n", agent="bob", failed=True),
        a_call(3, context="summarise a page", agent="bob"),
        a_call(4, context=" \t"),
        a_call(5),
    )
    embedded = await brain.index.count()
    summarised, translated = await scenarios_of(brain.store)
    assert summarised.text == "summarise a page"
    assert translated.text == "Translate 3  pages"
    assert [each.kind for each in translated.trials] == ["success", "failure"]
    assert (translated.kind, translated.count, translated.version) == ("scenario", 2, "")
    assert translated.message == "broken in call 2"
    assert translated.agents == ["ada", "bob"]
    assert translated.execution_ids == [id_of(1), id_of(2)]
    assert translated.document_id == scenario_id(TOOL, "", "TRANSLATE 7 PAGES")
    await brain.learn(a_call(6, context="translate 5 pages", failed=True))
    assert await brain.index.count() == embedded
    *_, translated = await scenarios_of(brain.store)
    assert (translated.count, translated.message) == (3, "broken in call 6")


async def test_a_mark_and_its_call_are_one_trial_of_a_scenario(brain: Brain) -> None:
    """When the mark's scenario is worded like the call's context."""
    await brain.learn(a_call(1, context="Translate code comments", failed=True))
    await mark(brain, a_mark(2, of=1))
    [scenario] = await scenarios_of(brain.store)
    assert [each.kind for each in scenario.trials] == ["high"]
    assert (scenario.count, scenario.message) == (1, "marked in 2")


async def test_scenarios_are_of_a_version(brain: Brain) -> None:
    """The same wording under another version is another document."""
    await brain.learn(a_call(1, context="x y"), a_call(2, context="x y", tool_version="1.1.0"))
    assert sorted(each.version for each in await scenarios_of(brain.store)) == ["", "1.1.0"]


async def test_an_earlier_error_does_not_hide_the_latest(brain: Brain) -> None:
    """By the time of the calls, not of their arrival."""
    await brain.learn(a_call(5, context="x", failed=True))
    await brain.learn(a_call(1, context="x", failed=True), a_call(9, context="x"))
    [scenario] = await scenarios_of(brain.store)
    assert scenario.message == "broken in call 5"
    assert scenario.last_seen == a_call(9).timestamp


async def test_a_full_table_makes_room_for_failures_only(brain: Brain) -> None:
    """The least recent scenario goes, with its document and its vector; all stay bounded."""
    await brain.learn(*(a_call(n, context=worded(n)) for n in range(1, MAX_SCENARIOS + 1)))
    before = await brain.index.count()
    await brain.learn(a_call(100, context=worded(100)))
    assert await brain.index.count() == before
    failure = a_call(101, context=worded(101), failed=True)
    await brain.learn(failure)
    texts = {each.text for each in await scenarios_of(brain.store)}
    assert len(texts) == MAX_SCENARIOS
    assert worded(101) in texts
    assert worded(1) not in texts
    assert await brain.store.get_documents(WORKSPACE, [scenario_id(TOOL, "", worded(1))]) == []
    assert await brain.index.count() == before + 1  # the reading of the failure
    assert (await brain.store.counts()).pending == 0


async def test_a_flood_of_failures_leaves_the_latest(brain: Brain) -> None:
    """Far more scenarios than there is room, in one batch; a latecomer does not oust them."""
    await brain.learn(*(a_call(n, context=worded(n), failed=True) for n in range(10, 500)))
    await brain.learn(a_call(1, context=worded(1), failed=True))
    texts = {each.text for each in await scenarios_of(brain.store)}
    assert texts == {worded(n) for n in range(500 - MAX_SCENARIOS, 500)}
    counts = await brain.store.counts()
    assert counts.pending == 0
    assert await brain.index.count() == counts.documents


async def test_an_evicted_scenario_that_comes_back_is_embedded_again(brain: Brain) -> None:
    """Also when it goes and comes back within one batch."""
    full = [a_call(n, context=worded(n), failed=True) for n in range(1, MAX_SCENARIOS + 1)]
    await brain.learn(*full)
    await brain.learn(
        a_call(100, context=worded(100), failed=True), a_call(101, context=worded(1), failed=True)
    )
    assert worded(1) in {each.text for each in await scenarios_of(brain.store)}
    counts = await brain.store.counts()
    assert counts.pending == 0
    assert await brain.index.count() == counts.documents


async def test_negative_tags_are_bounded(brain: Brain) -> None:
    """The ones that were given last stay."""
    tags = [f"not-for-{number}" for number in range(3 * MAX_NEGATIVE_TAGS)]
    await mark(brain, *(a_mark(n, tags=[tag]) for n, tag in enumerate(tags, start=1)))
    known = await statistics_of(brain.store)
    assert sorted(known.negative_tags) == sorted(tags[-MAX_NEGATIVE_TAGS:])


async def test_workspaces_fare_apart(brain: Brain) -> None:
    """The same ids, names and words in another tenant's workspace count there only."""
    await brain.learn(a_call(1, context="x", failed=True))
    await brain.intake.accept("elsewhere", [a_call(1, context="x")])
    await mark(brain, a_mark(2, of=1, tool=ELSEWHERE, scenario="x"))
    assert await counted(brain.store) == (["failure"], 0, 1)
    assert await counted(brain.store, tool=ELSEWHERE) == (["high"], 0, 1)
    [here], [there] = await scenarios_of(brain.store), await scenarios_of(brain.store, ELSEWHERE)
    assert here.document_id != there.document_id
    assert [each.kind for each in here.trials] == ["failure"]
    assert [each.kind for each in there.trials] == ["high"]


async def test_sending_everything_twice_counts_once(brain: Brain) -> None:
    """Duplicates are told apart by id."""
    for _ in range(2):
        await brain.learn(a_call(1, context="x"), a_call(2, failed=True))
        await mark(brain, a_mark(3))
    assert await counted(brain.store) == (["success", "failure", "high"], 1, 2)


async def test_a_batch_that_could_not_be_committed_is_counted_once_later(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails after all was learned: no trial is lost or doubled, nor a scenario."""
    await brain.learn(a_call(1, context="x"))
    await brain.intake.accept(WORKSPACE, [a_call(2, context="x"), a_call(3, failed=True)])
    await brain.store.add_mark(a_mark(4, scenario="x", of=2))

    async def refuse(_: IndexCommit) -> None:
        raise StoreUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(brain.store, "commit_index", refuse)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await brain.indexer.learn_step()
    assert await brain.indexer.run_until_empty() == 3
    assert await counted(brain.store) == (["success", "failure", "high"], 1, 2)
    [scenario] = await scenarios_of(brain.store)
    assert (scenario.count, len(scenario.trials)) == (2, 2)


async def test_a_rebuild_counts_the_same_again(brain: Brain) -> None:
    """Statistics and scenarios come from the log alone, whatever the batches were."""
    for number in range(1, 60):
        context = worded(number % 7) if number % 3 else None
        version = "1.1.0" if number % 5 == 0 else None
        call = a_call(number, failed=number % 4 == 0, context=context, tool_version=version)
        await brain.intake.accept(WORKSPACE, [call])
        if number % 6 == 0:
            of = number + 5 if number % 12 == 0 else number - 2
            await brain.store.add_mark(
                a_mark(number, of=of, scenario=worded(20 + number % 4), tags=[f"not-{number % 3}"])
            )
        if number % 11 == 0:
            await brain.indexer.run_until_empty()
    await brain.indexer.run_until_empty()
    statistics, scenarios = await statistics_of(brain.store), await scenarios_of(brain.store)
    total = sum(each.successes + each.failures for each in statistics.versions.values())
    assert total == 59
    await brain.rebuild()
    assert await statistics_of(brain.store) == statistics
    assert await scenarios_of(brain.store) == scenarios


async def test_a_restart_goes_on_from_the_store(brain: Brain) -> None:
    """A new indexer, with nothing at hand, counts on."""
    for number in range(1, 6):
        await brain.restart()
        await brain.learn(a_call(number, context="x"))
    assert await counted(brain.store) == (["success"] * 5, 5, 0)
    [scenario] = await scenarios_of(brain.store)
    assert (scenario.count, len(scenario.trials)) == (5, 5)


async def test_the_answers_hear_of_what_was_learned(brain: Brain) -> None:
    """What the memory keeps of statistics and scenarios is read anew after each batch."""
    unknown = TOOL._replace(tool_name="unknown")
    assert await brain.memory.statistics([TOOL, unknown]) == {}
    await brain.learn(a_call(1, context="x"))
    assert list(await brain.memory.statistics([unknown, TOOL])) == [TOOL]
    identity = scenario_id(TOOL, "", "x")
    assert (await brain.memory.documents(WORKSPACE, [identity]))[identity].count == 1
    await brain.learn(a_call(2, context="x"))
    assert (await brain.memory.statistics([TOOL]))[TOOL].versions[""].successes == 2
    assert (await brain.memory.documents(WORKSPACE, [identity]))[identity].count == 2
    await brain.learn(
        *(a_call(n, context=worded(n), failed=True) for n in range(3, 3 + MAX_SCENARIOS))
    )
    assert await brain.memory.documents(WORKSPACE, [identity]) == {}


async def test_one_unreadable_record_does_not_hold_up_the_others(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be counted is passed over; those behind it are counted."""
    from ingest import fitness

    original = fitness.trial_of

    def breaks_on_one(at: object, call_id: str, kind: object) -> object:
        if call_id in (id_of(1), id_of(1_000_001)):
            raise RuntimeError("no")
        return original(at, call_id, kind)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(fitness, "trial_of", breaks_on_one)
    for each in (a_mark(1), a_mark(2)):
        await brain.store.add_mark(each)
    await brain.learn(a_call(1), a_call(2))
    assert await counted(brain.store) == (["high", "success"], 1, 1)
    assert (await brain.store.counts()).pending == 0


def test_like_wordings_are_one() -> None:
    """Case, white space and digits make no difference; letters and signs do."""
    assert normalised("Read  page 3\n") == normalised("read page 1784") == "read page #"
    assert normalised("STRASSE") == normalised("straße")
    assert normalised("read page") != normalised("read pages")
    assert normalised("x" * 5_000 + "a") == normalised("x" * 5_000 + "b")


async def test_a_row_of_statistics_stays_small(brain: Brain) -> None:
    """Versions, scenarios and tags without end leave a bounded number of bytes."""
    calls = [
        a_call(n, context=worded(n), failed=True, tool_version=f"1.{n % 40}.0") for n in range(900)
    ]
    await brain.learn(*calls)
    [row] = await brain.store.get_statistics([TOOL])
    assert len(row.data) < 60_000


async def test_the_scenario_of_a_long_text_is_bounded(brain: Brain) -> None:
    """What is kept of a context is what the model reads of it."""
    await brain.learn(a_call(1, context="long " * 5_000))
    [scenario] = await scenarios_of(brain.store)
    assert len(scenario.text) == 1_200
    [row] = await brain.store.get_documents(WORKSPACE, [scenario.document_id])
    assert len(row.data) < 3_000
