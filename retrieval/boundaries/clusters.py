"""Clusters of axes: wordings that mean one capability, under ids and names that last."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from embeddings.protocol import Vectors

_IDS = uuid.UUID("5f0c3c4e-1d0b-5f0a-9b1e-3c7a2f6d9e10")


class KnownCluster(BaseModel):
    """One cluster; `name` and `members` are normalised axes."""

    cluster_id: str
    name: str
    members: list[str] = Field(default_factory=list)


class AxisClusters(BaseModel):
    """All clusters of a workspace, as the latest clustering left them."""

    clusters: list[KnownCluster] = Field(default_factory=list)
    clustered_at: datetime | None = None

    def cluster_of(self, axis: str) -> KnownCluster:
        """The cluster of a normalised axis; one that was never clustered stands for itself."""
        known = self._by_axis.get(axis)
        return known or KnownCluster(cluster_id=new_cluster_id(axis), name=axis, members=[axis])

    def knows(self, axis: str) -> bool:
        """Whether the axis was clustered."""
        return axis in self._by_axis

    @cached_property
    def _by_axis(self) -> dict[str, KnownCluster]:
        return {axis: each for each in self.clusters for axis in each.members}


def new_cluster_id(first_axis: str) -> str:
    """The id of a cluster that begins with this axis."""
    return str(uuid.uuid5(_IDS, first_axis))


def axes_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's clusters."""
    return f"axes:{workspace}"


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


RENAME = 3
"""How many times as frequent as the name another member must be to become it. Frequencies of a few
sway to twice and back by chance; after a change it takes the same again to change back."""


def named(
    previous: AxisClusters,
    partition: Iterable[Sequence[str]],
    counts: Mapping[str, int],
    *,
    at: datetime,
) -> AxisClusters:
    """A new partition under the old ids and names, as far as its clusters are the old ones.

    An id goes to the heir that has most of its cluster, by how often the members were named; where
    several claim one, or one could have several, the greatest overlap comes first. So of a split
    the largest part keeps the id, and of a merger the largest part gives it. A name stays until its
    wording has left the cluster, or another is `RENAME` times as frequent. What is new is named
    after its most frequent member.

    Args:
        previous: the clusters as they were.
        partition: normalised axes, each in one cluster; the order makes no difference.
        counts: how often each axis was named; 1 where it is missing.
        at: when the clusters were made.

    Raises:
        ValueError: an axis is in two clusters, or a cluster is empty.
    """
    groups = [sorted(each, key=lambda axis: _prominence(axis, counts)) for each in partition]
    _check(groups)
    groups.sort(key=lambda group: (-_weight(group, counts), group[0]))
    heirs = _heirs(previous, groups, counts)
    taken = {each.cluster_id for each in heirs.values()}
    clusters = []
    for place, group in enumerate(groups):
        before = heirs.get(place)
        cluster_id = before.cluster_id if before else _free_id(group, taken)
        taken.add(cluster_id)
        name = _name(before.name if before else None, group, counts)
        clusters.append(KnownCluster(cluster_id=cluster_id, name=name, members=group))
    return AxisClusters(clusters=clusters, clustered_at=at)


def _heirs(
    previous: AxisClusters, groups: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> dict[int, KnownCluster]:
    """The old cluster that each group continues, if any, by the group's place."""
    old = {axis: place for place, each in enumerate(previous.clusters) for axis in each.members}
    overlaps: dict[tuple[int, int], int] = {}
    for new, group in enumerate(groups):
        for axis in group:
            if axis in old:
                pair = (new, old[axis])
                overlaps[pair] = overlaps.get(pair, 0) + _count(axis, counts)
    heirs: dict[int, KnownCluster] = {}
    inherited: set[int] = set()
    for new, before in sorted(overlaps, key=lambda pair: (-overlaps[pair], pair[1], pair[0])):
        if new not in heirs and before not in inherited:
            heirs[new] = previous.clusters[before]
            inherited.add(before)
    return heirs


def _name(before: str | None, group: Sequence[str], counts: Mapping[str, int]) -> str:
    most = group[0]
    if before is None or before not in group:
        return most
    return most if _count(most, counts) >= RENAME * _count(before, counts) else before


def _free_id(group: Sequence[str], taken: set[str]) -> str:
    """An id that begins with a member; another when a cluster that it has left bears it still."""
    for axis in group:
        if (cluster_id := new_cluster_id(axis)) not in taken:
            return cluster_id
    number = 2
    while (cluster_id := new_cluster_id(f"{group[0]}\x1f{number}")) in taken:
        number += 1
    return cluster_id


def _prominence(axis: str, counts: Mapping[str, int]) -> tuple[int, int, str]:
    """Most frequent first; of equals the shortest, for it is the most general."""
    return (-_count(axis, counts), len(axis), axis)


def _weight(group: Iterable[str], counts: Mapping[str, int]) -> int:
    return sum(_count(axis, counts) for axis in group)


def _count(axis: str, counts: Mapping[str, int]) -> int:
    return max(1, counts.get(axis, 1))


def _check(groups: Sequence[Sequence[str]]) -> None:
    members = [axis for group in groups for axis in group]
    if not all(groups) or len(set(members)) != len(members):
        raise ValueError("a partition has no empty cluster, and no axis that is in two")
