"""How well axes are clustered, on `axis_labels.json`: 56 axes, each in 8 wordings.

Half of the axes are for development: every constant of `knowledge.patterns` was chosen on them,
and so was what is tunable of each method here. The other half was scored once, with all frozen.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    homogeneity_completeness_v_measure,
    silhouette_score,
)

from embeddings.protocol import Embedder, Vectors
from retrieval.knowledge.patterns.clusters import (
    average_linkage,
    center_rows,
    cluster_rows,
    neutral_sentences,
    neutral_vector,
    normalise_axis,
    phrase_vectors,
    sentences_of,
    smooth_rows,
)

LABELS = Path(__file__).parent / "axis_labels.json"
SPLITS = ("development", "final")
OURS = "Aftercall"

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AxisSet:
    """One half of the labelled phrases, with all vectors that a method may want."""

    names: list[str]
    """Of the axes, as the labeller called them."""
    phrases: list[str]
    truth: Labels
    raw: Vectors
    """Of the phrases as they are written."""
    spoken: Vectors
    """Of the normalised phrases, in sentences (`phrasing`)."""
    neutral: Vectors

    @property
    def prepared(self) -> Vectors:
        """The vectors whose similarity is clustered."""
        return smooth_rows(center_rows(self.spoken, self.neutral))


@dataclass(frozen=True, slots=True)
class Score:
    """How like the labels a clustering is; all are 1 for the same, ARI is 0 for chance."""

    ari: float
    v_measure: float
    homogeneity: float
    completeness: float
    clusters: int


@dataclass(frozen=True, slots=True)
class Method:
    """A way of clustering.

    Args:
        name: as the table says it.
        labels: of a set, with the tunable value.
        grid: values of it to choose from on development; one value is no choice.
    """

    name: str
    labels: Callable[[AxisSet, float], Labels]
    grid: tuple[float, ...] = (0.0,)


@dataclass(frozen=True, slots=True)
class MethodScores:
    """A method's value, chosen on development, and its scores by split."""

    value: float | None
    scores: dict[str, Score]


async def load_axes(embedder: Embedder, split: str) -> AxisSet:
    """One split."""
    labelled = json.loads(LABELS.read_text(encoding="utf-8"))["axes"]
    axes = [each for each in labelled if each["split"] == split]
    phrases = [phrase for each in axes for phrase in each["phrases"]]
    normalised = [normalise_axis(each) for each in phrases]
    texts = [text for each in normalised for text in sentences_of(each)]
    return AxisSet(
        names=[each["name"] for each in axes],
        phrases=phrases,
        truth=np.repeat(np.arange(len(axes)), [len(each["phrases"]) for each in axes]),
        raw=await embedder.embed(phrases, "document"),
        spoken=phrase_vectors(await embedder.embed(texts, "document")),
        neutral=neutral_vector(await embedder.embed(neutral_sentences(), "document")),
    )


def measure_methods(sets: dict[str, AxisSet]) -> dict[str, MethodScores]:
    """All methods on the splits that are given; values are chosen on development."""
    found = {}
    for method in METHODS:
        tuning = sets["development"]
        value = max(method.grid, key=lambda each: _ari(tuning, method.labels(tuning, each)))
        found[method.name] = MethodScores(
            value=value if len(method.grid) > 1 else None,
            scores={name: score(each, method.labels(each, value)) for name, each in sets.items()},
        )
    return found


def score(axes: AxisSet, labels: Labels) -> Score:
    """How like the labels a clustering is."""
    homogeneity, completeness, v_measure = homogeneity_completeness_v_measure(axes.truth, labels)
    return Score(
        ari=_ari(axes, labels),
        v_measure=float(v_measure),
        homogeneity=float(homogeneity),
        completeness=float(completeness),
        clusters=len(set(labels.tolist())),
    )


def our_labels(axes: AxisSet) -> Labels:
    """As the service clusters."""
    return _labels(cluster_rows(axes.spoken, axes.neutral), len(axes.truth))


def _ari(axes: AxisSet, labels: Labels) -> float:
    return float(adjusted_rand_score(axes.truth, labels))


def _labels(partition: Sequence[Sequence[int]], size: int) -> Labels:
    labels = np.zeros(size, dtype=np.int64)
    for number, rows in enumerate(partition):
        labels[list(rows)] = number
    return labels


def _linked(vectors: Vectors, threshold: float) -> Labels:
    return _labels(average_linkage(vectors @ vectors.T, threshold), len(vectors))


def _k_means(vectors: Vectors, k: int) -> Labels:
    return np.asarray(KMeans(k, n_init=10, random_state=0).fit_predict(vectors))


def _by_silhouette(vectors: Vectors) -> Labels:
    tried = [_k_means(vectors, k) for k in range(10, 71, 2)]
    return max(tried, key=lambda each: silhouette_score(vectors, each, metric="cosine"))


def _dbscan(vectors: Vectors, eps: float) -> Labels:
    """Phrases that it calls noise stand each for themselves, as they would in the service."""
    return _alone(DBSCAN(eps=eps, min_samples=2, metric="cosine").fit_predict(vectors))


def _hdbscan(vectors: Vectors, size: float) -> Labels:
    distance = np.clip(1 - vectors @ vectors.T, 0, None).astype(np.float64)
    model = HDBSCAN(min_cluster_size=int(size), metric="precomputed", copy=True)
    return _alone(model.fit_predict(distance))


def _alone(labels: Labels) -> Labels:
    noise = labels == -1
    labels[noise] = labels.max() + 1 + np.arange(noise.sum())
    return np.asarray(labels)


def _oracle(axes: AxisSet, _: float) -> Labels:
    """Each phrase to the axis whose other phrases are nearest on average, the labels being known.

    No clustering: how far the vectors tell the axes apart at all.
    """
    similarity = axes.prepared @ axes.prepared.T
    np.fill_diagonal(similarity, 0)
    members = np.eye(len(axes.names))[axes.truth]
    return np.asarray((similarity @ members / (members.sum(axis=0) - members)).argmax(axis=1))


def _grid(low: float, high: float, step: float) -> tuple[float, ...]:
    return tuple(round(float(each), 4) for each in np.arange(low, high, step))


_COSINES = _grid(0.1, 0.7, 0.01)

METHODS = [
    Method(OURS, lambda axes, _: our_labels(axes)),
    Method("average linkage, cosine of the phrases", lambda a, t: _linked(a.raw, t), _COSINES),
    Method("k-means, true k", lambda a, _: _k_means(a.prepared, len(a.names))),
    Method("k-means, k by silhouette", lambda a, _: _by_silhouette(a.prepared)),
    Method("DBSCAN", lambda a, eps: _dbscan(a.prepared, eps), _grid(0.05, 0.8, 0.01)),
    Method("HDBSCAN", lambda a, size: _hdbscan(a.prepared, size), (2.0, 3.0, 4.0, 5.0)),
    Method("k-means, true k, cosine of the phrases", lambda a, _: _k_means(a.raw, len(a.names))),
    Method("k-means, k by silhouette, cosine of the phrases", lambda a, _: _by_silhouette(a.raw)),
    Method("DBSCAN, cosine of the phrases", lambda a, e: _dbscan(a.raw, e), _grid(0.05, 0.8, 0.01)),
    Method("not a clustering: nearest axis, labels known", _oracle),
]
"""The threshold of ours is the shipped one: it is not chosen here."""

BOUND = METHODS[-1].name
