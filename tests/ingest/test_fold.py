"""The fold: what is known follows from the log alone, however it was learned."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from aftercall.models import ExecutionError
from aftercall.models.calls import ShadowFacts
from embeddings.embedders import HashingEmbedder
from ingest import fold
from ingest.batches import commit_events
from ingest.nightly import DAYS_LEFT, REBUILD, NightlyJob, take_lease
from ingest.nightly_steps import expire_events
from ingest.workspace import WorkspaceCache
from mongo.contents import execution_event, execution_of
from mongo.protocol import Generation, Store
from mongo.records import Event, ToolKey
from mongo.sqlite.store import open_sqlite_store
from retrieval.knowledge.memory import KNOWLEDGE, SKIPPED, Memory
from tests.ingest.conftest import Brain
from tests.ingest.histories import BEGIN, WORKSPACE, held, history
from tests.retrieval.cases import an_execution

DAYS = 40.0
RETENTION = timedelta(days=30)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await open_sqlite_store(tmp_path / "data")
    yield opened
    await opened.close()


async def learn(store: Store, generation: Generation, seed: int, until: int | None = None) -> None:
    """Learn the log in batches cut by dice; sometimes by another process, without a cache."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    cache: WorkspaceCache | None = None
    while True:
        cursor = (await generation.read_cursors()).get(WORKSPACE)
        position = cursor.position if cursor else 0
        events = await store.events.read_after(WORKSPACE, position, dice.choice([1, 2, 17, 100]))
        events = [each for each in events if until is None or each.position <= until]
        if not events:
            return
        if cache is None or dice.random() < 0.1:
            cache = WorkspaceCache(WORKSPACE, cursor.serial if cursor else 0)
        await commit_events(store.events, generation, cache, events, position)
        cache.shrink_cache()


def night_at(at: datetime, store: Store, **options: Any) -> NightlyJob:
    """The job of a night, at a moment."""
    return NightlyJob(
        store=store, memory=Memory(store), open_model=_no_model, knowledge=store.knowledge,
        retention=RETENTION, clock=lambda: at, **{"keeper": None, **options},
    )  # fmt: skip


async def test_what_is_read_without_checks_is_what_was_written(store: Store) -> None:
    """An execution comes out of the log as the checked model that went in."""
    sent = {
        "result": {"rows": [1, 2.5, None, {"a": "b"}]}, "tool_version": "1.2.0",
        "session_id": "s-1", "sequence": 3, "attempt": 2,
        "trace_id": "0af7651916cd43dd8448eb211c80319c", "shadow": ShadowFacts(after="same"),
    }  # fmt: skip
    of_error = {"error": ExecutionError(message="no", code="404", details={"at": [{"x": 1}]})}
    one = an_execution(**sent)
    other = an_execution(
        execution_id=str(UUID(int=9)), outcome="failure", repair_of=one.execution_id, **of_error
    )
    for each in (one, other):
        event = execution_event(
            WORKSPACE, each, content_hash="", schema_hash=None, input_schema=None
        )
        await store.events.append(WORKSPACE, [event])
    read = [
        execution_of(each).execution for each in await store.events.read_after(WORKSPACE, 0, 10)
    ]
    assert read == [one, other]
    assert [type(each.error) for each in read] == [type(None), ExecutionError]
    assert [each.model_dump_json() for each in read] == [
        each.model_dump_json() for each in (one, other)
    ]


async def fill(store: Store, seed: int, count: int = 500) -> None:
    """A history with every kind of event in the log."""
    for event in history(seed, count, DAYS):
        await store.events.append(WORKSPACE, [event])


@pytest.mark.parametrize("seed", range(3))
async def test_where_batches_are_cut_changes_nothing(store: Store, seed: int) -> None:
    """Two generations that learned one log in other batches hold the same rows, to the byte."""
    await fill(store, seed)
    other = await store.open_generation(2)
    await learn(store, store.knowledge, seed)
    await learn(store, other, seed + 100)
    assert await held(other) == await held(store.knowledge)
    assert not await store.knowledge.count_rows(SKIPPED.name)


@pytest.mark.parametrize("seed", range(3))
async def test_a_rebuild_after_an_expiry_is_what_was_learned_live(store: Store, seed: int) -> None:
    """The base has learned what expired; a generation that begins with it ends with the same."""
    await fill(store, seed)
    await learn(store, store.knowledge, seed)
    live = await held(store.knowledge)
    end = BEGIN + timedelta(days=DAYS)
    for days in (-3.0, 0.0):  # the job of an earlier night, and of the last one
        done = await expire_events(night_at(end + timedelta(days=days), store, expire_all=True))
    assert done["learned"]
    first = (await store.events.read_after(WORKSPACE, 0, 1))[0]
    assert first.received_at >= end - RETENTION - timedelta(days=1)
    anew = await store.open_generation(2)
    await learn(store, anew, seed + 200)
    assert await held(anew) == live


