"""The page of the simulation: `docs/figures/regret.md`, the same as JSON, and the plot."""

import json
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.quality.plots import plot_regret
from bench.quality.regret import CONTENDERS, DEVELOPMENT, REPORTED, Run, runs
from bench.quality.regret_recovery import GRAVE, Recovery, recoveries
from bench.quality.regret_world import CALLS, DAYS, maps
from embeddings.protocol import Embedder
from retrieval.fitness.score import THRESHOLD

DEFAULT, SEED = "fitness (default)", "seed 002's formula"
WORLDS = {"words tell": True, "words tell nothing": False}
PLOTTED = (
    DEFAULT, "lower_bound", "thompson", SEED, "epsilon-greedy (0.1)", "highest base", "random",
)  # fmt: skip
_RESAMPLES = 2_000


@dataclass(slots=True)
class RegretFigures:
    """Everything that was measured."""

    runs: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    """By world, then by rule."""
    recovery: dict[str, list[Recovery]] = field(default_factory=dict)


async def measure(embedder: Embedder) -> RegretFigures:
    """All rules in all reported worlds."""
    known = await maps(embedder)
    figures = RegretFigures()
    for world, words_tell in WORLDS.items():
        figures.runs[world] = {
            name: runs(known, name, REPORTED, words_tell=words_tell) for name in CONTENDERS
        }
    figures.recovery = {
        "as many unmarked failures as it takes": recoveries(known, "failure", None),
        f"{GRAVE} unmarked failures": recoveries(known, "failure", GRAVE),
        f"{GRAVE} grave marks": recoveries(known, "high", GRAVE),
    }
    return figures


def write(figures: RegretFigures, folder: Path) -> None:
    """The page, the numbers and the plot."""
    folder.mkdir(parents=True, exist_ok=True)
    page = markdown(figures)
    print(page)
    (folder / "regret.md").write_text(page, encoding="utf-8")
    text = json.dumps(as_json(figures), indent=1)
    (folder / "regret.json").write_text(f"{text}\n", encoding="utf-8")
    shown = figures.runs["words tell"]
    plot_regret(
        folder / "fitness-regret.svg",
        {name: np.stack([run.regret for run in shown[name]]) for name in PLOTTED},
    )


def markdown(figures: RegretFigures) -> str:
    """The page."""
    now = datetime.now(UTC)
    parts = [
        "# Regret",
        f"{now:%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. Made by "
        "`python -m bench.quality --only regret`; seeds are fixed, the same code gives the same "
        "figures.",
        f"{CALLS:,} calls in {DAYS:.0f} simulated days over five namespaces of 5 or 6 tools whose "
        "success rates are hidden, differ by kind of scenario, and change: tools degrade and "
        "recover, have outages, and two of five evolved versions are worse than their originals. "
        "Scenarios and descriptions are real words with the model's own cosines. Regret of a call: "
        "the best tool's hidden rate minus that of the chosen one. All rules meet the same calls "
        "with the same luck. Constants were chosen on worlds "
        f"{DEVELOPMENT[0]} to {DEVELOPMENT[-1]}; these are worlds {REPORTED[0]} to {REPORTED[-1]}.",
        "![Cumulative regret](fitness-regret.svg)",
    ]
    titles = {
        "words tell": "## Semantic matches can do what they are described for",
        "words tell nothing": "## Success rates have nothing to do with descriptions",
    }
    for world, found in figures.runs.items():
        parts += [titles[world], *_notes(world), _table(found)]
    parts += [
        "## Recovery",
        "An evolved version breaks beside a flawless original, then works again. Successes until "
        "it ranks first again, over all kinds of scenarios; and how many of them were in scenarios "
        "like the one asked about (cosine above 0.7), which alone lift the demotion there. Calls "
        "go in turn through five wordings of a kind, which the model does not always find alike.",
        "\n".join([
            "| after | median | most | alike, median | alike, most |",
            "|---|---|---|---|---|",
            *(_recovery_row(name, counts) for name, counts in figures.recovery.items()),
        ]),
        "## The threshold",
        _threshold(figures.runs["words tell"][DEFAULT]),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def as_json(figures: RegretFigures) -> dict[str, object]:
    """The same, complete."""
    return {
        "calls": CALLS,
        "days": DAYS,
        "worlds": [REPORTED[0], REPORTED[-1]],
        "regret": {
            world: {
                name: {
                    "final": [round(float(run.regret[-1]), 2) for run in found],
                    "success": [round(float(run.successes.mean()), 4) for run in found],
                    "ratio to seed 002": _ratio(found, rules[SEED]),
                }
                for name, found in rules.items()
            }
            for world, rules in figures.runs.items()
        },
        "recovery": figures.recovery,
    }


def _recovery_row(name: str, found: list[Recovery]) -> str:
    both = [each.all for each in found], [each.alike for each in found]
    shown = (f"{np.median(counts):.0f} | {max(counts)}" for counts in both)
    return f"| {name} | {' | '.join(shown)} |"


def _notes(world: str) -> list[str]:
    if world == "words tell":
        return []
    return [
        "The same without that: a tool may be the best at what its description does not say. Every "
        "score begins with the base of seed 002, 0.8 x similarity, so such a tool is tried only "
        "after those whose words fit have failed, and by then much is lost."
    ]


def _table(found: dict[str, list[Run]]) -> str:
    rows = [
        "| rule | regret | 5 % to 95 % of worlds | of the seed's | 90 % interval | successes |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in found.items():
        final = _final(own)
        low, high = np.percentile(final, (5, 95))
        ratio, least, most = _ratio(own, found[SEED])
        success = np.mean([run.successes.mean() for run in own])
        rows.append(
            f"| {name} | {final.mean():.0f} | {low:.0f} to {high:.0f} | {ratio:.2f} "
            f"| {least:.2f} to {most:.2f} | {success:.1%} |"
        )
    return "\n".join(rows)


def _final(found: list[Run]) -> np.ndarray:
    return np.array([run.regret[-1] for run in found])


def _ratio(own: list[Run], seed: list[Run]) -> tuple[float, float, float]:
    """Mean regret over the seed formula's, and its 90 % interval by resampling worlds."""
    ours, theirs = _final(own), _final(seed)
    draw = np.random.default_rng(0)
    picked = draw.integers(len(ours), size=(_RESAMPLES, len(ours)))
    ratios = ours[picked].mean(axis=1) / theirs[picked].mean(axis=1)
    low, high = np.percentile(ratios, (5, 95))
    return (
        round(float(ours.mean() / theirs.mean()), 4),
        round(float(low), 4),
        round(float(high), 4),
    )


def _threshold(found: list[Run]) -> str:
    scores = np.concatenate([run.scores for run in found])
    successes = np.concatenate([run.successes for run in found])
    below = scores < THRESHOLD
    return (
        f"Where the best score was below {THRESHOLD} ({below.mean():.1%} of calls, rule "
        f"`fitness`), {successes[below].mean():.0%} of the calls succeeded; of the others "
        f"{successes[~below].mean():.0%}."
    )
