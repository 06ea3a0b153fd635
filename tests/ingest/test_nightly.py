"""The nightly run: what each step makes, and that one does it at a time."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

import ingest.nightly.statistics
import ingest.nightly.vanished
from aftercall.models import Execution, Usage, UsageWindow
from embeddings.protocol import EmbeddingError
from ingest.claims import learning_lease
from ingest.leasing import LeaseKeeper
from ingest.nightly.classifier import refit_classifiers
from ingest.nightly.expiry import expire, expired_fact
from ingest.nightly.night import NightlyLostError
from ingest.nightly.patterns import consolidate, patterns_fact
from ingest.nightly.run import NightlyBusyError, last_night, run_night, take_night
from ingest.nightly.statistics import count_usage
from ingest.nightly.usage_base import sum_usage, watermark_fact
from ingest.nightly.vanished import remove_vanished
from mongo.errors import StoreUnavailableError
from mongo.protocol import LogStore
from mongo.records import NewExecution, ToolKey
from mongo.sqlite import open_sqlite_store
from retrieval.patterns import Pattern, decoded
from retrieval.usage.base import Base, usage_fact, version_fact, version_of
from retrieval.usage.base import decoded as decoded_base
from retrieval.usage.day import decoded as decoded_day
from retrieval.usage.view import UsageView
from tests.ingest.nightly_world import (
    NOW,
    OLD,
    STRAY,
    WORKSPACE,
    Held,
    a_night,
    contents,
    execution,
    fill,
)

COUNT = 62


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LogStore]:
    await fill(tmp_path)
    opened = await open_sqlite_store(tmp_path)
    yield opened
    await opened.close()


async def base(store: LogStore) -> Base:
    fact = await store.get_fact(usage_fact(WORKSPACE))
    assert fact is not None
    found = decoded_base(fact, WORKSPACE)
    assert found is not None
    return found


async def usage(store: LogStore, window: UsageWindow) -> Usage:
    """What is told at the moment of the night, of what it left."""
    return UsageView([(await base(store)).counts], NOW).usage(window)


async def patterns(store: LogStore) -> list[Pattern]:
    return [decoded(row.data) for row in await store.list_patterns(WORKSPACE, 1_000)]


def new(made: Execution, stands_for: int = 1) -> NewExecution:
    return NewExecution(made, made.execution_id, stands_for=stands_for)


async def test_every_execution_is_counted_once(store: LogStore) -> None:
    """However often the night is run; what is left says how far it goes."""
    assert (await count_usage(a_night(store)))["executions"] == COUNT
    assert (await count_usage(a_night(store)))["executions"] == 0
    week, day = await usage(store, "7d"), await usage(store, "24h")
    assert (week.totals.successes, week.totals.failures) == (30, 32)
    assert 0 < day.totals.successes < 30
    assert sum(each.failures for each in week.by_category) == 32
    assert {each.agent for each in week.by_agent} == {f"agent-{n}" for n in range(4)}
    left = await base(store)
    assert (left.through, left.computed_at) == (COUNT, NOW)
    assert await store.get_fact(version_fact(WORKSPACE)) == version_of(left)


async def test_failures_are_counted_under_the_marks_of_their_patterns(store: LogStore) -> None:
    """So that a pattern has a history, also of the time before it was consolidated."""
    await run_night(a_night(store))
    view = UsageView([(await base(store)).counts], NOW)
    counts = view.failures("7d").counts
    for pattern in await patterns(store):
        assert sum(counts.get(mark.hex(), 0) for mark in pattern.marks()) == pattern.count


async def test_a_long_count_shows_early(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle it has left a base; the more is counted, the rarer one is made."""
    monkeypatch.setattr(ingest.nightly.statistics, "PAGE", 5)
    monkeypatch.setattr(ingest.nightly.statistics, "_FLUSH", 5)
    monkeypatch.setattr(ingest.nightly.statistics, "_EARLY", 10)
    made: list[int] = []
    put = store.put_fact

    async def put_fact(name: str, value: str, *lease: Any) -> None:
        if name == usage_fact(WORKSPACE):
            found = decoded_base(value, WORKSPACE)
            assert found is not None
            made.append(found.through)
            told = UsageView([found.counts], NOW).usage("7d").totals
            assert told.successes + told.failures == found.through
        await put(name, value, *lease)

    monkeypatch.setattr(store, "put_fact", put_fact)
    await count_usage(a_night(store))
    assert made == [10, 30, COUNT]


