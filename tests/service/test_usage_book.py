"""Usage up to now: a base of the night and the tail behind it, told at once and told right."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

import service.statistics.book
import service.statistics.long_tail
import service.statistics.tail
from aftercall.models import Execution
from ingest.nightly.statistics import SETTLE, count_usage
from ingest.nightly.usage_base import watermark_fact
from mongo.errors import StoreUnavailableError
from mongo.protocol import LogStore
from mongo.records import NewExecution, StoredExecution
from mongo.sqlite import open_sqlite_store
from retrieval.usage.base import no_base, usage_fact, version_fact
from service.statistics.book import UsageBook
from service.statistics.long_tail import LongTails
from service.statistics.tail import YOUNG, Tail
from tests.ingest.nightly_world import a_night

WORKSPACE = "default"
LATER = SETTLE + timedelta(minutes=1)
"""Behind the arrival of what was appended: the night counts it then."""
PATIENT = 30.0
"""Seconds: as long as it takes."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LogStore]:
    opened = await open_sqlite_store(tmp_path)
    yield opened
    await opened.close()


async def record(store: LogStore, count: int = 1, **fields: Any) -> None:
    """So many successes of now."""
    made = [
        Execution.model_validate(
            {
                "execution_id": str(uuid4()),
                "timestamp": datetime.now(UTC),
                "agent": "ada",
                "tool_name": "search",
                "parameters": {},
                "outcome": "success",
                **fields,
            }
        )
        for _ in range(count)
    ]
    await store.append(WORKSPACE, [NewExecution(each, each.execution_id) for each in made])


async def night(store: LogStore) -> None:
    """Count all that is there."""
    await count_usage(a_night(store, clock=lambda: datetime.now(UTC) + LATER))


async def calls(book: UsageBook) -> int:
    """Successes of the last day, once all of them are told."""
    view = await book.view(WORKSPACE)
    assert view.is_complete
    return view.usage("24h").totals.successes


def tail_told(book: UsageBook, workspace: str) -> Tail | None:
    """The tail that is told at present; None of a workspace that is not at hand."""
    page = book._pages.get(workspace)
    return page._known.tail if page is not None and page._known is not None else None


class Watched:
    """A store of which calls are counted, and held up while it is told so."""

    def __init__(self, store: LogStore) -> None:
        self.store = store
        self.called: list[str] = []
        self.held: dict[str, asyncio.Event] = {}
        self.problem: Exception | None = None
        self.is_asked = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found: Callable[..., Any] = getattr(self.store, name)

        async def called(*args: Any) -> Any:
            self.called.append(name)
            self.is_asked.set()
            if self.problem is not None:
                raise self.problem
            if name in self.held:
                await self.held[name].wait()
            return await found(*args)

        return called


def watched(store: LogStore) -> tuple[Watched, LogStore]:
    found = Watched(store)
    return found, cast("LogStore", found)


# What is told


async def test_a_call_is_told_at_the_next_look(store: LogStore) -> None:
    """Before any night, behind one, and after another one."""
    book = UsageBook(store, patience_s=PATIENT)
    assert await calls(book) == 0
    for expected in range(1, 7):
        await record(store)
        assert await calls(book) == expected
        if expected % 2 == 0:
            await night(store)
            assert await calls(book) == expected
    assert await calls(UsageBook(store, patience_s=PATIENT)) == 6
    await book.close()


async def test_a_new_base_takes_the_place_of_the_tail(store: LogStore) -> None:
    """What the night has counted is not held twice, nor counted twice."""
    book = UsageBook(store, patience_s=PATIENT)
    await record(store, 30)
    await calls(book)
    tail = tail_told(book, WORKSPACE)
    assert tail is not None
    assert tail.executions == 30
    await night(store)
    await record(store, 2)
    assert await calls(book) == 32
    tail = tail_told(book, WORKSPACE)
    assert tail is not None
    assert tail.executions == 2
    await book.close()


async def test_workspaces_do_not_mix(store: LogStore) -> None:
    book = UsageBook(store, patience_s=PATIENT)
    await record(store)
    other = await book.view("other")
    assert (other.is_complete, other.usage("24h").totals.successes) == (True, 0)
    assert await calls(book) == 1
    await book.close()


