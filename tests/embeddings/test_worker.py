"""The thread that runs a model: what it runs next, and what becomes of failures."""

import asyncio
import threading

import numpy as np
import pytest

from embeddings.protocol import MAX_BATCH_CHARACTERS, EmbeddingError, ThreadedEmbedder


class Model:
    """Encodes a text to its length, and holds its first batch until told to go on."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.began = threading.Event()
        self.go_on = threading.Event()

    def encode(self, texts, _role):
        self.batches.append(texts)
        self.began.set()
        assert self.go_on.wait(30)
        if "fail" in texts:
            raise RuntimeError("the runtime is unhappy")
        return np.array([[len(text)] for text in texts], dtype=np.float32)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
async def worker(model):
    running = ThreadedEmbedder(model.encode, name="test", fingerprint="", dimension=1)
    yield running
    model.go_on.set()
    await running.close()


async def _begun(model: Model) -> None:
    assert await asyncio.to_thread(model.began.wait, 30)
    await asyncio.sleep(0)


async def test_a_question_overtakes_a_bulk_of_documents(model, worker):
    """Somebody waits for a query: it runs right after the batch that is running."""
    bulk = asyncio.create_task(worker.embed(["d" * 1_000] * 20, "document"))
    await _begun(model)
    question = asyncio.create_task(worker.embed(["question"], "query"))
    await asyncio.sleep(0)  # its job is in the queue now
    model.go_on.set()
    await asyncio.gather(bulk, question)
    assert model.batches[1] == ["question"]
    assert len(model.batches) > 10


async def test_questions_that_queued_up_run_together(model, worker):
    """Many small requests cost few runs of the model, and each gets its own rows."""
    first = asyncio.create_task(worker.embed(["a"], "query"))
    await _begun(model)
    others = [asyncio.create_task(worker.embed(["b" * n], "query")) for n in range(2, 12)]
    await asyncio.sleep(0)
    model.go_on.set()
    rows = await asyncio.gather(first, *others)
    assert [row.item() for row in rows] == list(range(1, 12))
    assert len(model.batches) == 2


async def test_batches_hold_texts_of_like_length_within_bounds(model, worker):
    """Padding is kept small and a batch short, whatever the order of the texts."""
    model.go_on.set()
    texts = ["x" * n for n in (900, 5, 5_000, 7, 800, 6, 3_000)]
    rows = await worker.embed(texts, "document")
    assert [int(row.item()) for row in rows] == [len(text) for text in texts]
    for batch in model.batches:
        longest = max(map(len, batch))
        assert len(batch) == 1 or len(batch) * longest <= MAX_BATCH_CHARACTERS


async def test_a_failure_reaches_its_caller_and_no_other(model, worker):
    """What a runtime raises arrives as `EmbeddingError`, and the worker goes on."""
    model.go_on.set()
    with pytest.raises(EmbeddingError, match="unhappy"):
        await worker.embed(["fail"], "query")
    assert (await worker.embed(["fine"], "query")).item() == 4


async def test_what_nobody_waits_for_any_more_is_not_run(model, worker):
    """A cancelled bulk stops costing time after the batch that runs."""
    bulk = asyncio.create_task(worker.embed(["d" * 2_000] * 20, "document"))
    await _begun(model)
    bulk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bulk
    model.go_on.set()
    await worker.embed(["after"], "document")
    assert len(model.batches) == 2


async def test_closing_fails_what_waits(model, worker):
    """Nobody waits forever for a closed worker, and it takes no more."""
    running = asyncio.create_task(worker.embed(["running"], "query"))
    await _begun(model)
    waiting = asyncio.create_task(worker.embed(["waiting"], "document"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(worker.close())
    with pytest.raises(EmbeddingError, match="closed"):
        await waiting
    model.go_on.set()
    await closing
    assert (await running).item() == 7
    with pytest.raises(EmbeddingError, match="closed"):
        await worker.embed(["late"], "query")


async def test_what_the_model_calls_long_decides_which_texts_run_together(model):
    """Texts are put together by how long the model says they are, not by their characters."""
    model.go_on.set()

    def lengths(texts: list[str]) -> list[int]:
        return [2_000 if text.startswith("0") else 10 for text in texts]

    running = ThreadedEmbedder(
        model.encode, name="test", fingerprint="", dimension=1, lengths=lengths
    )
    await running.embed(["0", "a" * 900, "00", "b" * 800], "document")
    await running.close()
    assert sorted(map(sorted, model.batches)) == [["0"], ["00"], ["a" * 900, "b" * 800]]
