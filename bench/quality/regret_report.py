"""The page of the simulation: `docs/figures/regret.md`, the same as JSON, and the plot."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.quality.plots import plot_regret
from bench.quality.regret import (
    CONTENDERS,
    DEVELOPMENT,
    LINTS,
    OURS,
    REPORTED,
    SEED,
    Change,
    Curve,
    changes,
    runs,
)
from bench.quality.regret_texts import catalogue
from bench.quality.regret_world import CALLS, DEVELOPED, FEW, HELD_OUT
from embeddings.protocol import Embedder

_RESAMPLES = 2_000
_PLOTTED = (OURS, SEED, LINTS, "Thompson per tool", "random")


@dataclass(slots=True)
class RegretFigures:
    """Everything that was measured."""

    runs: dict[str, dict[str, list[Curve]]] = field(default_factory=dict)
    """By family, then by rule."""
    changes: dict[str, list[Change]] = field(default_factory=dict)

    def of(self, families: Mapping[str, object], rule: str) -> Curve:
        """The regrets of a rule in the worlds of some families, world by world."""
        return np.array(
            [curve[-1] for name in families if name in self.runs for curve in self.runs[name][rule]]
        )


async def measure(embedder: Embedder) -> RegretFigures | None:
    """All rules in all reported worlds; None where the questions are not there."""
    development = await catalogue(embedder, "development")
    if development is None:
        return None
    held_out = await catalogue(embedder, "held_out")
    texts = held_out or development
    return RegretFigures(
        runs(development, held_out),
        {
            "a flawless original beside it": changes(texts),
            "an original beside it that succeeds in 8 of 10": changes(texts, rival=0.8),
        },
    )


def write(figures: RegretFigures, folder: Path) -> None:
    """The page, the numbers and the plot."""
    folder.mkdir(parents=True, exist_ok=True)
    page = markdown(figures)
    print(page)
    (folder / "regret.md").write_text(page, encoding="utf-8")
    text = json.dumps(as_json(figures), indent=1)
    (folder / "regret.json").write_text(f"{text}\n", encoding="utf-8")
    curves = {
        rule: np.stack(
            [
                curve
                for family in figures.runs.values()
                for curve in family[rule]
                if len(curve) == CALLS
            ]
        )
        for rule in _PLOTTED
    }
    plot_regret(folder / "fitness-regret.svg", curves)


def markdown(figures: RegretFigures) -> str:
    """The page."""
    parts = [
        "# Regret",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. "
        "Made by `python -m bench.quality --only regret`; seeds are fixed, the same code gives the "
        "same figures.",
        f"{CALLS:,} calls ({FEW} in the family `few calls`) of 4 to 7 tools of one namespace, for "
        "3 to 6 kinds of requests, each in the words of many people. Success rates are hidden, "
        "differ by kind, and change. Regret of a call: the best tool's hidden rate minus that of "
        "the chosen one. All rules meet the same calls with the same luck; bandits have the same "
        "vectors. Constants were chosen on the families developed, with MetaTool's training "
        f"questions and the worlds {DEVELOPMENT[0]} to {DEVELOPMENT[-1]}. The families held out "
        "speak in BFCL's questions, which nothing was fitted on; families, texts and seeds were "
        "frozen before the rule was written, and measured when it was done. These are the worlds "
        f"{REPORTED[0]} to {REPORTED[-1]} of each family.",
        "![Cumulative regret](fitness-regret.svg)",
        "## Families held out",
        _table(figures, HELD_OUT),
        "## Families developed on",
        _table(figures, DEVELOPED),
        "*May be tried*: the tools only read, or the caller allows to try them out, so that the "
        "upper bound counts; else the mean does. Ratios are of sums over worlds, with the "
        "middle 90 % of 2,000 resamples of the worlds.",
        "## How soon the choice follows a change",
        "A promoted tool that served 40 calls breaks, loses its place, and is mended 20 calls "
        "later; each call in other words, of 3 to 6 kinds. Failed calls until another tool is "
        "chosen, and successes of the mended one, called all the same, until it is chosen again.",
        "\n".join([
            "| beside | lost, median | most | back, median | most |",
            "|---|---|---|---|---|",
            *(_change_row(name, found) for name, found in figures.changes.items()),
        ]),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def as_json(figures: RegretFigures) -> dict[str, object]:
    """The same, complete."""
    return {
        "worlds": [REPORTED[0], REPORTED[-1]],
        "regret": {
            family: {
                rule: [round(float(curve[-1]), 2) for curve in curves]
                for rule, curves in rules.items()
            }
            for family, rules in figures.runs.items()
        },
        "changes": figures.changes,
    }


def _table(figures: RegretFigures, families: Mapping[str, object]) -> str:
    names = [name for name in families if name in figures.runs]
    if not names:
        return "Not measured: BFCL is missing (`pip install --no-deps bfcl-eval mpmath`)."
    rows = [
        f"| rule | {' | '.join(names)} | of LinTS's | of the seed's |",
        f"|---|{'---|' * (len(names) + 2)}",
    ]
    for rule in CONTENDERS:
        regrets = [np.mean(figures.of({name: None}, rule)) for name in names]
        ratios = [
            _ratio(figures.of(families, rule), figures.of(families, other))
            for other in (LINTS, SEED)
        ]
        cells = [*(f"{each:.0f}" for each in regrets), *ratios]
        rows.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _ratio(ours: Curve, theirs: Curve) -> str:
    """The ratio of sums, and its 90 % interval by resampling worlds."""
    draw = np.random.default_rng(0)
    picked = draw.integers(len(ours), size=(_RESAMPLES, len(ours)))
    ratios = ours[picked].sum(axis=1) / theirs[picked].sum(axis=1)
    low, high = np.percentile(ratios, (5, 95))
    return f"{ours.sum() / theirs.sum():.2f} ({low:.2f} to {high:.2f})"


def _change_row(name: str, found: Sequence[Change]) -> str:
    both = [each.lost for each in found], [each.back for each in found]
    shown = (f"{np.median(counts):.0f} | {max(counts)}" for counts in both)
    return f"| {name} | {' | '.join(shown)} |"
