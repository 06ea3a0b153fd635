"""Any sentence-transformers model, by name or path, on torch: for models that are not exported."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from embeddings.models import WEIGHTS_FILE, fingerprint, sha256
from embeddings.protocol import EmbeddingError, Role, ThreadedEmbedder, Vectors


class SentenceTransformersEmbedder(ThreadedEmbedder):
    """`Embedder` on sentence-transformers. Construct with `await open(name_or_path)`.

    Slower than ONNX Runtime and with the memory of torch; takes every model, with its prompts for
    queries and documents. The bundled model has the fingerprint that it has on ONNX Runtime.
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
        """Import torch and load the model, off the event loop; takes seconds.

        Args:
            name_or_path: A name on the model hub, or a folder.

        Raises:
            EmbeddingError: when the library is missing or the model does not load.
        """
        model, weights = await asyncio.to_thread(_load, name_or_path)
        return cls(model, name=Path(name_or_path.rstrip("/")).name, weights_sha256=weights)


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