async def test_what_was_counted_is_summed_up_alike_by_whoever_does_it(store: LogStore) -> None:
    """A service does it where an earlier version left no base."""
    await count_usage(a_night(store))
    left = await base(store)
    summed = await sum_usage(store, WORKSPACE, COUNT, NOW)
    assert UsageView([summed.counts], NOW).usage("30d") == await usage(store, "30d")
    assert (summed.through, summed.computed_at) == (left.through, left.computed_at)


async def test_only_some_steps_are_no_night(store: LogStore) -> None:
    """Its report is told and not kept, so that the next night is neither postponed nor judged."""
    report = await run_night(a_night(store), ["statistics"])
    assert [each.name for each in report.steps] == ["statistics"]
    assert await last_night(store) is None
    assert (await base(store)).through == COUNT


async def test_what_sampling_left_out_counts(store: LogStore) -> None:
    """A success stands for itself and those beside it."""
    made = execution(1_000)
    await store.append(WORKSPACE, [new(made, stands_for=25)])
    await count_usage(a_night(store))
    assert (await usage(store, "7d")).totals.successes == 30 + 25
    tool = ToolKey(WORKSPACE, made.server_name, made.tool_name)
    [row] = await store.get_usage(WORKSPACE, [(tool, made.timestamp.date())])
    hour = decoded_day(row.data).hours[made.timestamp.hour]
    assert hour.agents[made.agent][0] >= 25


async def test_what_came_just_now_waits_for_the_next_night(store: LogStore) -> None:
    """Positions are given out before a record is there: its neighbours may still come."""
    soon = a_night(store, clock=lambda: NOW - timedelta(minutes=29))
    assert (await count_usage(soon))["executions"] == OLD
    assert await store.get_fact(watermark_fact(WORKSPACE)) == str(OLD)
    assert (await count_usage(a_night(store)))["executions"] == COUNT - OLD


async def test_a_clock_that_was_set_back_holds_nothing_up(store: LogStore) -> None:
    """What arrived in the future by the clock of today has arrived."""
    yesterday = a_night(store, clock=lambda: NOW - timedelta(days=1))
    assert (await count_usage(yesterday))["executions"] == COUNT


async def test_like_failures_are_one_pattern_with_a_lesson(store: LogStore) -> None:
    """Of each tool; counts are those of all its failures, agents and examples are its own."""
    await consolidate(a_night(store))
    found = await patterns(store)
    assert sum(each.count for each in found) == 32
    timeouts = [each for each in found if each.category == "timeout"]
    assert {each.tool_name for each in timeouts} == {"tool_0", "tool_1", "tool_2"}
    assert all(len(each.signatures) == 2 for each in timeouts)
    assert all("call" in each.lesson for each in timeouts)
    assert all(each.agents and each.execution_ids for each in found)
    assert await store.get_fact(patterns_fact(WORKSPACE)) == NOW.isoformat()


async def test_patterns_keep_their_ids_and_only_new_wordings_are_embedded(store: LogStore) -> None:
    """A second night over the same documents writes nothing."""
    first = await consolidate(a_night(store))
    before = await patterns(store)

    async def no_model() -> Any:
        raise EmbeddingError("nothing is new")

    again = await consolidate(a_night(store, open_model=no_model))
    assert await patterns(store) == before
    assert (again["embedded"], again["patterns"]) == (0, first["patterns"])


async def test_old_executions_go_and_their_number_is_known(store: LogStore) -> None:
    """What was learned stays; without a retention nothing goes."""
    assert await expire(a_night(store, retention=None)) == {"executions": 0}
    assert await expire(a_night(store)) == {"executions": OLD}
    assert await store.get_fact(expired_fact(WORKSPACE)) == str(OLD)
    assert (await store.counts()).executions == COUNT - OLD
    assert await expire(a_night(store)) == {"executions": 0}
    await consolidate(a_night(store))
    assert sum(each.count for each in await patterns(store)) == 32


async def test_stray_documents_go_with_their_vectors(store: LogStore) -> None:
    """Through the queue: whoever has the index open takes their vectors away."""
    assert (await remove_vanished(a_night(store)))["removed"] == 1
    assert [each.document_id for each in await store.removed_documents(WORKSPACE, 10)] == [STRAY]
    assert await store.get_documents(WORKSPACE, [STRAY]) == []
    assert (await remove_vanished(a_night(store)))["removed"] == 0


