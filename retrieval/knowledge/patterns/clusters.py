"""Clusters of axes: wordings that mean one capability, under ids and names that last. Pure.

What is embedded of an axis are a few sentences with it: a phrase of one or two words alone states
little to a model that was trained on sentences, and what it means is the mean of what it means in
these. All were chosen on the development half of `bench/quality/axis_labels.json`
(`docs/figures/boundaries.md` has each step's gain).

Clusters are made by average linkage with one threshold for a workspace of any size, on a similarity
that is made in three steps from the cosine, each measured in `docs/figures/boundaries.md`:

1. Centred: without what all vectors share, or words that say nothing.
2. Smoothed: moved towards the nearest neighbours (Radenovic et al. 2019).
3. Corrected for hubs: less half of how near either is to its own neighbours (CSLS, Conneau et al.
   2018), so that a general word is near nothing in particular.
"""

import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain, count
from textwrap import shorten

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from aftercall.models import MAX_AXES, MAX_AXIS_CHARS
from aftercall.tables import sum_values
from embeddings.protocol import Vectors

SENTENCES = ("{}", "an app for {}", "This request is about {}.", "How do I do {}?")
"""An axis is put instead of `{}`."""
NEUTRAL = ("something", "anything", "this", "it", "work", "a task", "a thing", "stuff")
"""Stated of nothing in particular: what the sentences themselves contribute to a vector."""
THRESHOLD = -0.06
"""Average similarity, as `similarity_of` makes it, from which on two clusters are one. Chosen with
the constants below on the development half of `bench/quality/axis_labels.json`: the whole of it,
and draws from it of 9 to 224 axes in clusters of 1 to 8."""
_NEUTRAL_AXES = 20
"""Axes that the neutral mean is worth next to those that are there."""
_SMOOTHING = 8
"""Nearest neighbours that a vector moves to, each by its similarity."""
_HUBS = 20
"""Nearest neighbours that say how near anything is."""
_USUAL_NEARNESS = 0.3
"""Similarity of such a neighbour where there are fewer, and the least of any."""
_APART = 0.5
"""Similarity that two axes lose by having been named in one referral. A tool that names two states
that they differ; some name the same thing twice, so that it is much and not all."""
Similarity = NDArray[np.float32]
"""Shape (n, n), symmetric; greater is nearer, at most about 1, of unlike axes below 0."""
RENAME = 3
"""How many times as frequent as the name another member must be to become it. Frequencies of a few
sway to twice and back by chance; after a change it takes the same again to change back."""
_FARTHEST = 2.0
"""A similarity that none is above: distances are less than that."""
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
        """Return the cluster of a normalised axis.

        One that was never clustered stands for itself.
        """
        known = self._by_axis.get(axis)
        return known or KnownCluster(cluster_id=new_cluster_id(axis), name=axis, members=[axis])

    def knows_axis(self, axis: str) -> bool:
        """Return whether the axis was clustered."""
        return axis in self._by_axis

    @cached_property
    def _by_axis(self) -> dict[str, KnownCluster]:
        return {axis: each for each in self.clusters for axis in each.members}


def new_cluster_id(first_axis: str) -> str:
    """Return the id of a cluster that begins with this axis."""
    return str(uuid.uuid5(_IDS, first_axis))


def sentences_of(axis: str) -> list[str]:
    """Return the texts to embed of one axis."""
    return [sentence.replace("{}", axis) for sentence in SENTENCES]


def phrase_vectors(vectors: Vectors) -> Vectors:
    """Return one unit vector per axis, of its sentences: shape (axes, dimension)."""
    return to_unit(vectors.reshape(-1, len(SENTENCES), vectors.shape[-1]).sum(axis=1))


def neutral_vector(vectors: Vectors) -> Vectors:
    """Return the mean vector of `NEUTRAL`, shape (1, dimension), not of unit length."""
    return np.asarray(phrase_vectors(vectors).mean(axis=0, keepdims=True), dtype=np.float32)


def neutral_sentences() -> list[str]:
    """Return the texts to embed for `neutral_vector`."""
    return [text for each in NEUTRAL for text in sentences_of(each)]


