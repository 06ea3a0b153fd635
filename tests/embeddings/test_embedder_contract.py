"""What every embedder promises (`embeddings.protocol.Embedder`)."""

import asyncio

import numpy as np
import pytest

from embeddings.embedders import CachedEmbedder, HashingEmbedder, hashed_vector
from embeddings.protocol import Embedder, EmbeddingError
from tests.embeddings.tool_errors import GROUPS

ODD_TEXTS = [
    "",
    " \t\n",
    "\x00NUL\x00",
    "\ud800 a lone surrogate \udfff",
    "日本語のエラー: 見つかりません",
    "خطأ: غير موجود",
    "e\u0301 \u200b\u202e \U0001f9e8",
    "!!! ??? ---",
    "a" * 5_000,
    "topK " * 20_000,
]


async def _hashing(_request: pytest.FixtureRequest) -> Embedder:
    return HashingEmbedder()


async def _cached(_request: pytest.FixtureRequest) -> Embedder:
    return CachedEmbedder(HashingEmbedder(), 100)


async def _onnx(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue("onnx_embedder")


async def _sentence_transformers(request: pytest.FixtureRequest) -> Embedder:
    return request.getfixturevalue("torch_embedder")


EMBEDDERS = [
    pytest.param(_hashing, id="hashing"),
    pytest.param(_cached, id="cached"),
    pytest.param(_onnx, id="onnx", marks=pytest.mark.real),
    pytest.param(_sentence_transformers, id="sentence-transformers", marks=pytest.mark.real),
]


@pytest.fixture(params=EMBEDDERS)
async def embedder(request):
    opened = await request.param(request)
    yield opened
    if request.param not in (_onnx, _sentence_transformers):  # those belong to the session
        await opened.close()


async def test_vectors_are_unit_float32_rows(embedder):
    """Every row has length 1, also for empty and odd texts, so a dot product is a cosine.

    No text gives no row, so callers need no special case.
    """
    vectors = await embedder.embed(ODD_TEXTS, "document")
    assert vectors.shape == (len(ODD_TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert (await embedder.embed([], "query")).shape == (0, embedder.dimension)


async def test_order_is_kept_and_a_batch_equals_single_texts(embedder):
    """Sorting, padding and batching are invisible: each row is what its text alone gives."""
    texts = [text for group in GROUPS for text in group] + ["long " * 300, "x"]
    batch = await embedder.embed(texts, "document")
    singles = np.concatenate([await embedder.embed([text], "document") for text in texts])
    assert np.einsum("ij,ij->i", batch, singles).min() > 0.9999


async def test_equal_texts_have_equal_vectors_and_others_have_others(embedder):
    """The embedder is a function of the text."""
    first, again, other = await embedder.embed(["not found", "not found", "timed out"], "query")
    assert first @ again > 0.9999
    assert first @ other < 0.9


async def test_what_is_beyond_the_window_does_not_fail(embedder):
    """Text is cut at the window: a megabyte embeds as its beginning does."""
    head = "Invalid parameter: topK must be <= 10. " * 900
    short, long = await embedder.embed([head, head + "x" * 1_000_000], "document")
    assert short @ long > 0.999


async def test_near_texts_beat_unrelated_ones(embedder):
    """Of a few dozen real tool errors, the nearest other text is of the same group, nearly always.

    This is what makes an embedder fit for retrieval, and for tests that rely on it.
    """
    texts = [text for group in GROUPS for text in group]
    groups = [number for number, group in enumerate(GROUPS) for _ in group]
    vectors = await embedder.embed(texts, "document")
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -1.0)
    right = sum(
        groups[best] == group for best, group in zip(similarity.argmax(1), groups, strict=True)
    )
    assert right / len(texts) >= 0.9
    same = np.equal.outer(groups, groups) & ~np.eye(len(texts), dtype=bool)
    assert similarity[same].mean() > similarity[~same].mean() + 0.2


async def test_the_event_loop_goes_on_while_a_bulk_is_embedded(embedder):
    """A heartbeat keeps beating during an embedding of many batches: nothing blocks the loop."""
    texts = [f"{text} ({number})" for number in range(4) for group in GROUPS for text in group]
    bulk = asyncio.create_task(embedder.embed(texts, "document"))
    beats = 0
    while not bulk.done():
        await asyncio.sleep(0)
        beats += 1
    assert (await bulk).shape == (len(texts), embedder.dimension)
    assert beats > 10  # an embedder that blocks lets it beat twice


async def test_concurrent_requests_get_their_own_vectors(embedder):
    """Requests that run together do not mix up their rows."""
    texts = [f"error {number} of tool {number % 7}" for number in range(40)]
    alone = await embedder.embed(texts, "query")
    together = await asyncio.gather(*(embedder.embed([text], "query") for text in texts))
    assert np.einsum("ij,ij->i", alone, np.concatenate(together)).min() > 0.9999


async def test_a_closed_embedder_says_so():
    """Use after close is an `EmbeddingError`, and closing twice does nothing."""
    for opened in (HashingEmbedder(), CachedEmbedder(HashingEmbedder(), 10)):
        await opened.close()
        await opened.close()
        with pytest.raises(EmbeddingError, match="closed"):
            await opened.embed(["text"], "query")


def test_hashed_vectors_are_the_same_on_every_machine():
    """The hash is fixed, not Python's salted one: stored vectors stay valid."""
    expected = [0.1055, -0.1055, 0.3517, 0.1055, 0.3517, -0.7587, -0.1407, -0.3517]
    np.testing.assert_allclose(hashed_vector("topK", 8), expected, atol=1e-4)


def test_case_and_convention_do_not_matter():
    """`topK`, `TopK` and `top_k` are one name."""
    assert hashed_vector("TopK", 384) @ hashed_vector("top_k", 384) > 0.999


def test_a_shared_part_of_a_word_brings_texts_nearer():
    """n-grams see `parameter` in `parameters`."""
    word = hashed_vector("parameters", 384)
    assert word @ hashed_vector("parameter", 384) > word @ hashed_vector("revision", 384) + 0.3
