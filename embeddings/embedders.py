"""The embedders: models on ONNX Runtime, any sentence-transformers model, and hashing.

`open_embedder` opens one by its name in the settings, with an LRU of vectors before it.

Hashing needs no model: it is for tests, and for machines where none may be installed. It sees
spelling, not meaning: texts that share words or parts of words are near, paraphrases are not. The
hashing trick with signs is that of Weinberger et al., "Feature Hashing for Large Scale Multitask
Learning" (ICML 2009).
"""

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from cachetools import LRUCache
from numpy.typing import NDArray
from tokenizers import Tokenizer

from aftercall.background import in_thread
from aftercall.explain import how_to_install
from aftercall.extensions import load_plugins
from embeddings import models
from embeddings.bert_graph import WEIGHTS_FILE
from embeddings.protocol import (
    Embedder,
    EmbeddingError,
    Role,
    ThreadedEmbedder,
    Vectors,
    lower_priority,
)
from embeddings.text import terms_text

NGRAM_LENGTHS = (3, 4)
"""Characters of the n-grams within a word, its ends marked."""
NGRAM_WEIGHT = 0.35
"""Of an n-gram against the word it is from: a shared word counts more than a shared syllable."""
SHORT_WORD_WEIGHT = 0.3
"""Of words of up to three letters (`the`, `of`, `is`, `10`), which nearly every text has."""
_DIMENSION = 384
"""As MiniLM's, so that the two can stand in for each other in a test."""


class HashingEmbedder(ThreadedEmbedder):
    """`Embedder` by feature hashing."""

    def __init__(self) -> None:
        super().__init__(
            lambda texts, _: np.stack([hashed_vector(text, _DIMENSION) for text in texts]),
            name="hashing",
            fingerprint=f"hashing-1@{_DIMENSION}",  # the number is the algorithm's version
            dimension=_DIMENSION,
        )


def hashed_vector(text: str, dimension: int) -> Vectors:
    """Return the unit vector of a text, shape (dimension,), float32; the same on every machine."""
    vector = np.zeros(dimension, dtype=np.float32)
    for feature, weight in _text_features(text):
        digest = zlib.crc32(feature.encode())
        vector[(digest >> 1) % dimension] += weight if digest & 1 else -weight
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:  # no word at all, or features that cancelled out: still a unit vector
        vector[0] = norm = 1.0
    return vector / np.float32(norm)


def _text_features(text: str) -> Iterator[tuple[str, float]]:
    for word, count in Counter(terms_text(text).split()).items():
        # the square root keeps a word repeated a hundred times from being all there is
        weight = count**0.5 * (SHORT_WORD_WEIGHT if len(word) <= 3 else 1.0)
        yield word, weight
        marked = f"<{word}>"
        for length in NGRAM_LENGTHS:
            for start in range(len(marked) - length + 1):
                yield marked[start : start + length], weight * NGRAM_WEIGHT


class SentenceTransformersEmbedder(ThreadedEmbedder):
    """`Embedder` on sentence-transformers. Construct with `await open(name_or_path)`.

    Slower than ONNX Runtime and with the memory of torch; takes every model, with its prompts for
    queries and documents. A folder of ours has the fingerprint that it has on ONNX Runtime.
    """

    def __init__(self, model: Any, *, name: str, weights_sha256: str) -> None:
        dimension = model.get_embedding_dimension()
        if not isinstance(dimension, int):
            raise EmbeddingError(f"{name} does not say the dimension of its vectors; take another")

        def encode_texts(texts: list[str], role: Role) -> Vectors:
            run = model.encode_query if role == "query" else model.encode_document
            vectors = run(texts, normalize_embeddings=True, show_progress_bar=False)
            return np.asarray(vectors, dtype=np.float32)

        super().__init__(
            encode_texts,
            name=name,
            fingerprint=models.model_fingerprint(name, weights_sha256),
            dimension=dimension,
        )

    @classmethod
    async def open(cls, name_or_path: str) -> "SentenceTransformersEmbedder":
        """Import torch and load the model, off the event loop; takes seconds."""
        model, weights = await asyncio.to_thread(_load_model, name_or_path)
        return cls(model, name=Path(name_or_path.rstrip("/")).name, weights_sha256=weights)


