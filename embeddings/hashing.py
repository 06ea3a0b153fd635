"""A deterministic embedder without a model: hashed words and character n-grams.

For tests, and for machines where no model may be installed. It sees spelling, not meaning: texts
that share words or parts of words are near, paraphrases in other words are not. The hashing trick
with signs is that of Weinberger et al., "Feature Hashing for Large Scale Multitask Learning"
(ICML 2009).
"""

import zlib
from collections import Counter
from collections.abc import Iterator

import numpy as np

from embeddings.protocol import Role, ThreadedEmbedder, Vectors
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
    """`Embedder` by feature hashing.

    Args:
        dimension: Length of a vector, at least 1; below some hundred, features collide.
    """

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
