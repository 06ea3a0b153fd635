"""What is learned of executions, marks and corrections does not depend on how they arrive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.models import Execution, Rejection
from aftercall.redaction import Redactor
from embeddings.hashing import HashingEmbedder
from ingest import indexer as indexer_module
from ingest.indexer import Indexer
from ingest.intake import Intake
from mongo.protocol import LogStore
from mongo.records import CorrectionRecord, FailureRecord
from mongo.sqlite import open_sqlite_store
from retrieval.fitness.statistics import ToolStatistics
from retrieval.health.record import AxisBook, KnownHealth, count_axes
from retrieval.index.edge import EdgeIndex
from retrieval.memory import Memory
from tests.ingest.fitness_samples import START, WORKSPACE, a_call, a_mark, documents_of, tool_of
from tests.ingest.health_samples import a_correction, a_failure, a_referral, book_of
from tests.ingest.relearning import learn_anew

TOOLS = [tool_of(number) for number in range(3)]
AXES = ["transport", "HTML parsing", "html-parsing", "storage"]
CALLS = 10

Record = Execution | CorrectionRecord | FailureRecord
Learn = Callable[[], Awaitable[None]]


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Calls of three tools, marks of some, corrections of some and of calls that never come."""
    found: list[Record] = [
        a_drawn_call(draw, number) for number in range(draw(st.integers(1, CALLS)))
    ]
    for number in range(draw(st.integers(0, 5))):
        of, axes = draw(st.integers(0, CALLS)), draw(st.lists(st.sampled_from(AXES), max_size=3))
        found.append(a_correction(100 + number, of, *axes))
    for number in range(draw(st.integers(0, 2))):
        of = draw(st.integers(0, CALLS - 1))
        found.append(a_mark(200 + number, of=of, tool=tool_of(of), version="1.1.0"))
    return found


def a_drawn_call(draw: st.DrawFn, number: int) -> Execution:
    axes = draw(st.lists(st.sampled_from(AXES), max_size=3))
    fields: dict[str, Any] = {
        "tool": tool_of(number),
        "context": draw(st.sampled_from([None, "fetch a page", "translate it"])),
        "session_id": draw(st.sampled_from([None, "a", "b", "c"])),
        "parameters": {"action": draw(st.sampled_from(["open", "close", "not a name"]))},
        "attempt": draw(st.integers(1, 2)),
    }
    match draw(st.integers(0, 4)):
        case 0:
            call = a_call(number, result=["x"], **fields)
        case 1:
            call = a_call(number, result=[], **fields)
        case 2:
            call = a_referral(number, *axes, **fields)
        case 3:
            call = a_referral(number, *axes, kind="low_utility", evidence=None, **fields)
        case _:
            details = {"path": f"/films/{number}", "mismatch": "min_items"}
            call = a_failure(number, "contract_violation", details=details, **fields)
    # Some at the same time.
    at = START + timedelta(hours=draw(st.integers(0, 3)))
    return call.model_copy(update={"timestamp": at})


@dataclass(frozen=True, slots=True)
class Arrival:
    """In which order records arrive, and after which of them the indexer comes by."""

    records: list[Record]
    learned_after: set[int]
    batch: int


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Arrival, Arrival]:
    """The same records twice: in one batch, and in any order and batches."""
    given_records = draw(records())
    order = draw(st.permutations(given_records))
    cuts = draw(st.sets(st.integers(0, len(order))))
    at_once = Arrival(given_records, set(), indexer_module.BATCH)
    return at_once, Arrival(order, cuts, draw(st.integers(1, 4)))


@asynccontextmanager
async def rooms() -> AsyncIterator[tuple[LogStore, Learn, Learn]]:
    """A store of its own, how to learn all that waits in it, as after a restart, and all anew."""
    embedder = HashingEmbedder()
    with TemporaryDirectory() as folder:
        store = await open_sqlite_store(Path(folder) / "data")
        index = await EdgeIndex.open(
            Path(folder) / "vectors",
            dimension=embedder.dimension,
            fingerprint=embedder.fingerprint,
        )

        async def learn() -> None:
            indexer = Indexer(store=store, memory=Memory(store), index=index, embedder=embedder)
            while await indexer.learn_step():
                pass
            await indexer.close()

        async def anew() -> None:
            await learn_anew(store, index, embedder)

        yield store, learn, anew
        await index.close()
        await embedder.close()
        await store.close()