def _load_model(name_or_path: str) -> tuple[Any, str]:
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds, and torch
    except ImportError as error:
        raise EmbeddingError(
            "sentence-transformers is not installed: "
            + how_to_install("sentence-transformers", of_service=True)
        ) from error
    try:
        model = SentenceTransformer(name_or_path)
    except Exception as error:  # the hub, the file system and torch each raise their own
        raise EmbeddingError(
            f"cannot load the sentence-transformers model {name_or_path!r}: {error}"
        ) from error
    weights = Path(name_or_path) / WEIGHTS_FILE
    return model, models.sha256(weights) if weights.is_file() else _hash_of_tensors(model)


def _hash_of_tensors(model: Any) -> str:
    """Return the hash of the weights of a model whose files a hub's library keeps."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()


DEFAULT_THREADS = 2
"""Two cores: 2.7 ms for a short text of MiniLM, one: 4.1 ms; the service needs the others."""


class OnnxModel:
    """A model on ONNX Runtime; blocking, for any number of threads.

    The vector of a text is the mean of its tokens' hidden states, scaled to unit length.
    """

    def __init__(self, files: models.OnnxFiles, *, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # An arena would keep what the largest batch took, up to 180 MiB; without one each tensor of
        # a megabyte is asked of the system, and a batch takes half as long again. So it is emptied.
        self._emptied = onnxruntime.RunOptions()
        self._emptied.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        # Spinning threads save 0.3 ms of 2.7 while the machine is idle, and double the time when
        # another process wants the cores (6.5 ms instead of 3.2, two cores).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                files.graph, options, providers=["CPUExecutionProvider"]
            )
            # It would keep the graph, 24 MB, to be able to change its providers.
            vars(self._session).pop("_model_bytes", None)
            self._tokenizer = Tokenizer.from_file(str(files.tokenizer))
        except Exception as error:  # both libraries raise bare exceptions of their own making
            raise EmbeddingError(
                f"the model {files.name} does not load ({error}); install it again"
            ) from error
        self._inputs = [each.name for each in self._session.get_inputs()]
        self.dimension = int(self._session.get_outputs()[0].shape[-1])
        # The file asks for padding to 128 tokens; we pad to the longest of the batch.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(files.max_length)

    def token_lengths(self, texts: list[str]) -> list[int]:
        """Return how long texts are, in tokens of four characters.

        By characters a third is padding.
        """
        return [4 * len(encoding.ids) for encoding in self._tokenizer.encode_batch(texts)]

    # This family embeds both roles alike.
    def encode_texts(self, texts: list[str], role: Role = "document") -> Vectors:  # noqa: ARG002
        """Unit vectors of the texts, shape (n, dimension), float32."""
        encodings = self._tokenizer.encode_batch(texts)
        width = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(texts), width), dtype=np.int64)
        mask = np.zeros_like(ids)  # padding is masked, so its id does not matter
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        given = {
            "input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)
        }  # fmt: skip
        inputs = {name: given[name] for name in self._inputs}
        (hidden,) = self._session.run(None, inputs, self._emptied)
        total = np.einsum("ijk,ij->ik", hidden, mask.astype(np.float32))
        return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True), dtype=np.float32)


class OnnxEmbedder(ThreadedEmbedder):
    """`Embedder` on ONNX Runtime. Construct with `await OnnxEmbedder.open(...)`."""

    @classmethod
    async def open(
        cls,
        find: Callable[[], models.OnnxFiles] = models.bundled_model,
        *,
        threads: int = DEFAULT_THREADS,
    ) -> "OnnxEmbedder":
        """Find a model's files and load them, off the event loop; MiniLM takes some 0.3 s."""

        def load() -> tuple[models.OnnxFiles, OnnxModel]:
            lower_priority()  # of the runtime's threads, which only help the one that asks
            files = find()
            return files, OnnxModel(files, threads=threads)

        files, model = await in_thread(load)
        return cls(
            model.encode_texts, name=files.name, fingerprint=files.fingerprint,
            dimension=model.dimension, lengths=model.token_lengths, at_once=True,
        )  # fmt: skip


