"""How often the right tool is found for a scenario: `python -m bench.quality --only choosing`.

The tools lie in a real index, with the service's own texts, terms and relevance. Each question is
asked once, and every method ranks from that. Weights are learned on the training halves
(`choosing_fit`); as a check also on one set alone and tested on the other.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.quality.choosing_data import SETS, left_out, load
from bench.quality.choosing_fit import fit
from bench.quality.choosing_pool import Asked, ask_all
from bench.quality.choosing_scores import RESAMPLES, SEED, Macro, Ranking, interval, macro
from embeddings.protocol import Embedder
from retrieval.answers.fitness.relevance import Weights, shipped_weights

OURS = "Aftercall"
WITH_PAST = "Aftercall, past successes"
_UNSEEN = {
    "MetaTool": "The 400 questions that an earlier choice looked at (ADR 3) are in no test.",
    "Seal-Tools": "An earlier choice (stemming, ADR 3) looked at all questions of this set; the "
    "weights were learned on its training half only.",
}
Method = Callable[[Asked], Ranking]


@dataclass(slots=True)
class SetFigures:
    """One set's figures on its test half."""

    tools: int
    questions: int
    methods: dict[str, Macro]
    ahead: dict[str, tuple[float, float, float]]
    """nDCG@10 of `OURS` less that of each method, with the interval's ends."""
    other_weights: Weights | None = None


@dataclass(slots=True)
class ChoosingFigures:
    """Everything measured, by set."""

    sets: dict[str, SetFigures] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    weights: Weights = field(default_factory=shipped_weights)


async def measure(embedder: Embedder) -> ChoosingFigures:
    """All sets that are there."""
    figures = ChoosingFigures()
    asked: dict[str, tuple[list[Asked], list[Asked]]] = {}
    sizes: dict[str, int] = {}
    for name, title in SETS.items():
        chosen = load(name)
        if chosen is None:
            figures.skipped.append(left_out(name))
            continue
        asked[title] = await ask_all(embedder, chosen)
        sizes[title] = len(chosen.tools)
    for title, (_, test) in asked.items():
        others = [training for other, (training, _) in asked.items() if other != title]
        other_weights = fit(others) if others else None
        figures.sets[title] = _figures(test, sizes[title], other_weights)
    return figures


def _figures(test: Sequence[Asked], tools: int, other_weights: Weights | None) -> SetFigures:
    questions = [each.question for each in test]
    rankings = {
        name: [method(each) for each in test] for name, method in _methods(other_weights).items()
    }
    ahead = {}
    own = macro(rankings[OURS], questions).ndcg_10
    for name, found in rankings.items():
        if name != OURS:
            difference = own - macro(found, questions).ndcg_10
            ahead[name] = (difference, *interval(rankings[OURS], found, questions))
    methods = {name: macro(found, questions) for name, found in rankings.items()}
    return SetFigures(tools, len(questions), methods, ahead, other_weights)


def _methods(other_weights: Weights | None) -> Mapping[str, Method]:
    methods: dict[str, Method] = {
        "BM25 alone": lambda asked: asked.by_terms(),
        "dense alone": lambda asked: asked.by_cosine(),
        "dense alone, by sentences": lambda asked: asked.by_best_cosine(),
        "plain RRF": lambda asked: asked.fused["rrf"],
        "DBSF": lambda asked: asked.fused["dbsf"],
        f"{OURS}, one vector": lambda asked: asked.by_relevance(None, past=False, parts=False),
        OURS: lambda asked: asked.by_relevance(None, past=False),
        WITH_PAST: lambda asked: asked.by_relevance(None, past=True),
    }
    if other_weights is not None:
        methods["weights of the other set"] = lambda asked: asked.by_relevance(
            other_weights, past=False
        )
        methods["weights of the other set, past"] = lambda asked: asked.by_relevance(
            other_weights, past=True
        )
    return methods


def markdown(figures: ChoosingFigures) -> str:
    """The page `docs/figures/choosing.md`."""
    parts = [
        "# Choosing a tool",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}. "
        "Made by `python -m bench.quality --only choosing`. hit@1, hit@5 and nDCG@10 are macro "
        "averages over tools. Questions are halved by a hash of their text; these are the test "
        "halves. *Ahead* is the nDCG@10 of *Aftercall* less that of the row, with the middle 95 % "
        f"of {RESAMPLES:,} resamples of the questions (seed {SEED}). *Past successes*: the "
        "training half's questions were asked before and their tools succeeded, at most 32 "
        "scenarios a tool. *One vector*: the question's sentences are not embedded apart.",
    ]
    for title, found in figures.sets.items():
        parts += [
            f"## {title}: {found.tools:,} tools, {found.questions:,} questions",
            _UNSEEN[title],
            _table(found),
        ]
    weights = ", ".join(f"{name} {value:g}" for name, value in asdict(figures.weights).items())
    parts += [
        "## Weights",
        f"The same for all sets, learned on both training halves: {weights}. *Weights of the "
        "other set* were learned without a question of the set that they are tested on.",
    ]
    if figures.skipped:
        parts += ["## Not measured here", *[f"- {each}" for each in figures.skipped]]
    return "\n\n".join(parts) + "\n"


def _table(found: SetFigures) -> str:
    lines = ["| method | hit@1 | hit@5 | nDCG@10 | ahead |", "|---|---|---|---|---|"]
    for name, row in found.methods.items():
        ahead = ""
        if name in found.ahead:
            difference, low, high = found.ahead[name]
            ahead = f"{difference:+.3f} ({low:+.3f} to {high:+.3f})"
        lines.append(
            f"| {name} | {row.hit_1:.3f} | {row.hit_5:.3f} | {row.ndcg_10:.3f} | {ahead} |"
        )
    return "\n".join(lines)


def as_json(figures: ChoosingFigures) -> dict[str, Any]:
    """The same, complete."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": platform.machine(),
        "python": platform.python_version(), "resamples": RESAMPLES, "seed": SEED,
        **asdict(figures),
    }  # fmt: skip


def write(figures: ChoosingFigures, folder: Path) -> None:
    """Print, and write `choosing.md` and `choosing.json`; nothing where no set is there."""
    page = markdown(figures)
    print(page)
    if not figures.sets:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "choosing.md").write_text(page, encoding="utf-8")
    text = json.dumps(as_json(figures), indent=1)
    (folder / "choosing.json").write_text(f"{text}\n", encoding="utf-8")
