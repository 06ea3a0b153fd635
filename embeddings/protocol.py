"""The embedder's protocol (text to unit vectors), and the embedder that runs a model in threads.

What matters is what a model runs next. A text that someone waits for (role `query`) overtakes the
rest of a bulk of documents: it has a thread of its own where the model takes two batches at once,
and else it is the next batch. What has queued up meanwhile is run together.

What the package cannot do, such as load a model, raises `EmbeddingError`, which names the cure.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Shape (n, dimension), dtype float32, each row of unit length: the dot product is the cosine."""
Role = Literal["query", "document"]
"""Whether a text asks or is looked for; some models embed the two differently."""
MAX_TEXT_CHARACTERS = 32_768
"""Characters of a text that reach a tokenizer; MiniLM's 256 tokens end far earlier."""
MAX_BATCH_CHARACTERS = 1_024
"""Longest text of a batch times its size: 256 tokens of 4 characters, 22 ms of MiniLM on two cores.

That is as long as a question waits for a bulk, and as much memory as a batch takes; batches of 128
to 1,024 tokens were measured to take as long for a text.
"""
MAX_BATCH_TEXTS = 64
Encode = Callable[[list[str], Role], Vectors]
"""Vectors of a few texts, blocking; texts are already clean and cut."""
Lengths = Callable[[list[str]], list[int]]
"""How long texts are for the model, in characters; blocking. Texts of like length run together."""


def count_characters(texts: list[str]) -> list[int]:
    """Return the number of characters of each text."""
    return [len(text) for text in texts]


class EmbeddingError(Exception):
    """A model is missing, damaged or unusable; the message names the cure."""


class Embedder(Protocol):
    """Turns texts into vectors, off the event loop."""

    name: str
    """The model's, such as `all-MiniLM-L6-v2`."""
    fingerprint: str
    """Changes whenever the vectors would: name and hash of the weights. Kept with the index."""
    dimension: int
    """Length of a vector."""

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Vectors of the texts, in order; an empty sequence gives shape (0, dimension).

        Texts beyond the window are cut. Never blocks the event loop; may raise an `EmbeddingError`.
        """

    async def close(self) -> None:
        """Release threads and memory; closing twice does nothing."""


@dataclass(frozen=True, slots=True)
class _Job:
    texts: list[str]
    longest: int
    future: Future[Vectors]


class ThreadedEmbedder:
    """`Embedder` that runs `encode` in a thread of its own, for any number of event loops.

    If `encode` may be called `at_once` from two threads, documents have one of low priority.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        name: str,
        fingerprint: str,
        dimension: int,
        lengths: Lengths = count_characters,
        at_once: bool = False,
    ) -> None:
        self._encode = encode
        self._lengths = lengths
        self.name = name
        self.fingerprint = fingerprint
        self.dimension = dimension
        self._queues: dict[Role, deque[_Job]] = {"query": deque(), "document": deque()}
        self._wakeup = threading.Condition()
        self._closed = False
        roles: list[list[Role]] = [["query"], ["document"]] if at_once else [["query", "document"]]
        # Daemons: an embedder that no one closed must not keep the interpreter from ending.
        self._threads = [
            threading.Thread(target=self._run_jobs, args=[own], name=f"embed-{name}", daemon=True)
            for own in roles
        ]
        for thread in self._threads:
            thread.start()

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """See `Embedder.embed`."""
        # Cut, and without lone surrogates, which no tokenizer takes.
        cut = (text[:MAX_TEXT_CHARACTERS].encode("utf-8", "replace") for text in texts)
        clean = [text.decode() for text in cut]
        # One text needs no order, and is what someone waits for.
        lengths = (
            await asyncio.to_thread(self._lengths, clean) if clean[1:] else count_characters(clean)
        )
        order = sorted(range(len(clean)), key=lengths.__getitem__)
        jobs: list[tuple[list[int], Future[Vectors]]] = []
        with self._wakeup:
            if self._closed:
                raise EmbeddingError("this embedder is closed; open another")
            for batch in _make_batches(lengths, order):
                future: Future[Vectors] = Future()
                texts_of_batch = [clean[index] for index in batch]
                self._queues[role].append(_Job(texts_of_batch, lengths[batch[-1]], future))
                jobs.append((batch, future))
            self._wakeup.notify_all()
        vectors = np.empty((len(clean), self.dimension), dtype=np.float32)
        try:
            for batch, future in jobs:
                part: Vectors = await asyncio.wrap_future(future)
                vectors[batch] = part
        finally:
            for _, future in jobs:
                future.cancel()  # after a failure or a cancellation no one waits for the rest
        return vectors

    async def close(self) -> None:
        """Stop after the batch that runs; what still waits fails with `EmbeddingError`."""
        await asyncio.to_thread(self._close_queue)

    def _close_queue(self) -> None:
        with self._wakeup:
            self._closed = True
            waiting = [job for queue in self._queues.values() for job in queue]
            for queue in self._queues.values():
                queue.clear()
            self._wakeup.notify_all()
        for job in waiting:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(EmbeddingError("the embedder was closed meanwhile"))
        for thread in self._threads:
            thread.join()

    def _run_jobs(self, roles: list[Role]) -> None:
        if roles == ["document"]:
            lower_priority()
        while (work := self._next_jobs(roles)) is not None:
            role, jobs = work
            running = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if not running:
                continue
            try:
                vectors = self._encode([text for job in running for text in job.texts], role)
            # Whatever a runtime raises belongs to the caller.
            except Exception as error:  # noqa: BLE001
                failure = EmbeddingError(f"the model failed on a batch: {error}")
                failure.__cause__ = error
                for job in running:
                    job.future.set_exception(failure)
                continue
            start = 0
            for job in running:
                job.future.set_result(vectors[start : start + len(job.texts)])
                start += len(job.texts)

    def _next_jobs(self, roles: list[Role]) -> tuple[Role, list[_Job]] | None:
        """Return a batch of the first of the roles that has any, once there is one."""
        with self._wakeup:
            self._wakeup.wait_for(lambda: self._closed or any(self._queues[each] for each in roles))
            if self._closed:
                return None
            role = next(each for each in roles if self._queues[each])
            return role, list(_take_batch(self._queues[role]))


_NICE = 10
"""Of a bulk: next to learning and answers on two cores, answers took three times as long at 0."""


def lower_priority() -> None:
    """Let other threads go before this one and those that it starts, where a thread can say so."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def _take_batch(queue: deque[_Job]) -> Iterator[_Job]:
    count = longest = 0
    while queue:
        job = queue[0]
        longest = max(longest, job.longest)
        count += len(job.texts)
        if count > len(job.texts) and not _fits_batch(count, longest):
            return
        yield queue.popleft()


def _make_batches(lengths: Sequence[int], order: Iterable[int]) -> Iterator[list[int]]:
    """Indices of the texts in batches; `order` goes from short to long."""
    batch: list[int] = []
    for index in order:
        if batch and not _fits_batch(len(batch) + 1, lengths[index]):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _fits_batch(count: int, longest: int) -> bool:
    return count <= MAX_BATCH_TEXTS and count * longest <= MAX_BATCH_CHARACTERS
