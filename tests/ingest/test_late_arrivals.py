"""Positions are given out before records are there: one may be learned from before an earlier one.

Two services store the halves of one repair. Whichever becomes visible first, the repair is learned
once.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aftercall.models import Execution
from aftercall.redaction import Redactor
from embeddings.hashing import HashingEmbedder
from ingest.indexer import Indexer
from ingest.intake import Intake
from mongo.mongodb import MongoLogStore, MongoOptions, open_mongo_store
from mongo.mongodb import positions as mongo_positions
from mongo.mongodb.collections import Collections
from mongo.records import ToolKey
from retrieval.fitness.statistics import ToolStatistics
from retrieval.memory import Memory
from tests.ingest.fitness_samples import a_mark, id_of
from tests.ingest.health_samples import a_correction
from tests.ingest.shared_history import NoIndex
from tests.mongo.mongo_server import SharedMongo
from tests.retrieval.cases import an_execution

WORKSPACE = "default"
TOOL = ToolKey(WORKSPACE, "srv", "tool")


@pytest.fixture(scope="module")
def mongo() -> Iterator[SharedMongo]:
    server = SharedMongo()
    yield server
    server.close()


@pytest.fixture
async def store(mongo: SharedMongo, tmp_path: Path) -> AsyncIterator[MongoLogStore]:
    async with await open_mongo_store(MongoOptions(mongo.uri(), mongo.database(tmp_path))) as made:
        yield made


def a_try(number: int, *, failed: bool, session: str = "s") -> Execution:
    message = "Ref 'master' did not resolve to an object"
    return an_execution(
        execution_id=id_of(number),
        timestamp=f"2026-02-20T14:{number:02d}:00Z",
        tool_name=TOOL.tool_name,
        server_name=TOOL.server_name,
        session_id=session,
        parameters={"repo_path": "/r", "revision": "master" if failed else "main"},
        outcome="failure" if failed else "success",
        error={"type": "ToolError", "message": message} if failed else None,
    )


class Late:
    """Gives the next executions positions that were reserved before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._reserve = mongo_positions.reserve
        self.next: int | None = None
        monkeypatch.setattr(mongo_positions, "reserve", self)

    async def __call__(self, db: Collections, workspace: str, kind: str, count: int = 1) -> int:
        if kind == "executions" and self.next is not None:
            given, self.next = self.next, None
            return given
        return await self._reserve(db, workspace, kind, count)

    async def reserve(self, store: MongoLogStore) -> int:
        """As a service does that is slow to store what it got."""
        return await self._reserve(store._db, WORKSPACE, "executions", 1)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    return Late(monkeypatch)


async def accept(store: MongoLogStore, *executions: Execution) -> None:
    await Intake(store, Redactor(), lambda: None).accept(WORKSPACE, list(executions))


async def learn(store: MongoLogStore, indexer: Indexer | None = None) -> None:
    """All that is queued; by a process that knows nothing yet unless another is given."""
    learner = indexer or an_indexer(store)
    await learner.run_until_empty()
    if indexer is None:
        await learner.close()


def an_indexer(store: MongoLogStore) -> Indexer:
    return Indexer(store=store, memory=Memory(store), index=NoIndex(), embedder=HashingEmbedder())


async def repairs(store: MongoLogStore) -> list[tuple[int, int]]:
    return sorted(
        (int(row.failed_id[-4:], 16), int(row.mended_id[-4:], 16))
        for row in await store.list_repairs(TOOL, 100)
    )


@pytest.mark.parametrize("is_fresh", [True, False], ids=["another process", "the same process"])
async def test_a_failure_that_becomes_visible_after_what_mended_it_was_learned(
    store: MongoLogStore, late: Late, *, is_fresh: bool
) -> None:
    """Its position is lower than that of the success: it makes the repair, once."""
    indexer = an_indexer(store)
    position = await late.reserve(store)
    await accept(store, a_try(2, failed=False))
    await learn(store, indexer)
    late.next = position
    await accept(store, a_try(1, failed=True))
    await learn(store, None if is_fresh else indexer)
    assert await repairs(store) == [(1, 2)]
    await accept(store, a_try(9, failed=False))
    await learn(store, indexer)
    assert await repairs(store) == [(1, 2)]
    await indexer.close()


async def test_a_late_arrival_hides_nothing_from_its_batch(
    store: MongoLogStore, late: Late
) -> None:
    """What was learned between it and the others of its batch is looked back on as ever."""
    indexer = an_indexer(store)
    position = await late.reserve(store)
    await accept(store, a_try(1, failed=True))
    await learn(store, indexer)
    late.next = position
    await accept(store, a_try(7, failed=False, session="elsewhere"))
    await accept(store, a_try(2, failed=False))
    await learn(store, indexer)
    assert await repairs(store) == [(1, 2)]
    await indexer.close()


async def test_what_is_said_of_a_learned_call_is_tied_beside_a_late_arrival(
    store: MongoLogStore, late: Late
) -> None:
    """A correction and a mark of it are learned from, though its position is above the batch's."""
    indexer = an_indexer(store)
    position = await late.reserve(store)
    await accept(store, a_try(1, failed=False))
    await learn(store, indexer)
    await store.add_correction(a_correction(1, of=1))
    await store.add_mark(a_mark(1, of=1, tool=TOOL))
    late.next = position
    await accept(store, a_try(7, failed=False, session="elsewhere"))
    await learn(store, indexer)
    assert len(await store.list_corrections(WORKSPACE, 10, tool=TOOL)) == 1
    [row] = await store.get_statistics([TOOL])
    fared = ToolStatistics.model_validate_json(row.data)
    assert sum(each.failures for each in fared.versions.values()) == 1
    assert sum(each.successes for each in fared.versions.values()) == 1
    await indexer.close()
