"""Phrasing: what is embedded of an axis, so that the model reads it as a capability. Pure.

A phrase of one or two words alone says little to a model that was trained on sentences: what it
means is the mean of what it means in a few. All were chosen on the development half of
`bench/quality/axis_labels.json` (`docs/figures/boundaries.md` has each step's gain).
"""

from collections.abc import Sequence

import numpy as np

from embeddings.protocol import Vectors

SENTENCES = ("{}", "an app for {}", "This request is about {}.", "How do I do {}?")
"""An axis is put in the place of `{}`."""

NEUTRAL = ("something", "anything", "this", "it", "work", "a task", "a thing", "stuff")
"""Said of nothing in particular: what the sentences themselves contribute to a vector."""


def sentences_of(axis: str) -> list[str]:
    """The texts to embed of one axis."""
    return [sentence.replace("{}", axis) for sentence in SENTENCES]


def phrase_vectors(vectors: Vectors) -> Vectors:
    """One unit vector per axis, of those of its sentences.

    Args:
        vectors: shape (axes x sentences, dimension), all sentences of one axis after the other.
    """
    by_axis = vectors.reshape(-1, len(SENTENCES), vectors.shape[-1])
    return unit(by_axis.sum(axis=1))


def neutral_vector(vectors: Vectors) -> Vectors:
    """The mean vector of `NEUTRAL`, shape (1, dimension), not of unit length.

    Args:
        vectors: of their sentences, as for `phrase_vectors`.
    """
    return np.asarray(phrase_vectors(vectors).mean(axis=0, keepdims=True), dtype=np.float32)


def neutral_sentences() -> list[str]:
    """The texts to embed for `neutral_vector`."""
    return [text for each in NEUTRAL for text in sentences_of(each)]


def unit(vectors: Vectors) -> Vectors:
    """Each row of unit length; a row of nothing stays so."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def stacked(vectors: Sequence[Vectors], dimension: int) -> Vectors:
    """Single vectors as rows; none give shape (0, dimension)."""
    return np.stack(vectors) if vectors else np.zeros((0, dimension), dtype=np.float32)