async def test_what_a_rebuild_still_has_to_learn_does_not_expire(store: Store) -> None:
    """It began with the base before that; once it is over, or was killed, all goes that is due."""
    await fill(store, 4)
    await learn(store, store.knowledge, 4)
    live, anew = await held(store.knowledge), await store.open_generation(2)
    rebuild, night = await take_lease(store, 3, REBUILD), await take_lease(store, 3)
    job = night_at(BEGIN + timedelta(days=DAYS), store, keeper=night, expire_all=True)
    done = await expire_events(job)
    assert (done["events"], done[DAYS_LEFT]) == (0, 1)
    assert done["learned"]
    await learn(store, anew, 5)
    assert await held(anew) == live
    await rebuild.close()
    done = await expire_events(job)
    assert (done["learned"], done[DAYS_LEFT]) == (0, 0)
    assert done["events"]
    await night.close()


async def test_the_base_never_passes_what_was_learned(store: Store) -> None:
    """What the current generation has not learned stays in the log, however old it is."""
    await fill(store, 1, count=100)
    await learn(store, store.knowledge, 1, until=20)
    await expire_events(night_at(BEGIN + timedelta(days=400), store, expire_all=True))
    assert (await (await store.open_generation(0)).read_cursors())[WORKSPACE].position == 20
    assert (await store.events.read_after(WORKSPACE, 0, 1))[0].position == 21


async def test_a_clock_that_jumps_ahead_expires_a_day_at_most(store: Store) -> None:
    """Once it is right again, nothing more goes than is due; the next runs do the rest."""
    await fill(store, 2)
    await learn(store, store.knowledge, 2)
    first = (await store.events.read_after(WORKSPACE, 0, 1))[0].received_at
    learned, left = [], []
    for days in (400.0, RETENTION.days + 0.5, RETENTION.days + DAYS):
        done = await expire_events(night_at(first + timedelta(days=days), store))
        learned.append(done["learned"])
        left.append(done[DAYS_LEFT])
    events = [e for e in history(2, 500, DAYS) if e.received_at < first + timedelta(days=2)]
    assert sum(learned) == len(events)
    assert [count > 0 for count in learned] == [True, False, True]
    assert left == [400 - RETENTION.days - 1, 0, DAYS - 2]


async def test_an_outcome_counts_before_its_failure_is_learned(store: Store) -> None:
    """One that comes first leaves all rules as one that comes last; a store without it does not."""
    events = list(history(5, 120, 0.5))
    outcomes = [each for each in events if each.kind == "outcome"]
    failures = [each for each in events if each.kind == "execution"]
    assert outcomes
    reported = {}
    for workspace, order in (
        ("first", [*outcomes, *failures]), ("last", [*failures, *outcomes]), ("without", failures),
    ):  # fmt: skip
        for event in order:
            await store.events.append(workspace, [event])
        events_ = await store.events.read_after(workspace, 0, 1_000)
        await commit_events(store.events, store.knowledge, WorkspaceCache(workspace), events_, 0)
        rows = await store.knowledge.scan_rows(workspace, KNOWLEDGE.name, 10)  # of all tools too
        known = [KNOWLEDGE.decode_row(row) for row in rows]
        rules = [rule for k in known for s in k.signatures.values() for rule in s.rules.values()]
        reported[workspace] = sum(r.successes for r in rules), sum(r.failures for r in rules)
    assert reported["first"] == reported["last"]
    assert reported["without"] != reported["first"]


async def test_an_event_that_cannot_be_learned_is_passed_over_and_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in the log and in a row; those behind it are learned."""
    await fill(store, 2, count=60)
    broken = (await store.events.read_after(WORKSPACE, 0, 1))[0]
    read = fold._read_batch

    def without(events: Sequence[Event]) -> fold.Batch:
        batch = read(events)
        batch.contents.pop(broken.position, None)
        return batch

    monkeypatch.setattr(fold, "_read_batch", without)
    await learn(store, store.knowledge, 2)
    rows = await store.knowledge.scan_rows(WORKSPACE, SKIPPED.name, 10)
    assert [int(row.key) for row in rows] == [broken.position]
    cursor = (await store.knowledge.read_cursors())[WORKSPACE]
    assert cursor.position == (await store.events.read_heads())[WORKSPACE].position
    assert await store.knowledge.count_rows(KNOWLEDGE.name)


async def _no_model() -> HashingEmbedder:
    return HashingEmbedder()


async def test_catching_up_ends_whatever_arrives(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild beside a service that is never quiet comes to its switch."""
    log = brain.store.events
    read_after, numbers = log.read_after, iter(range(2, 1_000))
    await brain.intake.accept_executions(WORKSPACE, [an_execution()])

    async def busy(*given: Any) -> Any:
        new = an_execution(execution_id=str(UUID(int=next(numbers))))
        await brain.intake.accept_executions(WORKSPACE, [new])
        return await read_after(*given)

    monkeypatch.setattr(log, "read_after", busy)
    assert 1 <= await brain.indexer.catch_up() < 5


