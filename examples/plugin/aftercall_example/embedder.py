"""An embedder by the letters of a text: `AFTERCALL_EMBEDDING_MODEL=letters:16`."""

from collections.abc import Sequence

import numpy as np

from embeddings.protocol import Embedder, Role, ThreadedEmbedder, Vectors


async def open_letters(argument: str, *, threads: int) -> Embedder:
    """Return an embedder of as many dimensions as the argument says (16).

    Vectors are float32 of unit length, shape (texts, dimension). `threads` is not used: it does
    its work in one.

    Raises:
        ValueError: the argument is no number above 1.
    """
    del threads
    dimension = int(argument or 16)
    if dimension <= 1:
        raise ValueError(f"letters:{argument}: the number of dimensions must be above 1")

    def encode(texts: Sequence[str], role: Role) -> Vectors:
        del role
        return np.stack([_vector(text, dimension) for text in texts])

    return ThreadedEmbedder(
        encode, name=f"letters:{dimension}", fingerprint=f"letters-1@{dimension}",
        dimension=dimension,
    )  # fmt: skip


def _vector(text: str, dimension: int) -> Vectors:
    counts = np.ones(dimension, dtype=np.float32)
    for letter in text.lower():
        counts[ord(letter) % dimension] += 1
    return counts / np.float32(np.linalg.norm(counts))
