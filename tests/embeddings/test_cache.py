"""The LRU of vectors before an embedder."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from embeddings.embedders import CachedEmbedder, HashingEmbedder
from embeddings.protocol import EmbeddingError, Role, Vectors


class Counting(HashingEmbedder):
    """The hashing embedder, with a record of what reached it and a gate to hold it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Role]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = False

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.asked.extend((text, role) for text in texts)
        await self.gate.wait()
        if self.fails:
            raise EmbeddingError("out of order")
        return await super().embed(texts, role)


@pytest.fixture
async def counting():
    return Counting()


@pytest.fixture
async def cached(counting):
    opened = CachedEmbedder(counting, 10)
    yield opened
    await opened.close()


async def test_a_known_text_is_not_embedded_again(counting, cached):
    """Also within one request; by its role, for some models embed the roles differently.

    Callers get their own array.
    """
    first = await cached.embed(["a", "b", "a"], "query")
    kept = first[[1, 0, 1]]
    first[:] = 0.0
    np.testing.assert_array_equal(kept, await cached.embed(["b", "a", "b"], "query"))
    await cached.embed(["a"], "document")
    assert counting.asked == [("a", "query"), ("b", "query"), ("a", "document")]


async def test_documents_push_out_no_question(counting, cached):
    """Thousands are embedded after a burst, each once."""
    await cached.embed(["a"], "query")
    for _ in range(2):
        await cached.embed([str(number) for number in range(20)], "document")
    await cached.embed(["a"], "query")
    assert len(counting.asked) == 1 + 2 * 20


async def test_the_least_recently_used_text_goes_first(counting, cached):
    """The cache is bounded by count, and what was used lately stays."""
    for text in ("b", "a", *(str(number) for number in range(8)), "a", "c"):
        await cached.embed([text], "query")
    counting.asked.clear()
    await cached.embed(["a", "c", "b"], "query")
    assert counting.asked == [("b", "query")]


async def test_concurrent_requests_for_a_text_embed_it_once(counting, cached):
    """Single flight: a hundred agents failing alike at once cost one embedding."""
    counting.gate.clear()
    requests = [asyncio.create_task(cached.embed(["same", "same"], "query")) for _ in range(100)]
    await asyncio.sleep(0)
    counting.gate.set()
    rows = await asyncio.gather(*requests)
    assert counting.asked == [("same", "query")]
    assert all(np.array_equal(row, rows[0]) for row in rows)


async def test_a_caller_that_gives_up_does_not_fail_the_others(counting, cached):
    """Whoever began an embedding may be cancelled; those who joined it still get it."""
    counting.gate.clear()
    first = asyncio.create_task(cached.embed(["same"], "query"))
    await asyncio.sleep(0)
    second = asyncio.create_task(cached.embed(["same"], "query"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    counting.gate.set()
    assert (await second).shape == (1, 384)
    assert counting.asked == [("same", "query")]


async def test_a_failure_is_not_remembered(counting, cached):
    """All who waited get the error, and the next request tries again."""
    counting.fails = True
    requests = [asyncio.create_task(cached.embed(["a"], "query")) for _ in range(3)]
    for request in requests:
        with pytest.raises(EmbeddingError, match="out of order"):
            await request
    counting.fails = False
    assert (await cached.embed(["a"], "query")).shape == (1, 384)