async def test_a_store_of_an_earlier_version_is_summed_up_once(store: LogStore) -> None:
    """What the earlier version left as windows is not understood; its counts by day are."""
    await record(store, 5)
    await night(store)
    await store.put_fact(usage_fact(WORKSPACE), '{"windows":{}}')
    await store.put_fact(version_fact(WORKSPACE), "")
    await record(store, 2)
    watch, slow = watched(store)
    runs = 0

    async def run() -> int:
        nonlocal runs
        runs += 1
        return 0

    caught_up: asyncio.Queue[str] = asyncio.Queue()
    book = UsageBook(
        slow, run_step=run, on_caught_up=caught_up.put_nowait, patience_s=0.0, first_patience_s=0.0
    )
    watch.held["scan_usage"] = asyncio.Event()
    view = await book.view(WORKSPACE)
    assert (view.is_complete, view.usage("24h").totals.successes) == (False, 0)
    watch.held["scan_usage"].set()
    await asyncio.wait_for(caught_up.get(), 20)
    view = await book.view(WORKSPACE)
    assert view.usage("24h").totals.successes == 7
    assert watch.called.count("scan_usage") == 2  # the rows, and none behind them
    assert runs == 1  # so that it is there at the next start
    await book.close()


# How long it takes


async def test_rows_of_a_count_that_is_under_way_are_not_counted_twice(store: LogStore) -> None:
    """An earlier version's store, whose night was killed between its rows and the watermark."""
    await record(store, 5)
    await night(store)
    await store.put_fact(usage_fact(WORKSPACE), '{"windows":{}}')
    await store.put_fact(watermark_fact(WORKSPACE), "2")
    book = UsageBook(store, patience_s=PATIENT)
    view = await book.view(WORKSPACE)
    assert (view.is_complete, view.usage("24h").totals.successes) == (False, 3)
    await night(store)
    assert await calls(book) == 5
    await book.close()


@pytest.mark.parametrize("watermark", ["", "-5", "nonsense", "²"])
async def test_a_watermark_that_nobody_understands_has_all_read_again(
    store: LogStore, watermark: str
) -> None:
    """By whoever asks, and by the night; nothing counts twice."""
    await record(store, 3)
    await night(store)
    await store.put_fact(usage_fact(WORKSPACE), "?")
    await store.put_fact(watermark_fact(WORKSPACE), watermark)
    book = UsageBook(store, patience_s=PATIENT)
    assert await calls(book) == 3
    await night(store)
    assert await calls(book) == 3
    await book.close()


async def test_the_first_question_waits_for_a_small_tail(store: LogStore) -> None:
    """Where nothing was summed up yet, zeros would be all there is to tell; later ones do not."""
    await record(store, 5)
    watch, slow = watched(store)
    book = UsageBook(slow, patience_s=0.0, first_patience_s=PATIENT)
    view = await book.view(WORKSPACE)
    assert (view.is_complete, view.usage("24h").totals.successes) == (True, 5)
    await night(store)
    watch.held["scan_executions"] = asyncio.Event()
    again = UsageBook(slow, patience_s=0.0, first_patience_s=PATIENT)
    assert (await again.view(WORKSPACE)).usage("24h").totals.successes == 5
    watch.held["scan_executions"].set()
    await again.close()
    await book.close()


async def test_who_asks_waits_for_the_tail_a_little_only(store: LogStore) -> None:
    """Then it is told what is known, that this is not all, and later that all is there."""
    await record(store, 3)
    await night(store)
    await record(store, 2)
    watch, slow = watched(store)
    watch.held["scan_executions"] = asyncio.Event()
    caught_up: asyncio.Queue[str] = asyncio.Queue()
    book = UsageBook(slow, on_caught_up=caught_up.put_nowait, patience_s=0.0, first_patience_s=0.0)
    view = await book.view(WORKSPACE)
    assert (view.is_complete, view.usage("24h").totals.successes) == (False, 3)
    assert caught_up.empty()
    watch.held["scan_executions"].set()
    assert await asyncio.wait_for(caught_up.get(), 20) == WORKSPACE
    await book.close()
    assert caught_up.empty()