def to_unit(vectors: Vectors) -> Vectors:
    """Return each row of unit length; a row of nothing stays so."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def cluster_rows(
    vectors: Vectors, neutral: Vectors, apart: Iterable[tuple[int, int]] = ()
) -> list[list[int]]:
    """Return a partition of the rows, the same for the same rows in the same order.

    `vectors` has shape (n, dimension), a unit row per axis; `neutral` shape (1, dimension); `apart`
    are rows of axes that one referral named together. Time and memory grow with the square of n.
    """
    similarity = similarity_of(vectors, neutral)
    for one, other in apart:
        similarity[one, other] -= _APART
        similarity[other, one] -= _APART
    return average_linkage(similarity, THRESHOLD)


def similarity_of(vectors: Vectors, neutral: Vectors) -> Similarity:
    """Return the similarity of each row to each, as the module states."""
    return without_hubs(smooth_rows(center_rows(vectors, neutral)))


def center_rows(vectors: Vectors, neutral: Vectors) -> Vectors:
    """Rows without what they share, of unit length."""
    total = vectors.sum(axis=0, keepdims=True) + _NEUTRAL_AXES * neutral
    return to_unit(vectors - total / (len(vectors) + _NEUTRAL_AXES))


def smooth_rows(vectors: Vectors) -> Vectors:
    """Rows, each moved towards its nearest others, of unit length."""
    rows, near, similarity = _nearest_rows(vectors, _SMOOTHING)
    pull = similarity[rows, near].clip(0)
    return to_unit(vectors + (vectors[near] * pull[:, :, np.newaxis]).sum(axis=1) / _SMOOTHING)


def without_hubs(vectors: Vectors) -> Similarity:
    """Cosines of the rows, less half of how near either row is to its own neighbours."""
    rows, near, similarity = _nearest_rows(vectors, _HUBS)
    found = similarity[rows, near].clip(_USUAL_NEARNESS)
    missing = _HUBS - found.shape[1]
    nearness = (found.sum(axis=1) + missing * _USUAL_NEARNESS) / _HUBS
    corrected = similarity - (nearness[:, np.newaxis] + nearness[np.newaxis, :]) / 2
    return np.asarray(corrected, dtype=np.float32)


def average_linkage(similarity: Similarity, threshold: float) -> list[list[int]]:
    """Clusters joined while two are similar by `threshold` on average (UPGMA), diagonal aside."""
    from fastcluster import linkage  # noqa: PLC0415 - it imports scipy, where that is there

    rows = len(similarity)
    clusters = {row: [row] for row in range(rows)}
    distances = _FARTHEST - similarity[np.triu_indices(rows, 1)].astype(np.float64)
    joined = linkage(distances, "average") if rows > 1 else ()
    for number, (one, other, distance, _) in enumerate(joined, rows):
        if distance > _FARTHEST - threshold:
            break  # those that follow are farther apart
        clusters[number] = sorted(clusters.pop(int(one)) + clusters.pop(int(other)))
    return sorted(clusters.values())


def _nearest_rows(
    vectors: Vectors, k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Similarity]:
    """Return the k nearest other rows of each, or as many as there are, and all cosines."""
    similarity = vectors @ vectors.T
    k = min(k, len(vectors) - 1)
    rows = np.arange(len(vectors))[:, np.newaxis]
    if k < 1:
        return rows, np.empty((len(vectors), 0), dtype=np.int64), similarity
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    return rows, np.argpartition(-others, k - 1, axis=1)[:, :k], similarity


def name_clusters(
    previous: AxisClusters,
    partition: Iterable[Sequence[str]],
    counts: Mapping[str, int],
    *,
    at: datetime,
) -> AxisClusters:
    """Return a new partition under the old ids and names, as far as its clusters are the old ones.

    An id goes to the heir that has most of its cluster, by how often the members were named; where
    several claim one, or one could have several, the greatest overlap comes first. So of a split
    the largest part keeps the id, and of a merger the largest part gives it. A name stays until its
    wording has left the cluster, or another is `RENAME` times as frequent. Anything that is new is
    named after its most frequent member.
    """

    def axis_weight(axis: str) -> int:
        return max(1, counts.get(axis, 1))

    # Most frequent first; of equals the shortest, for it is the most general.
    groups = [
        sorted(each, key=lambda axis: (-axis_weight(axis), len(axis), axis)) for each in partition
    ]
    groups.sort(key=lambda group: (-sum(map(axis_weight, group)), group[0]))
    old = {axis: place for place, each in enumerate(previous.clusters) for axis in each.members}
    overlaps = sum_values(
        ((new, old[axis]), axis_weight(axis))
        for new, group in enumerate(groups)
        for axis in group
        if axis in old
    )
    heirs: dict[int, KnownCluster] = {}
    inherited: set[int] = set()
    for new, before in sorted(overlaps, key=lambda pair: (-overlaps[pair], pair[1], pair[0])):
        if new not in heirs and before not in inherited:
            heirs[new] = previous.clusters[before]
            inherited.add(before)
    taken = {each.cluster_id for each in heirs.values()}
    clusters = []
    for place, group in enumerate(groups):
        heir = heirs.get(place)
        most = group[0]
        name = most if heir is None or heir.name not in group else heir.name
        if axis_weight(most) >= RENAME * axis_weight(name):
            name = most
        cluster_id = _free_id(group, taken) if heir is None else heir.cluster_id
        taken.add(cluster_id)
        clusters.append(KnownCluster(cluster_id=cluster_id, name=name, members=group))
    return AxisClusters(clusters=clusters, clustered_at=at)


def _free_id(group: Sequence[str], taken: set[str]) -> str:
    """Return an id that begins with a member.

    Another when a cluster that it has left bears it still.
    """
    numbered = (f"{group[0]}\x1f{number}" for number in count(2))
    return next(each for each in map(new_cluster_id, chain(group, numbered)) if each not in taken)


# Axes as they are compared: a tool's words without case, spacing, style and plural.

_MAX_READ = 4 * MAX_AXIS_CHARS
"""Characters read of one axis: a referral's own are shorter, and a dumped file names nothing."""
_MAX_LISTED = 50 * MAX_AXES
"""Axes looked at for the first `MAX_AXES` different ones."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z](?!s(?![a-z]))[a-z])")
"""Before each word that begins with a capital: `topK`, `HTMLParsing`, not `URLs`."""
_FILLER = frozenset({"an", "the", "of", "for", "and", "or", "any", "some", "capability", "etc"})
"""Words that distinguish no two axes, without `a`: `A/B testing`, `vitamin A`."""
_IRREGULAR = {
    "analyses": "analysis",
    "axes": "axis",
    "children": "child",
    "indices": "index",
    "matrices": "matrix",
    "men": "man",
    "people": "person",
    "statuses": "status",
    "vertices": "vertex",
    "viruses": "virus",
    "women": "woman",
    "movies": "movie",
    "cookies": "cookie",
    "calories": "calorie",
    "lens": "lens",
    "lenses": "lens",
    "metrics": "metric",
    "topics": "topic",
    "comics": "comic",
    "clinics": "clinic",
}
_NO_PLURAL = frozenset(
    (
        "alias",
        "always",
        "atlas",
        "aws",
        "bias",
        "canvas",
        "chaos",
        "devops",
        "dns",
        "gps",
        "https",
        "ios",
        "kubernetes",
        "macos",
        "news",
        "rss",
        "series",
        "sms",
        "species",
        "tls",
    )
)
"""Words whose final s is their own, next to those in ss, us, is and ics."""
_SHORTEST_PLURAL = 4
"""Letters from which on a final s is taken for a plural: `gas`, `bus` and `as` are none."""
_LONGEST_TIE = 4
"""Letters up to which `ies` is the plural of `ie`: `ties`, `pies`."""


def normalised_axes(axes: Iterable[str]) -> dict[str, str]:
    """Return the axes of a referral by normalised form, as first spelled, in order.

    At most `MAX_AXES`.
    """
    found: dict[str, str] = {}
    for looked_at, axis in enumerate(axes):
        if looked_at == _MAX_LISTED or len(found) == MAX_AXES:
            break
        normalised = normalise_axis(axis)
        if normalised:
            found.setdefault(normalised, axis)
    return found


def normalise_axis(text: str) -> str:
    """Return an axis as it is compared: `HTMLParsing`, `html-parsing` and `HTML parsings` are one.

    Case, Unicode's compatibility forms, identifiers' humps and joiners, punctuation, the plural of
    English nouns and words that say nothing make no difference. Letters of any script and emoji
    stay. Idempotent; at most `MAX_AXIS_CHARS` characters.
    """
    return _normalise_text(text[:_MAX_READ])


@lru_cache(maxsize=4_096)
def _normalise_text(text: str) -> str:
    folded = _without_marks(_HUMP.sub(" ", _without_marks(text)).casefold())
    spaced = "".join(char if _is_of_a_word(char) else " " for char in folded)
    words = [singular_word(word[:MAX_AXIS_CHARS]) for word in spaced.split()]
    telling = [word for word in words if word not in _FILLER]
    return shorten(" ".join(telling or words), MAX_AXIS_CHARS, placeholder="")


def _without_marks(text: str) -> str:
    """Return a text without joiners, directions, soft hyphens and emoji selectors."""
    kept = (
        char
        for char in text
        if unicodedata.category(char) != "Cf" and not "\ufe00" <= char <= "\ufe0f"
    )
    return unicodedata.normalize("NFKC", "".join(kept))


def _is_of_a_word(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] in "LMN" or category == "So"


def singular_word(word: str) -> str:
    """Return a word without the plural of English nouns, as far as its spelling shows."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    shorter = _without_plural(word)
    if shorter == word:
        return word
    return singular_word(shorter)


def _without_plural(word: str) -> str:
    if not (word.endswith("s") and word.isascii() and word.isalnum()):
        return word
    is_short = len(word) < _SHORTEST_PLURAL or not word[-2].isalpha()
    if is_short or word in _NO_PLURAL or word.endswith(("ss", "us", "is", "ics")):
        return word
    if word.endswith("ies"):
        if len(word) <= _LONGEST_TIE:
            return word[:-1]
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes", "zzes")):
        return word[:-2]
    return word[:-1]
