"""Clustering: which axes mean one capability, by their vectors. Pure.

Average linkage with one threshold for a workspace of any size, on a similarity that is made in
three steps from the cosine, each measured in `docs/figures/boundaries.md`:

1. Centred: what all vectors share says nothing. The mean of few axes is their meaning, though, so
   it is drawn towards that of words that say nothing.
2. Smoothed: each vector moves towards its nearest neighbours, as in query expansion
   (Radenovic et al. 2019), so that `forex` and `currencies` meet through `exchange rate`.
3. Corrected for hubs: from each pair's similarity goes half of how near either is to its own
   neighbours (CSLS, Conneau et al. 2018), so that a general word is near nothing in particular.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from embeddings.protocol import Vectors
from retrieval.boundaries.phrasing import unit

THRESHOLD = -0.06
"""Average similarity, as `similarity_of` makes it, from which on two clusters are one. Chosen with
the constants below on the development half of `bench/quality/axis_labels.json`: the whole of it,
and draws from it of 9 to 224 axes in clusters of 1 to 8."""

_NEUTRAL_AXES = 20
"""Axes that the neutral mean is worth beside those that are there."""

_SMOOTHING = 8
"""Nearest neighbours that a vector moves to, each by its similarity."""

_HUBS = 20
"""Nearest neighbours that say how near anything is."""

_USUAL_NEARNESS = 0.3
"""Similarity of such a neighbour where there are fewer, and the least of any."""

_APART = 0.5
"""Similarity that two axes lose by having been named in one referral. A tool that names two says
that they differ; some name the same thing twice, so that it is much and not all."""

Similarity = NDArray[np.float32]
"""Shape (n, n), symmetric; greater is nearer, at most about 1, of unlike axes below 0."""


def cluster(
    vectors: Vectors, neutral: Vectors, apart: Iterable[tuple[int, int]] = ()
) -> list[list[int]]:
    """A partition of the rows, the same for the same rows in the same order.

    Args:
        vectors: shape (n, dimension), a unit row per axis (`phrasing.phrase_vectors`).
        neutral: shape (1, dimension), from `phrasing.neutral_vector`.
        apart: rows of axes that one referral named together.

    Returns:
        Rows of each cluster in order, by their first. Time and memory grow with the square of n.
    """
    similarity = similarity_of(vectors, neutral)
    for one, other in apart:
        similarity[one, other] -= _APART
        similarity[other, one] -= _APART
    return average_linkage(similarity, THRESHOLD)


def similarity_of(vectors: Vectors, neutral: Vectors) -> Similarity:
    """The similarity of each row to each, as the module says."""
    return without_hubs(smoothed(centred(vectors, neutral)))


def centred(vectors: Vectors, neutral: Vectors) -> Vectors:
    """Rows without what they share, of unit length."""
    total = vectors.sum(axis=0, keepdims=True) + _NEUTRAL_AXES * neutral
    return unit(vectors - total / (len(vectors) + _NEUTRAL_AXES))


def smoothed(vectors: Vectors) -> Vectors:
    """Rows, each moved towards its nearest others, of unit length."""
    rows, near, similarity = _nearest(vectors, _SMOOTHING)
    pull = similarity[rows, near].clip(0)
    moved = (vectors[near] * pull[:, :, np.newaxis]).sum(axis=1)
    return unit(vectors + moved / _SMOOTHING)


def without_hubs(vectors: Vectors) -> Similarity:
    """Cosines of the rows, less half of how near either row is to its own neighbours."""
    rows, near, similarity = _nearest(vectors, _HUBS)
    found = similarity[rows, near].clip(_USUAL_NEARNESS)
    missing = _HUBS - found.shape[1]
    nearness = (found.sum(axis=1) + missing * _USUAL_NEARNESS) / _HUBS
    corrected = similarity - (nearness[:, np.newaxis] + nearness[np.newaxis, :]) / 2
    return np.asarray(corrected, dtype=np.float32)


def average_linkage(similarity: Similarity, threshold: float) -> list[list[int]]:
    """Clusters joined as long as two are similar by `threshold` on average (UPGMA).

    By chains of nearest neighbours (Müllner 2011, "Modern hierarchical, agglomerative clustering
    algorithms"), which find the same clusters as joining the most similar two each time, in the
    square of n. A pair of nearest neighbours below the threshold is done: joining others never
    brings one nearer to either.

    Args:
        similarity: shape (n, n), symmetric; the diagonal is not read.
        threshold: least average similarity of two clusters to be joined.
    """
    near = similarity.astype(np.float64)
    np.fill_diagonal(near, -np.inf)
    members: dict[int, list[int]] = {row: [row] for row in range(len(near))}
    done: list[list[int]] = []
    chain: list[int] = []
    while members:
        if not chain:
            chain.append(next(iter(members)))
        last = chain[-1]
        nearest = int(near[last].argmax())
        if len(chain) > 1 and near[last, chain[-2]] >= near[last, nearest]:
            nearest = chain[-2]
        elif near[last, nearest] >= threshold:
            chain.append(nearest)
            continue
        else:  # nothing near enough, and nothing ever will be
            done.append(members.pop(chain.pop()))
            _forget(near, last)
            continue
        del chain[-2:]
        _join(near, last, nearest, len(members[last]), len(members[nearest]))
        members[last] = members[last] + members.pop(nearest)
    return sorted(sorted(each) for each in done)


def _join(near: NDArray[np.float64], one: int, other: int, size: int, other_size: int) -> None:
    """The first stands for both from now on (Lance and Williams 1967)."""
    joined = (size * near[one] + other_size * near[other]) / (size + other_size)
    near[one] = near[:, one] = joined
    near[one, one] = -np.inf
    _forget(near, other)


def _forget(near: NDArray[np.float64], row: int) -> None:
    near[row] = near[:, row] = -np.inf


def _nearest(vectors: Vectors, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Similarity]:
    """The k nearest other rows of each, or as many as there are, and all cosines."""
    similarity = vectors @ vectors.T
    k = min(k, len(vectors) - 1)
    rows = np.arange(len(vectors))[:, np.newaxis]
    if k < 1:
        return rows, np.empty((len(vectors), 0), dtype=np.int64), similarity
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    return rows, np.argpartition(-others, k - 1, axis=1)[:, :k], similarity


def clusters_of(axes: Sequence[str], partition: Iterable[Iterable[int]]) -> list[list[str]]:
    """A partition of rows as one of their axes."""
    return [[axes[row] for row in rows] for rows in partition]
