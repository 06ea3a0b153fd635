"""Opening an embedder by its name in the settings, with an LRU of vectors before it.

A text is embedded once, also when many ask at once.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from embeddings.embedders import (
    DEFAULT_THREADS,
    HashingEmbedder,
    OnnxEmbedder,
    SentenceTransformersEmbedder,
)
from embeddings.models import BUNDLED_NAME, local_model
from embeddings.protocol import Embedder, EmbeddingError, Role, Vectors

Key = bytes
"""Digest of role and text: a cached megabyte of text would cost a megabyte otherwise."""


class CachedEmbedder:
    """`Embedder` that remembers the vectors of the texts last asked for.

    Serves one event loop at a time. Closing it closes the embedder behind it.

    Args:
        embedder: Makes the vectors that are not remembered.
        size: How many vectors are kept at most; 10,000 of MiniLM's take 17 MB. With 0 nothing is
            kept, and concurrent requests for one text still share its embedding.
    """

    def __init__(self, embedder: Embedder, size: int) -> None:
        if size < 0:
            raise ValueError(f"the cache size is {size}; it must be 0 or more")
        self.embedder = embedder
        """The embedder behind, for work whose texts will not come again, such as a rebuild."""
        self.name = embedder.name
        self.fingerprint = embedder.fingerprint
        self.dimension = embedder.dimension
        self._cached: LRUCache[Key, NDArray[np.float32]] = LRUCache(size)
        self._running: dict[Key, asyncio.Future[NDArray[np.float32]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """See `Embedder.embed`."""
        keys = [_key(text, role) for text in texts]
        found: dict[Key, NDArray[np.float32]] = {}
        awaited: dict[Key, asyncio.Future[NDArray[np.float32]]] = {}
        new: dict[Key, str] = {}
        for key, text in zip(keys, texts, strict=True):
            if key in self._cached:
                found[key] = self._cached[key]
            elif key in self._running:
                awaited[key] = self._running[key]
            else:
                new[key] = text
        if new:
            awaited |= self._start(new, role)
        if awaited:
            # wait() leaves the futures alone when this caller is cancelled: others may share them
            await asyncio.wait(awaited.values())
        found |= {key: future.result() for key, future in awaited.items()}
        vectors = np.empty((len(keys), self.dimension), dtype=np.float32)
        for row, key in enumerate(keys):
            vectors[row] = found[key]
        return vectors

    async def close(self) -> None:
        """Close the embedder behind and forget everything."""
        await self.embedder.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._cached.clear()

    def _start(
        self, new: dict[Key, str], role: Role
    ) -> dict[Key, asyncio.Future[NDArray[np.float32]]]:
        loop = asyncio.get_running_loop()
        futures = {key: loop.create_future() for key in new}
        self._running |= futures
        # A task of its own, because the caller that began it may be cancelled while others wait.
        task = loop.create_task(self._fill(list(new.values()), role, futures))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return futures

    async def _fill(
        self, texts: list[str], role: Role, futures: dict[Key, asyncio.Future[NDArray[np.float32]]]
    ) -> None:
        try:
            vectors = await self.embedder.embed(texts, role)
        except Exception as error:  # noqa: BLE001 - handed to every caller that waits
            for future in futures.values():
                future.set_exception(error)
                future.exception()  # seen: nobody may be waiting any more
        else:
            for (key, future), vector in zip(futures.items(), vectors, strict=True):
                if self._cached.maxsize:
                    # a copy: a row is a view that would keep its whole batch alive
                    self._cached[key] = vector.copy()
                future.set_result(vector)
        finally:
            for key, future in futures.items():
                future.cancel()  # no effect but when this task itself was cancelled
                del self._running[key]


def _key(text: str, role: Role) -> Key:
    content = f"{role}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()


ACCEPTED = (
    f"'{BUNDLED_NAME}' (the bundled model, on ONNX Runtime), "
    "'onnx:FOLDER' (a BERT in a sentence-transformers folder, on ONNX Runtime), "
    "'st:NAME_OR_PATH' (any model of sentence-transformers, on torch), "
    "'hashing' (no model)"
)


async def open_embedder(
    model: str = BUNDLED_NAME,
    *,
    cache_size: int = 10_000,
    threads: int | None = None,
) -> CachedEmbedder:
    """The embedder of that name, with a cache of texts before it. The caller closes it.

    Args:
        model: `all-MiniLM-L6-v2`, `onnx:FOLDER`, `st:NAME_OR_PATH` or `hashing`.
        cache_size: How many texts' vectors are remembered.
        threads: Threads of ONNX Runtime; 2 when `None`.
    """
    threads = threads or DEFAULT_THREADS
    kind, _, argument = model.partition(":")
    embedder: Embedder
    if model == "hashing":
        embedder = HashingEmbedder()
    elif model == BUNDLED_NAME:
        embedder = await OnnxEmbedder.open(threads=threads)
    elif kind == "onnx" and argument:
        embedder = await OnnxEmbedder.open(partial(local_model, Path(argument)), threads=threads)
    elif kind == "st" and argument:
        embedder = await SentenceTransformersEmbedder.open(argument)
    else:
        raise EmbeddingError(f"unknown embedding model {model!r}; accepted are {ACCEPTED}")
    return CachedEmbedder(embedder, cache_size)
