"""A Qdrant that fails at any call, before, after or amid it: each document has its vector, once.

The connection's faults are made at the client's calls; behind them is the client's own store. With
`AFTERCALL_TEST_QDRANT_URL` strict mode is switched on at a real server.
"""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import grpc
import pytest
from qdrant_client import models

from embeddings.embedders import HashingEmbedder
from ingest.indexer import Indexer
from mongo.sqlite.store import open_sqlite_store
from retrieval.index.protocol import QdrantPlace, VectorIndexUnavailableError
from retrieval.index.qdrant import (
    POINTS_PER_CALL,
    Connection,
    QdrantIndex,
    RequestMaker,
    payload_indexes,
)
from retrieval.knowledge.memory import DOCUMENT, Memory
from tests.ingest.histories import WORKSPACE, history
from tests.retrieval.index.documents import DIMENSION, document_id, point, question

MANY = 100
FAULTS = ("before", "amid", "after")
QUESTIONS = [
    question("text 1", tool_name=tool, server_name=server, document_ids=ids,
             terms=terms)
    for tool, server, ids, terms in product(
        (None, "search"), (None, "srv"),
        (None, tuple(document_id(f"text {n}") for n in range(MANY))), (None, ""),
    )
]  # fmt: skip
"""Of every shape that is asked."""


class Failing:
    """Fails once, at a call that writes."""

    def __init__(self, client: Any, patch: pytest.MonkeyPatch) -> None:
        self.calls, self.at, self.fault = 0, -1, "before"
        for name in ("upsert", "delete"):
            patch.setattr(client, name, self._flaky(getattr(client, name)))

    def fail_at(self, at: int, fault: str) -> None:
        """Count from 0 anew."""
        self.calls, self.at, self.fault = 0, at, fault

    def _flaky(self, whole: Any) -> Any:
        async def call(name: str, what: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls - 1 != self.at:
                return await whole(name, what, **options)
            if self.fault == "amid" and isinstance(what, list):
                await whole(name, what[: len(what) // 2], **options)
            elif self.fault == "after":
                await whole(name, what, **options)
            metadata = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, metadata, metadata)

        return call


@pytest.fixture
async def failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[QdrantPlace, Failing]]:
    """The client's own store, with faults."""
    place = QdrantPlace(f"local:{tmp_path / 'qdrant'}")
    connection = Connection(place)
    with connection.use_client("fail") as client:
        yield place, Failing(client, monkeypatch)
    await connection.aclose()


async def test_a_large_write_that_breaks_in_the_middle_is_sent_again_as_a_whole(
    failing: tuple[QdrantPlace, Failing],
) -> None:
    """Of a hundred points each is there once, wherever it broke."""
    place, faults = failing
    points = [point(f"text {number}") for number in range(MANY)]
    for at, fault in product(range(-(-MANY // POINTS_PER_CALL)), FAULTS):
        name = f"{at}-{fault}"
        index = await QdrantIndex.open(place, name, dimension=DIMENSION, fingerprint="f")
        faults.fail_at(at, fault)
        with pytest.raises(VectorIndexUnavailableError, match="tried again"):
            await index.upsert_points(points)
        assert await index.count_points() < MANY or (at, fault) == (1, "after")
        await index.upsert_points(points)
        assert await index.count_points() == MANY
        [[best, *_]] = await index.search_points([question("text 7")])
        assert best.document_id == document_id("text 7")
        await index.close()


async def test_the_learner_goes_on_after_a_fault_at_any_call(
    tmp_path: Path, failing: tuple[QdrantPlace, Failing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors are added and removed until there is one for each document."""
    monkeypatch.setattr("ingest.pacing.EMBED_BATCH", 5)
    place, faults = failing
    embedder = HashingEmbedder()
    log = list(history(3, 60, 1.0))

    async def learned(number: int, fault: str) -> int:
        store = await open_sqlite_store(tmp_path / f"{number}-{fault}")
        index = await QdrantIndex.open(
            place, f"{number}-{fault}", dimension=embedder.dimension, fingerprint="f"
        )
        faults.fail_at(number, fault)
        indexer = Indexer(
            store=store, memory=Memory(store), index=index, embedder=embedder, batch=9
        )
        for event in log:
            await store.events.append(WORKSPACE, [event])
        refused = 0
        while True:
            try:
                await indexer.catch_up()
                break
            except VectorIndexUnavailableError:
                refused += 1
        assert refused == (number >= 0)
        documents = await store.knowledge.count_rows(DOCUMENT.name)
        assert await index.count_points() == documents
        await indexer.close()
        await index.close()
        await store.close()
        return documents

    expected = await learned(-1, "no")
    for number, fault in product(range(faults.calls), FAULTS):
        assert await learned(number, fault) == expected


# Strict mode


def test_every_filter_is_of_fields_that_have_an_index() -> None:
    """Strict mode refuses others, as Qdrant's own cloud has it."""
    asked = [each for query in QUESTIONS for each in RequestMaker(shards=2).make_requests(query)]
    named: set[str] = set()

    def look(value: Any) -> None:
        match value:
            case models.FieldCondition():
                named.add(value.key)
            case models.Filter():
                for each in (value.must, value.should, value.must_not):
                    look(each)
            case list():
                for each in value:
                    look(each)
            case models.QueryRequest() | models.Prefetch() | models.SearchParams():
                for name in type(value).model_fields:
                    look(getattr(value, name))
            case models.IdfCorpusParams():
                look(value.corpus)

    look(asked)
    assert named == set(payload_indexes())
