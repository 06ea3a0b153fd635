"""The embedders: models on ONNX Runtime, any sentence-transformers model, and hashing.

Hashing needs no model: it is for tests, and for machines where none may be installed. It sees
spelling, not meaning: texts that share words or parts of words are near, paraphrases are not. The
hashing trick with signs is that of Weinberger et al., "Feature Hashing for Large Scale Multitask
Learning" (ICML 2009).
"""

import asyncio
import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from aftercall.explain import how_to_install
from embeddings.bert_graph import WEIGHTS_FILE
from embeddings.models import OnnxFiles, bundled_model, fingerprint, sha256
from embeddings.protocol import EmbeddingError, Role, ThreadedEmbedder, Vectors
from embeddings.text import terms_text

NGRAM_LENGTHS = (3, 4)
"""Characters of the n-grams within a word, its ends marked."""
NGRAM_WEIGHT = 0.35
"""Of an n-gram against the word it is from: a shared word counts more than a shared syllable."""
SHORT_WORD_WEIGHT = 0.3
"""Of words of up to three letters (`the`, `of`, `is`, `10`), which nearly every text has."""
DEFAULT_DIMENSION = 384
"""As MiniLM's, so that the two can stand in for each other in a test."""


class HashingEmbedder(ThreadedEmbedder):
    """`Embedder` by feature hashing."""

    def __init__(self, dimension: int = DEFAULT_DIMENSION) -> None:
        if dimension < 1:
            raise ValueError(f"the dimension is {dimension}; it must be at least 1")

        def encode(texts: list[str], _role: Role) -> Vectors:
            return np.stack([hashed_vector(text, dimension) for text in texts])

        # The number is the algorithm's version.
        name = f"hashing-1@{dimension}"
        super().__init__(encode, name="hashing", fingerprint=name, dimension=dimension)


def hashed_vector(text: str, dimension: int) -> Vectors:
    """The unit vector of a text, shape (dimension,), float32; the same on every machine."""
    vector = np.zeros(dimension, dtype=np.float32)
    for feature, weight in _features(text):
        digest = zlib.crc32(feature.encode())
        sign = 1.0 if digest & 1 else -1.0
        vector[(digest >> 1) % dimension] += sign * weight
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:  # no word at all, or features that cancelled out: still a unit vector
        vector[0] = norm = 1.0
    return vector / np.float32(norm)


def _features(text: str) -> Iterator[tuple[str, float]]:
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

        def encode(texts: list[str], role: Role) -> Vectors:
            run = model.encode_query if role == "query" else model.encode_document
            vectors = run(texts, normalize_embeddings=True, show_progress_bar=False)
            return np.asarray(vectors, dtype=np.float32)

        known = fingerprint(name, weights_sha256)
        super().__init__(encode, name=name, fingerprint=known, dimension=dimension)

    @classmethod
    async def open(cls, name_or_path: str) -> "SentenceTransformersEmbedder":
        """Import torch and load the model, off the event loop; takes seconds."""
        model, weights = await asyncio.to_thread(_load, name_or_path)
        return cls(model, name=Path(name_or_path.rstrip("/")).name, weights_sha256=weights)


def _load(name_or_path: str) -> tuple[Any, str]:
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
    return model, sha256(weights) if weights.is_file() else _hash_of_tensors(model)


def _hash_of_tensors(model: Any) -> str:
    """For models from a hub, whose files lie where the library keeps them."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()


DEFAULT_THREADS = 2
"""Two cores: 2.7 ms for a short text of MiniLM, one: 4.1 ms; the service needs the others."""


class OnnxModel:
    """A model on ONNX Runtime; blocking, for one thread at a time.

    The vector of a text is the mean of its tokens' hidden states, scaled to unit length.
    """

    def __init__(self, files: OnnxFiles, *, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # An arena keeps what the largest batch took, up to 180 MiB; without one nothing is slower.
        options.enable_cpu_mem_arena = False
        # Spinning threads save 0.3 ms of 2.7 while the machine is idle, and double the time when
        # another process wants the cores (6.5 ms instead of 3.2, two cores).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph = files.graph if isinstance(files.graph, bytes) else str(files.graph)
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"]
            )
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

    # This family embeds both roles alike.
    def encode(self, texts: list[str], role: Role = "document") -> Vectors:  # noqa: ARG002
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
        (hidden,) = self._session.run(None, {name: given[name] for name in self._inputs})
        total = np.einsum("ijk,ij->ik", hidden, mask.astype(np.float32))
        return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True), dtype=np.float32)


class OnnxEmbedder(ThreadedEmbedder):
    """`Embedder` on ONNX Runtime. Construct with `await OnnxEmbedder.open(...)`."""

    def __init__(self, files: OnnxFiles, model: OnnxModel) -> None:
        super().__init__(
            model.encode,
            name=files.name,
            fingerprint=files.fingerprint,
            dimension=model.dimension,
        )

    @classmethod
    async def open(
        cls, find: Callable[[], OnnxFiles] = bundled_model, *, threads: int = DEFAULT_THREADS
    ) -> "OnnxEmbedder":
        """Find a model's files and load them, off the event loop; MiniLM takes some 0.3 s."""

        def load() -> tuple[OnnxFiles, OnnxModel]:
            files = find()
            return files, OnnxModel(files, threads=threads)

        return cls(*await asyncio.to_thread(load))
