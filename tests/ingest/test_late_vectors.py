"""Whoever was stopped while it embedded leaves nothing old in the index, which knows no lease."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from embeddings.hashing import HashingEmbedder
from embeddings.protocol import Role
from ingest.claims import Claims
from ingest.indexer import Indexer
from mongo.protocol import LogStore
from mongo.sqlite import open_sqlite_store
from retrieval.index.protocol import IndexPoint
from retrieval.memory import Memory
from tests.ingest.fitness_samples import WORKSPACE, a_tool
from tests.ingest.lease_samples import Clock
from tests.ingest.shared_history import NoIndex

TTL = 9.0


class Texts(NoIndex):
    """What stands in the index, by document."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: dict[str, str] = {}

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        self.terms.update((each.document_id, each.terms) for each in points)

    async def delete(self, document_ids: Sequence[str]) -> None:
        for each in document_ids:
            self.terms.pop(each, None)


class Stopped(HashingEmbedder):
    """Stops its process in the middle: meanwhile others go on."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._meanwhile: Callable[[], Awaitable[None]] | None = meanwhile

    async def embed(self, texts: Sequence[str], role: Role) -> Any:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile:
            await meanwhile()
        return await super().embed(texts, role)


@asynccontextmanager
async def two(
    folder: Path, meanwhile: Callable[[LogStore, Indexer], Awaitable[None]]
) -> AsyncIterator[tuple[LogStore, Texts, Indexer]]:
    """A store, an index, and one of two who learn; the other one goes on when it is stopped."""
    clock, index = Clock(), Texts()
    async with await open_sqlite_store(folder) as store:
        claims = [Claims(store, ttl=TTL, clock=clock) for _ in range(2)]
        memory = Memory(store)

        async def others() -> None:
            await claims[1].claim(WORKSPACE)  # it sees the lease, and from then on no beat
            clock.now += TTL
            await meanwhile(store, other)

        one, other = (
            Indexer(store=store, memory=memory, index=index, embedder=embedder, claims=claim)
            for embedder, claim in zip((Stopped(others), HashingEmbedder()), claims, strict=True)
        )
        await one.learn_step()
        yield store, index, one
        for each in (one, other):
            await each.close()
        for claim in claims:
            await claim.close()


@pytest.mark.parametrize("change", ["another text", "gone", "gone and back"])
async def test_an_old_text_is_not_left_in_the_place_of_a_newer_one(
    tmp_path: Path, change: str
) -> None:
    """Changed, removed, or put back meanwhile: the index says what the store says."""

    async def meanwhile(store: LogStore, other: Indexer) -> None:
        if change != "another text":
            await store.delete_tool(WORKSPACE, "t")
            await other.run_until_empty()
        if change != "gone":
            await store.put_tool(a_tool(description="zebra"))
        await other.run_until_empty()

    async with two(tmp_path, meanwhile) as (store, index, one):
        await store.put_tool(a_tool(description="first"))
        await one.learn_step()
        await one.embed_step()
        assert (await store.counts()).pending == 0
        if change == "gone":
            assert index.terms == {}
        else:
            [terms] = index.terms.values()
            assert "zebra" in terms
            assert "first" not in terms


async def test_a_vector_that_came_back_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal comes too late: the tool was put again meanwhile, and is found."""
    clock, index = Clock(), Texts()
    async with await open_sqlite_store(tmp_path) as store:
        claims = [Claims(store, ttl=TTL, clock=clock) for _ in range(2)]
        one, other = (
            Indexer(
                store=store, memory=Memory(store), index=index, embedder=HashingEmbedder(),
                claims=claim,
            )
            for claim in claims
        )  # fmt: skip
        await store.put_tool(a_tool(description="first"))
        await one.run_until_empty()
        await store.delete_tool(WORKSPACE, "t")
        await one.learn_step()
        delete = index.delete

        async def late(document_ids: Sequence[str]) -> None:
            monkeypatch.setattr(index, "delete", delete)
            await claims[1].claim(WORKSPACE)
            clock.now += TTL
            await store.put_tool(a_tool(description="zebra"))
            await other.run_until_empty()
            await delete(document_ids)

        monkeypatch.setattr(index, "delete", late)
        await one.embed_step()
        [terms] = index.terms.values()
        assert "zebra" in terms
        for each in (one, other):
            await each.close()
        for claim in claims:
            await claim.close()
