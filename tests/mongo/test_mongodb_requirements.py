"""What a server must be able to do is asked at start and named; what it need not, done without.

The servers that lack something are a proxy that answers as they do.
"""

import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mongo.errors import StoreError
from mongo.mongodb.requirements import INDEXES
from mongo.mongodb.store import open_mongo_store
from mongo.records import Commit, Counter, CounterSum
from tests.mongo.conftest import mongo_options
from tests.mongo.store_samples import LOCAL, SEARCH, WORKSPACE, closing, make_events, read_all
from tests.mongo.test_mongodb_failover import Way, way_to
from tests.mongo.wire_proxy import Document

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)

Lacks = Callable[[Document], bool]
COUNTED = [("calls", 5, SEARCH), ("calls", 6, SEARCH), ("failed", 6, LOCAL), ("calls", 6, None)]


@pytest.fixture
async def way(tmp_path: Path) -> AsyncIterator[Way]:
    """A way to a server whose abilities can be taken away."""
    async with way_to(await mongo_options(tmp_path), as_set=False, opened=False) as found:
        yield found


def command(name: str) -> Lacks:
    """A server without a command."""
    return lambda statement: name in statement


def word(text: str) -> Lacks:
    """A server that does not know an option or an operator, wherever it stands."""
    return lambda statement: any(
        text in repr(statement.get(part)) for part in ("indexes", "updates", "pipeline")
    )


@pytest.mark.parametrize(
    ("lacks", "named"),
    [
        (command("findAndModify"), "findAndModify"), (command("aggregate"), "aggregation"),
        (word("currentDate"), "currentDate"), (word("unique"), "unique"),
        (word("setOnInsert"), "upsert"), (word("$lt"), "fence"),
    ],
    ids=["no findAndModify", "no aggregate", "no currentDate", "no unique", "no upsert", "no lt"],
)  # fmt: skip
async def test_what_a_server_lacks_is_named_at_start(way: Way, lacks: Lacks, named: str) -> None:
    """With what to use instead; nothing was begun, and a better server on the data opens."""
    way.proxy.refuses = lacks
    with pytest.raises(StoreError, match=rf"(?s)cannot do .*{named}.*operations\.md"):
        await open_mongo_store(way.through)
    way.proxy.refuses = lambda _: False
    async with closing(await open_mongo_store(way.through)) as store:
        assert await store.events.append(WORKSPACE, make_events(2)) == ["accepted"] * 2


async def test_a_server_that_is_too_old_is_named(way: Way) -> None:
    """With the version that it takes, not as a matter of the address."""
    way.proxy.wire_version = 6
    with pytest.raises(StoreError, match=r"too old for the driver.*update it to MongoDB \d"):
        await open_mongo_store(way.through)


async def test_what_a_server_lacks_and_need_not_have_is_done_without(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    """Indexes that expire, and joined groups: sums are the same; the log says what stays."""
    counted = {
        Counter(what, hour, tool): number
        for number, (what, hour, tool) in enumerate(
            [("calls", 5, SEARCH), ("calls", 6, SEARCH), ("failed", 6, LOCAL), ("calls", 6, None)],
            1,
        )
    }
    asked = {"since": 0, "until": 9}
    async with closing(await open_mongo_store(way.through)) as store:
        await store.knowledge.commit(Commit(WORKSPACE, counters=counted))
        expected = await all_sums(store.counters, asked)
    expires, joins = word("expireAfter"), word("concat")
    way.proxy.refuses = lambda statement: expires(statement) or joins(statement)
    await forget_what_was_tried(way)
    with caplog.at_level(logging.WARNING):
        async with closing(await open_mongo_store(way.through)) as store:
            assert await all_sums(store.counters, asked) == expected
            assert await store.events.append(WORKSPACE, make_events(3)) == ["accepted"] * 3
            assert len(await read_all(store.events)) == 3
    assert "expires no records" in caplog.text


async def test_a_server_is_asked_once_for_each_of_its_versions(way: Way) -> None:
    """A start costs one statement more, not ten."""
    async with closing(await open_mongo_store(way.through)):
        pass
    way.proxy.fail_at(None)
    async with closing(await open_mongo_store(way.through)):
        first = [next(iter(each)) for each in way.proxy.statements]
    assert "findAndModify" not in first
    await forget_what_was_tried(way)
    way.proxy.fail_at(None)
    async with closing(await open_mongo_store(way.through)):
        assert "findAndModify" in [next(iter(each)) for each in way.proxy.statements]


def test_no_index_is_of_a_part_of_its_records() -> None:
    """Some servers have no such indexes."""
    for indexes in INDEXES.values():
        for each in indexes:
            assert {"partialFilterExpression", "sparse"}.isdisjoint(each.document)


async def all_sums(counters: object, asked: dict[str, int]) -> list[set[CounterSum]]:
    """Sums by every choice of dimensions."""
    choices = [(), ("hour",), ("tool",), ("hour", "what"), ("tool", "what"), ("hour", "tool")]
    return [
        set(await counters.sum_counters(WORKSPACE, ["*"], by=by, **asked))  # type: ignore[attr-defined]
        for by in choices
    ]


async def forget_what_was_tried(way: Way) -> None:
    """As an update of the server does."""
    from pymongo import AsyncMongoClient

    async with AsyncMongoClient[Document](way.straight.uri) as client:
        await client[way.straight.database]["STORE"].update_one({}, {"$unset": {"server": ""}})