async def test_those_who_ask_at_once_share_the_work(store: LogStore) -> None:
    """One look for all who ask before it begins, and one more for those who ask meanwhile."""
    await record(store, 3)
    watch, slow = watched(store)
    book = UsageBook(slow, patience_s=PATIENT)
    await calls(book)
    watch.called.clear()
    watch.is_asked.clear()
    gate = watch.held["get_fact"] = asyncio.Event()
    first = [asyncio.create_task(calls(book)) for _ in range(20)]
    await asyncio.wait_for(watch.is_asked.wait(), 20)
    second = [asyncio.create_task(calls(book)) for _ in range(20)]
    await record(store)
    gate.set()
    assert {await each for each in second} == {4}
    assert {await each for each in first} <= {3, 4}
    assert watch.called.count("get_fact") == 2
    await book.close()


async def test_a_store_that_is_away_is_told_and_forgotten(store: LogStore) -> None:
    """The question fails; the next one, when the store is back, does not."""
    await record(store, 3)
    watch, flaky = watched(store)
    watch.problem = StoreUnavailableError("away")
    book = UsageBook(flaky, patience_s=PATIENT)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="away"):
            await book.view(WORKSPACE)
    watch.problem = None
    assert await calls(book) == 3
    await book.close()


async def test_a_question_that_is_given_up_stops_nobody_else(store: LogStore) -> None:
    await record(store, 3)
    watch, slow = watched(store)
    gate = watch.held["get_fact"] = asyncio.Event()
    book = UsageBook(slow, patience_s=PATIENT)
    gone, stays = asyncio.create_task(calls(book)), asyncio.create_task(calls(book))
    await asyncio.wait_for(watch.is_asked.wait(), 20)
    gone.cancel()
    gate.set()
    assert await stays == 3
    await book.close()


async def test_closing_ends_what_is_at_work(store: LogStore) -> None:
    """And whoever waits is not left waiting."""
    watch, slow = watched(store)
    watch.held["get_fact"] = asyncio.Event()
    before = asyncio.all_tasks()
    book = UsageBook(slow, patience_s=PATIENT)
    asking = asyncio.create_task(book.view(WORKSPACE))
    await asyncio.wait_for(watch.is_asked.wait(), 20)
    await book.close()
    with pytest.raises(Exception, match="closed"):
        await asking
    assert asyncio.all_tasks() == before