async def learned_from(arrival: Arrival) -> tuple[Any, Any]:
    """All that is known of the tools after the records arrived so, and after a rebuild."""
    async with rooms() as (store, learn, anew):
        intake = Intake(store, Redactor(), lambda: None)
        calls: list[Execution | Rejection] = []
        for place, record in enumerate(arrival.records):
            if isinstance(record, Execution):
                calls.append(record)
            elif isinstance(record, CorrectionRecord):
                await store.add_correction(record)
            else:
                await store.add_mark(record)
            if place in arrival.learned_after:
                await intake.accept(WORKSPACE, calls)
                calls.clear()
                await learn()
        await intake.accept(WORKSPACE, calls)
        await learn()
        before = await known_in(store)
        await anew()
        return before, await known_in(store)


async def known_in(store: LogStore) -> dict[str, Any]:
    """Health, axes, trials and ties, in a form in which rounding makes no difference."""
    health = {
        row.tool.tool_name: KnownHealth.model_validate_json(row.data)
        for row in await store.get_health(TOOLS)
    }
    statistics = {
        row.tool.tool_name: ToolStatistics.model_validate_json(row.data)
        for row in await store.get_statistics(TOOLS)
    }
    scenarios = await documents_of(
        store, [each for known in statistics.values() for each in known.scenarios]
    )
    return {
        "health": {name: rounded(known.model_dump()) for name, known in health.items()},
        "axes": rounded((await book_of(store)).model_dump()),
        "statistics": {name: known.model_dump() for name, known in statistics.items()},
        "scenarios": {each.document_id: (each.count, each.trials) for each in scenarios},
        "ties": {
            each.correction_id: each.tool for each in await store.list_corrections(WORKSPACE, 99)
        },
        "pending": (await store.counts()).pending
        - len(await store.pending_vectors(WORKSPACE, 999)),
    }


def rounded(value: Any) -> Any:
    """With weights to 9 digits: sums in another order differ in the last ones."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 9) if isinstance(value, float) else value


@settings(max_examples=12)  # two stores each, durable: some 100 ms an example
@given(arrivals())
def test_the_same_is_known_however_it_arrives(both: tuple[Arrival, Arrival]) -> None:
    """In any order, cut anywhere, across restarts and a rebuild: every record counts once."""
    found = []
    for arrival in both:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(indexer_module, "BATCH", arrival.batch)
            patch.setattr(indexer_module, "CORRECTED_BATCH", arrival.batch)
            found.extend(asyncio.run(learned_from(arrival)))
    assert found[0]["pending"] == 0
    for other in found[1:]:
        assert other == found[0]


@given(
    st.lists(st.tuples(st.lists(st.sampled_from("abcde"), max_size=4), st.integers(0, 9))),
    st.randoms(use_true_random=False),
)
def test_axes_are_counted_in_any_order(
    referrals: list[tuple[list[str], int]], random: Random
) -> None:
    """Each once for a referral, and each pair once, in either order of its two."""
    books = AxisBook(), AxisBook()
    for book, order in zip(
        books, (referrals, random.sample(referrals, len(referrals))), strict=True
    ):
        for axes, hours in order:
            spelled = {axis: f"{axis}{hours}" for axis in axes}
            count_axes(book, spelled, START + timedelta(hours=hours))
    assert rounded(books[0].model_dump()) == rounded(books[1].model_dump())
    assert {axis: seen.tally.count for axis, seen in books[0].axes.items()} == {
        axis: sum(axis in axes for axes, _ in referrals)
        for axis in {axis for axes, _ in referrals for axis in axes}
    }
