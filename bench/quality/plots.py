"""Plots of the benchmarks, as SVG that is the same for the same figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from numpy.typing import NDArray

from bench.quality.scores import reliability, scores
from bench.quality.trial import Result

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "aftercall", "svg.fonttype": "none", "font.size": 9})
_INK, _BLUE, _ORANGE, _GREY = "#1c2733", "#2f6fb3", "#c9702d", "#9aa5b1"


def plot_reliability(file: Path, series: Mapping[str, Sequence[Result]]) -> None:
    """How often suggestions of a confidence were right, with how many there were below it."""
    figure, panels = plt.subplots(
        2, len(series), figsize=(4.2 * len(series), 4.6), sharex=True, squeeze=False,
        height_ratios=(3, 1), constrained_layout=True,
    )  # fmt: skip
    for column, (name, results) in enumerate(series.items()):
        bins = reliability(results)
        curve, counts = panels[0][column], panels[1][column]
        curve.plot(
            (0, 1), (0, 1), color=_GREY, linewidth=1, linestyle="--", label="as sure as right"
        )
        curve.plot(
            [each.confidence for each in bins], [each.right for each in bins],
            color=_BLUE, marker="o", label="Aftercall",
        )  # fmt: skip
        curve.set_title(f"{name} (ECE {scores(results).ece:.3f})", color=_INK)
        curve.set_ylim(0, 1.02)
        curve.legend(frameon=False, loc="upper left")
        counts.bar(
            [each.confidence for each in bins],
            [each.count for each in bins],
            width=0.05,
            color=_BLUE,
        )
        counts.set_yscale("log")
        counts.set_xlabel("confidence of the first suggestion")
        _plain(curve)
        _plain(counts)
    panels[0][0].set_ylabel("share that was right")
    panels[1][0].set_ylabel("suggestions")
    _save(figure, file)


def plot_regret(file: Path, curves: Mapping[str, NDArray[np.float64]]) -> None:
    """Cumulative regret by call, the mean over worlds with the range of 90 % of them.

    Args:
        file: where the SVG goes.
        curves: by rule, worlds x calls.
    """
    figure, panel = plt.subplots(figsize=(6.4, 4.2), constrained_layout=True)
    colors = mpl.colormaps["tab10"].colors
    for (name, regret), color in zip(curves.items(), colors, strict=False):
        every = slice(None, None, 20)
        calls = np.arange(1, regret.shape[1] + 1)[every]
        low, high = np.percentile(regret, (5, 95), axis=0)
        panel.plot(calls, regret.mean(axis=0)[every], color=color, linewidth=1.4, label=name)
        panel.fill_between(calls, low[every], high[every], color=color, alpha=0.10, linewidth=0)
    panel.set_xlabel("calls")
    panel.set_ylabel("cumulative regret (successes missed)")
    panel.legend(frameon=False, loc="upper left")
    _plain(panel)
    _save(figure, file)


def _plain(panel: Axes) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.25)


def _save(figure: plt.Figure, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
