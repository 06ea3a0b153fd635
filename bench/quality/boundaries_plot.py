"""The clusters of the final phrases in two dimensions."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from sklearn.manifold import TSNE

from bench.quality.boundaries import AxisSet, Labels

_SEED = 20261122


def plot_clusters(file: Path, axes: AxisSet, found: Labels) -> None:
    """Each phrase a point, coloured by its found cluster; each labelled axis named at its middle.

    Args:
        file: where the PNG goes.
        axes: the phrases.
        found: cluster of each.
    """
    places = TSNE(
        2, metric="cosine", init="random", perplexity=12, random_state=_SEED
    ).fit_transform(axes.prepared)
    figure, panel = plt.subplots(figsize=(11, 8.5), constrained_layout=True)
    sizes = np.bincount(found)
    colors = mpl.colormaps["tab20"].colors + mpl.colormaps["tab20b"].colors
    largest = np.argsort(-sizes, kind="stable")
    for rank, number in enumerate(largest):
        rows = np.flatnonzero(found == number)
        alone = len(rows) == 1
        panel.scatter(
            places[rows, 0], places[rows, 1], s=26,
            color="#9aa5b1" if alone else colors[rank % len(colors)],
            marker="x" if alone else "os^Dv"[rank // len(colors) % 5],
            linewidths=1 if alone else 0,
        )  # fmt: skip
    _name_axes(panel, axes, places)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.spines[:].set_visible(False)
    panel.set_title(
        f"{len(axes.phrases)} phrases of {len(axes.names)} axes (names, by the labels) in "
        f"{int((sizes > 0).sum())} clusters (colours); crosses stand alone",
        fontsize=10,
    )
    figure.savefig(file, dpi=120, metadata={"Software": None})
    plt.close(figure)


def _name_axes(panel: plt.Axes, axes: AxisSet, places: Sequence[Sequence[float]]) -> None:
    for number, name in enumerate(axes.names):
        middle = np.median(np.asarray(places)[axes.truth == number], axis=0)
        panel.annotate(
            name, middle, fontsize=8, ha="center", va="center", color="#1c2733",
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75},
        )  # fmt: skip