Key = bytes
"""Digest of role and text: a cached megabyte of text would cost a megabyte otherwise."""


class CachedEmbedder:
    """`Embedder` that remembers the vectors of the questions last asked, at most `size` of them.

    10,000 of MiniLM's take 17 MB; with 0 nothing is kept, and concurrent requests for one text
    still share its embedding. Documents go into an index, and no one asks for their vectors again.
    For one event loop; closes the embedder behind it.
    """

    def __init__(self, embedder: Embedder, size: int) -> None:
        if size < 0:
            raise ValueError(f"the cache size is {size}; it must be 0 or more")
        self.embedder = embedder
        self.name = embedder.name
        self.fingerprint = embedder.fingerprint
        self.dimension = embedder.dimension
        self._cached: LRUCache[Key, NDArray[np.float32]] = LRUCache(size)
        self._running: dict[Key, asyncio.Future[NDArray[np.float32]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """See `Embedder.embed`."""
        said = (f"{role}\0{text}".encode("utf-8", "surrogatepass") for text in texts)
        keys = [hashlib.blake2b(each, digest_size=16).digest() for each in said]
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
            loop = asyncio.get_running_loop()
            futures = {key: loop.create_future() for key in new}
            self._running |= futures
            awaited |= futures
            # A task of its own: the caller that began it may be cancelled while others wait.
            task = loop.create_task(self._fill_futures(list(new.values()), role, futures))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if awaited:
            # wait() leaves the futures alone when this caller is cancelled: others may share them
            await asyncio.wait(awaited.values())
        found |= {key: future.result() for key, future in awaited.items()}
        return np.array([found[key] for key in keys], dtype=np.float32).reshape(-1, self.dimension)

    async def close(self) -> None:
        """Close the embedder behind and forget everything."""
        await self.embedder.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._cached.clear()

    async def _fill_futures(
        self, texts: list[str], role: Role, futures: dict[Key, asyncio.Future[NDArray[np.float32]]]
    ) -> None:
        try:
            vectors = await self.embedder.embed(texts, role)
        except Exception as error:  # noqa: BLE001 - handed to every caller that waits
            for future in futures.values():
                future.set_exception(error)
                future.exception()  # seen: no one may be waiting any more
        else:
            for (key, future), vector in zip(futures.items(), vectors, strict=True):
                if self._cached.maxsize and role == "query":
                    # a copy: a row is a view that would keep its whole batch alive
                    self._cached[key] = vector.copy()
                future.set_result(vector)
        finally:
            for key, future in futures.items():
                future.cancel()  # no effect but when this task itself was cancelled
                del self._running[key]


ACCEPTED = (
    f"'{models.BUNDLED_NAME}' (the bundled model, on ONNX Runtime), "
    "'onnx:FOLDER' (a BERT in a sentence-transformers folder, on ONNX Runtime), "
    "'st:NAME_OR_PATH' (any model of sentence-transformers, on torch), "
    "'hashing' (no model), 'NAME:ARGUMENT' of a plug-in (docs/plugins.md)"
)


async def open_embedder(
    model: str = models.BUNDLED_NAME, *, cache_size: int = 10_000, threads: int | None = None
) -> CachedEmbedder:
    """Return the embedder of that name (one of `ACCEPTED`), with a cache of texts before it.

    `threads` are those of ONNX Runtime, 2 when `None`. The caller closes it.
    """
    kind, _, argument = model.partition(":")
    embedder: Embedder
    if model == "hashing":
        embedder = HashingEmbedder()
    elif model == models.BUNDLED_NAME or (kind == "onnx" and argument):
        find = partial(models.local_model, Path(argument)) if argument else models.bundled_model
        embedder = await OnnxEmbedder.open(find, threads=threads or DEFAULT_THREADS)
    elif kind == "st" and argument:
        embedder = await SentenceTransformersEmbedder.open(argument)
    elif added := load_plugins("embedders").get(kind):
        embedder = await added(argument, threads=threads or DEFAULT_THREADS)
    else:
        raise EmbeddingError(f"unknown embedding model {model!r}; accepted are {ACCEPTED}")
    return CachedEmbedder(embedder, cache_size)
