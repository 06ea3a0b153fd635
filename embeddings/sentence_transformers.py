"""Any sentence-transformers model, by name or path, on torch: for models that are not exported."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embeddings.model_files import WEIGHTS_FILE, fingerprint, sha256
from embeddings.protocol import EmbeddingError, Role, Vectors
from embeddings.worker import EncodingWorker


class SentenceTransformersEmbedder:
    """`Embedder` on sentence-transformers. Construct with `await open(name_or_path)`.

    Slower than ONNX Runtime and with the memory of torch; takes every model, with its prompts for
    queries and documents.
    """

    def __init__(self, model: Any, *, name: str, weights_sha256: str) -> None:
        dimension = model.get_embedding_dimension()
        if not isinstance(dimension, int):
            raise EmbeddingError(f"{name} does not say the dimension of its vectors; take another")
        self._model = model
        self._name = name
        self._fingerprint = fingerprint(name, weights_sha256)
        self._dimension = dimension
        self._worker = EncodingWorker(self._encode, dimension=dimension, name=f"st-{name}")

    @classmethod
    async def open(cls, name_or_path: str) -> "SentenceTransformersEmbedder":
        """Import torch and load the model, off the event loop; takes seconds.

        Args:
            name_or_path: A name on the model hub, or a folder.

        Raises:
            EmbeddingError: when the library is missing or the model does not load.
        """
        model, weights = await asyncio.to_thread(_load, name_or_path)
        name = Path(name_or_path.rstrip("/")).name
        return cls(model, name=name, weights_sha256=weights)

    @property
    def name(self) -> str:
        """The model's name without its maker's."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """Name and hash of the weights; the bundled model has the one it has on ONNX Runtime."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """See `Embedder.embed`."""
        return await self._worker.embed(texts, role)

    async def close(self) -> None:
        """See `Embedder.close`."""
        await asyncio.to_thread(self._worker.close)

    def _encode(self, texts: list[str], role: Role) -> Vectors:
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        vectors = encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def _load(name_or_path: str) -> tuple[Any, str]:
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds, and torch
    except ImportError as error:
        raise EmbeddingError(
            "sentence-transformers is not installed: pip install 'aftercall-service[model]'"
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