async def test_stray_documents_stay_while_somebody_learns(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who could make the same document anew at this moment."""
    monkeypatch.setattr(ingest.nightly.vanished, "_PATIENCE_S", 0.05)
    learner = LeaseKeeper(store, learning_lease(WORKSPACE), ttl=60)
    assert await learner.try_take()
    done = await remove_vanished(a_night(store))
    assert (done["removed"], done["left"]) == (0, 1)
    await learner.close()
    assert len(await store.get_documents(WORKSPACE, [STRAY])) == 1


async def test_a_night_without_enough_labels_leaves_the_head_alone(store: LogStore) -> None:
    """And costs no model."""
    assert await refit_classifiers(a_night(store)) == {"labels": 0, "fitted": 0, "taken": 0}


async def test_a_failed_step_keeps_no_other_from_running(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says why, and is kept."""

    async def no_model() -> Any:
        raise EmbeddingError("the model is not there: install it")

    report = await run_night(a_night(store, open_model=no_model))
    assert {each.name for each in report.failed} == {"patterns", "axes"}
    assert all("install it" in str(each.problem) for each in report.failed)
    done = {each.name: each.counts for each in report.steps}
    assert done["statistics"]["executions"] == COUNT
    assert done["expiry"]["executions"] == OLD
    assert await last_night(store) == report


async def test_who_lost_the_lease_writes_nothing_more(tmp_path: Path) -> None:
    """Another one goes on; what was written before holds."""
    await fill(tmp_path)
    store = await open_sqlite_store(tmp_path)
    keeper = Held()

    def lost_in_the_middle(step: str, done: int) -> None:
        keeper.is_held = not (step == "statistics" and done)

    with pytest.raises(NightlyLostError):
        await run_night(a_night(store, keeper, on_progress=lost_in_the_middle))
    await store.close()
    found = contents(tmp_path)
    assert (found["usage"], found["patterns"]) == ([], [])


@pytest.mark.parametrize("write", ["put_usage", "put_fact"])
async def test_a_night_that_slept_through_the_loss_of_its_lease_takes_no_count_back(
    tmp_path: Path, write: str
) -> None:
    """Stopped between its look and its write, it wakes when another one has counted more."""
    await fill(tmp_path)
    store = await open_sqlite_store(tmp_path)
    sleeper = await take_night(store, ttl=60.0)

    class Asleep:
        """Its first such write comes when another night is over."""

        slept = False

        def __getattr__(self, name: str) -> Any:
            found = getattr(store, name)
            if name != write or self.slept:
                return found
            self.slept = True

            async def late(*args: Any) -> Any:
                seen = await store.read_lease("nightly")
                other = await store.take_lease("nightly", "another/1/x", seen)
                assert other is not None
                await store.append(WORKSPACE, [new(execution(1_000 + n)) for n in range(40)])
                keeper = Held()
                keeper.lease = other
                await count_usage(a_night(store, keeper))
                return await found(*args)

            return late

    with pytest.raises(NightlyLostError):
        await count_usage(a_night(cast("LogStore", Asleep()), cast("Held", sleeper)))
    await count_usage(a_night(store))
    totals = (await usage(store, "30d")).totals
    assert totals.successes + totals.failures == COUNT + 40
    await sleeper.close()
    await store.close()


async def test_two_at_once_are_one(tmp_path: Path) -> None:
    """The second one says so, as soon as it has seen that the first one lives."""
    await fill(tmp_path)
    store = await open_sqlite_store(tmp_path)
    first = await take_night(store, ttl=1.0)
    with pytest.raises(NightlyBusyError, match="another process"):
        await take_night(store, ttl=1.0)
    await first.close()
    second = await take_night(store, ttl=1.0)
    await second.close()
    await store.close()


async def test_a_store_that_goes_away_fails_the_night_and_loses_nothing(store: LogStore) -> None:
    """The next one goes on."""

    class Away:
        def __getattr__(self, name: str) -> Any:
            async def away(*_: object, **__: object) -> None:
                raise StoreUnavailableError("away")

            return away if name == "put_usage" else getattr(store, name)

    away: Any = Away()
    report = await run_night(a_night(away))
    assert [each.name for each in report.failed] == ["statistics"]
    assert (await count_usage(a_night(store)))["executions"] == COUNT - OLD