async def test_catching_up_goes_on_where_the_background_ended(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps of one process never learn the same batch, of which one would be refused."""
    indexer = brain.new_indexer(batch=1)
    log = brain.store.events
    read_after, steps = log.read_after, list[asyncio.Task[int]]()
    for number in (1, 2, 3):
        await brain.intake.accept_executions(
            WORKSPACE, [an_execution(execution_id=str(UUID(int=number)))]
        )

    async def beside(*given: Any) -> Any:
        found = await read_after(*given)
        if not steps:
            steps.append(asyncio.create_task(indexer.learn_step()))
            await asyncio.wait(steps, timeout=0.2)
        return found

    monkeypatch.setattr(log, "read_after", beside)
    await indexer.catch_up()
    cursor = (await brain.store.knowledge.read_cursors())[WORKSPACE]
    assert cursor.position == 3
    await asyncio.wait(steps)
    await indexer.close()


async def test_what_was_learned_into_is_let_go_once_nothing_is_learned(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is learned after that reads it anew, and goes on from it."""
    knowledge, read = brain.store.knowledge, list[str]()
    get = knowledge.get
    calls = [an_execution(execution_id=str(UUID(int=number))) for number in range(1, 5)]

    async def counted(workspace: str, kind: str, keys: Sequence[str]) -> Any:
        read.append(kind)
        return await get(workspace, kind, keys)

    monkeypatch.setattr(knowledge, "get", counted)
    monkeypatch.setattr("ingest.pacing.MUCH", 1)
    await brain.learn(calls[0])
    read.clear()
    await brain.indexer.hand_over_known()  # much was learned since the last time
    await brain.learn(calls[1])
    assert KNOWLEDGE.name not in read
    for _ in range(2):
        await brain.indexer.hand_over_known()
    await brain.learn(*calls[2:])
    assert KNOWLEDGE.name in read
    tool = ToolKey(WORKSPACE, calls[0].server_name, calls[0].tool_name)
    profile = (await brain.knowledge(tool)).find_profile(None)
    assert profile is not None
    assert profile.successes + profile.failures == len(calls)


async def test_what_was_learned_of_tools_is_left_to_the_answers(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need not read it, until more of them is learned, which need not have ended."""
    knowledge, read = brain.store.knowledge, list[str]()
    get = knowledge.get
    first, second, third = (an_execution(execution_id=str(UUID(int=n))) for n in (1, 2, 3))
    tool = ToolKey(WORKSPACE, first.server_name, first.tool_name)

    async def counted(workspace: str, kind: str, keys: Sequence[str]) -> Any:
        read.append(kind)
        return await get(workspace, kind, keys)

    await brain.memory.follow_changes()
    await brain.learn(first, second)
    await brain.indexer.hand_over_known()
    stored = await brain.knowledge(tool)
    monkeypatch.setattr(knowledge, "get", counted)
    given = await brain.memory.read_knowledge(tool)
    assert given == stored
    assert KNOWLEDGE.name not in read
    await brain.learn(third)
    assert given == stored  # whoever answers may hold it still
    assert await brain.memory.read_knowledge(tool) == await brain.knowledge(tool) != stored


async def test_what_floods_in_is_learned_while_it_goes_on(brain: Brain) -> None:
    """However long it lasts: nothing waits for an end of it."""
    numbers = count(1)
    brain.indexer.start()
    async with asyncio.timeout(60):
        while WORKSPACE not in await brain.store.knowledge.read_cursors():
            records = [
                an_execution(execution_id=str(UUID(int=next(numbers))), parameters={"n": at})
                for at in range(500)
            ]
            receipt = await brain.intake.accept_executions(WORKSPACE, records)
            assert receipt.accepted == 500
    await brain.indexer.close()
    await brain.indexer.catch_up()
    cursor = (await brain.store.knowledge.read_cursors())[WORKSPACE]
    assert cursor.position == next(numbers) - 1