async def test_of_very_many_workspaces_the_latest_are_kept(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes names up does not fill the memory."""
    monkeypatch.setattr(service.statistics.book, "MAX_WORKSPACES", 3)
    book = UsageBook(store, patience_s=PATIENT)
    await record(store)
    for number in range(10):
        await book.view(f"made-up-{number}")
    assert tail_told(book, "made-up-1") is None
    assert tail_told(book, "made-up-9") is not None
    assert await calls(book) == 1
    await book.close()


# The tail


class Log:
    """Executions that appear at any position, as in a store that gives positions out early."""

    def __init__(self) -> None:
        self.there: dict[int, StoredExecution] = {}
        self.read = 0

    def put(self, position: int, received_at: datetime) -> None:
        execution = Execution.model_validate(
            {
                "execution_id": str(UUID(int=position)),
                "timestamp": received_at,
                "agent": "ada",
                "tool_name": "search",
                "parameters": {},
                "outcome": "success",
            }
        )
        self.there[position] = StoredExecution(position, WORKSPACE, execution, None, received_at)

    async def scan_executions(
        self, workspace: str, after: int, limit: int
    ) -> list[StoredExecution]:
        del workspace
        found = [self.there[at] for at in sorted(self.there) if at > after][:limit]
        self.read += len(found)
        return found


@pytest.fixture
def now() -> list[datetime]:
    return [datetime(2026, 3, 1, 12, tzinfo=UTC)]


def tail_over(log: Log, now: list[datetime], through: int = 0) -> Tail:
    return Tail(cast("LogStore", log), WORKSPACE, no_base(through), lambda: now[0])


async def test_a_record_that_appears_before_others_is_counted(now: list[datetime]) -> None:
    """Its position was given out, and another record was there first."""
    log = Log()
    tail = tail_over(log, now)
    for position in (1, 2, 5, 9):
        log.put(position, now[0])
    await tail.catch_up()
    assert tail.executions == 4
    for position in (7, 3, 4):
        log.put(position, now[0])
        await tail.catch_up()
    assert tail.executions == 7
    assert int(tail.counts.tables["totals"].total()[0]) == 7


async def test_what_is_old_or_has_no_gap_before_it_is_not_read_again(now: list[datetime]) -> None:
    """However many arrive at a time."""
    log = Log()
    tail = tail_over(log, now)
    for position in range(1, 50):
        log.put(position, now[0])
    await tail.catch_up()
    log.read = 0
    await tail.catch_up()
    assert log.read == 0
    log.put(60, now[0])
    for _ in range(2):
        await tail.catch_up()
    assert log.read == 2
    now[0] += YOUNG + timedelta(seconds=1)
    await tail.catch_up()
    log.read = 0
    await tail.catch_up()
    assert (log.read, tail.executions) == (0, 50)


async def test_young_records_with_gaps_are_kept_within_bounds(
    now: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many, the latest are read again."""
    monkeypatch.setattr(service.statistics.tail, "MAX_YOUNG", 10)
    log = Log()
    tail = tail_over(log, now)
    for position in range(2, 200, 2):
        log.put(position, now[0])
    await tail.catch_up()
    log.read = 0
    await tail.catch_up()
    assert log.read == 10
    assert tail.executions == 99


async def test_arrivals_of_the_future_hold_nothing_up(now: list[datetime]) -> None:
    """They arrived before a clock was set back."""
    log = Log()
    log.put(5, now[0] + timedelta(days=1))
    tail = tail_over(log, now)
    await tail.catch_up()
    log.read = 0
    await tail.catch_up()
    assert (log.read, tail.executions, tail.is_complete) == (0, 1, True)


async def test_a_tail_has_an_end(now: list[datetime], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it, it says that it is not complete, and works no more."""
    monkeypatch.setattr(service.statistics.tail, "MAX_TAIL", 20)
    monkeypatch.setattr(service.statistics.tail, "PAGE", 10)
    log = Log()
    for position in range(1, 50):
        log.put(position, now[0])
    tail = tail_over(log, now)
    await tail.catch_up()
    assert (tail.executions, tail.is_complete) == (20, False)
    log.read = 0
    await tail.catch_up()
    assert log.read == 0


# A long tail


async def test_a_long_tail_has_the_step_run(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: it is not started again while it runs, nor soon after it."""
    monkeypatch.setattr(service.statistics.book, "LONG", 5)
    started, gate = asyncio.Event(), asyncio.Event()
    runs = 0

    async def run() -> int:
        nonlocal runs
        runs += 1
        started.set()
        await gate.wait()
        return 0

    book = UsageBook(store, run_step=run, patience_s=PATIENT)
    await record(store, 5)
    await calls(book)
    assert not started.is_set()
    await record(store)
    for _ in range(3):
        await calls(book)
    await asyncio.wait_for(started.wait(), 20)
    gate.set()
    for _ in range(3):
        await calls(book)
    assert runs == 1
    await book.close()


@pytest.mark.parametrize(
    ("outcome", "pause"),
    [
        (0, service.statistics.long_tail.AFTER_S),
        (1, service.statistics.long_tail.AGAIN_S),
        (75, service.statistics.long_tail.AGAIN_S),
        (OSError("no process"), service.statistics.long_tail.AGAIN_S),
    ],
    ids=["done", "failed", "busy", "not-started"],
)
async def test_it_is_run_again_after_a_pause(outcome: int | OSError, pause: float) -> None:
    """A short one when it was done, a long one when it failed or somebody else does it."""
    clock = [1000.0]
    ended: asyncio.Queue[None] = asyncio.Queue()

    async def run() -> int:
        ended.put_nowait(None)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    tails = LongTails(run, lambda: clock[0])
    tails.wanted()
    await asyncio.wait_for(ended.get(), 20)
    await asyncio.sleep(0)
    clock[0] += pause - 1
    tails.wanted()
    await asyncio.sleep(0)
    assert ended.empty()
    clock[0] += pause
    tails.wanted()
    await asyncio.wait_for(ended.get(), 20)
    await tails.close()
    tails.wanted()
    await asyncio.sleep(0)
    assert ended.empty()


async def test_closing_stops_the_run() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def run() -> int:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return 0

    tails = LongTails(run)
    tails.wanted()
    await asyncio.wait_for(started.wait(), 20)
    await tails.close()
    assert stopped.is_set()
