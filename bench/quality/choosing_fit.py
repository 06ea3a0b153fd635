"""Learn the weights of relevance from training questions: `python -m bench.quality.choosing_fit`.

First the weights that make the order, `terms` and then `past`: the best of a grid by nDCG@10, macro
over tools, the sets' mean. Then what makes a number between 0 and 1 of it, `slope`, `best_terms`
and `intercept`: logistic regression of right on wrong candidates, with and without past, each set
and both classes weighing the same. Then `parts`, which needs that number, by the same grid, and the
number once more. Only the training halves are used, the same for both sets.

Last, how much experience with one question says about another (`fitness.expected`): a
logistic function of their cosine, of MetaTool's questions to the same tool and to others, as if one
pair in ten were of the same.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.quality.choosing_data import SETS, left_out, load
from bench.quality.choosing_pool import Asked, ask_all
from bench.quality.choosing_scores import macro
from embeddings.embedders import open_embedder
from embeddings.protocol import Embedder
from retrieval.answers.fitness.relevance import Weights

FILE = Path(__file__).parents[2] / "retrieval" / "answers" / "fitness" / "relevance.json"
TERMS = (0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03)
PARTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
PAST = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8)
OTHERS = 9.0
"""Pairs of questions to other tools for each pair to the same one."""
_PLAIN = Weights(slope=1.0, terms=0.0, parts=0.0, past=0.0, best_terms=0.0, intercept=0.0)


def fit(training: Sequence[Sequence[Asked]]) -> Weights:
    """The weights for these sets' training questions."""
    terms = max(TERMS, key=lambda each: _ndcg(training, replace(_PLAIN, terms=each), past=False))
    ordered = replace(_PLAIN, terms=terms)
    past = max(PAST, key=lambda each: _ndcg(training, replace(ordered, past=each), past=True))
    whole = _calibrated(training, replace(ordered, past=past))
    parts = max(PARTS, key=lambda each: _ndcg(training, replace(whole, parts=each), past=False))
    return _calibrated(training, replace(whole, parts=parts))


def _ndcg(training: Sequence[Sequence[Asked]], weights: Weights, *, past: bool) -> float:
    found = []
    for asked in training:
        rankings = [each.by_relevance(weights, past=past) for each in asked]
        found.append(macro(rankings, [each.question for each in asked]).ndcg_10)
    return float(np.mean(found))


def _calibrated(training: Sequence[Sequence[Asked]], weights: Weights) -> Weights:
    rows, labels, counts = [], [], []
    for asked in training:
        own_rows, own_labels = [], []
        for each in asked:
            for past in ({}, each.past):
                found = each.relevant(past, weights)
                best = max(tool.terms for tool in found)
                for tool in found:
                    own_rows.append((tool.evidence, best))
                    own_labels.append(tool.tool_name in each.question.relevant)
        right = np.array(own_labels)
        rows.append(np.array(own_rows))
        labels.append(right)
        counts.append(np.where(right, 1 / right.sum(), 1 / (~right).sum()))
    model = LogisticRegression(C=1e6, max_iter=1_000)
    scale = np.array((1.0, 0.01))  # of like size, or the solver does not get there
    model.fit(
        np.concatenate(rows) * scale, np.concatenate(labels),
        sample_weight=np.concatenate(counts) * 1e4,
    )  # fmt: skip
    slope, best_terms = model.coef_[0] * scale
    return replace(
        weights, slope=round(float(slope), 4), best_terms=round(max(0.0, float(-best_terms)), 4),
        intercept=round(float(model.intercept_[0]), 4),
    )  # fmt: skip


async def learned_likeness(embedder: Embedder) -> dict[str, float]:
    """The cosine at which two questions as likely as not want the same tool, and the width."""
    chosen = load("metatool")
    asked = [each for each in chosen.train if len(each.relevant) == 1] if chosen else []
    vectors = await embedder.embed([each.text for each in asked], "query")
    tools = np.array([next(iter(each.relevant)) for each in asked])
    pairs = np.triu_indices(len(asked), 1)
    cosines = (vectors @ vectors.T)[pairs]
    same = tools[pairs[0]] == tools[pairs[1]]
    weights = np.where(same, 1 / same.sum(), OTHERS / (~same).sum())
    model = LogisticRegression(C=1e6)
    model.fit(cosines[:, np.newaxis], same, sample_weight=weights * len(same))
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    return {"half": round(-intercept / slope, 3), "width": round(1 / slope, 3)}


async def training_questions() -> tuple[dict[str, list[Asked]], dict[str, float]]:
    """The training halves of all sets, and the likeness of their questions.

    Raises:
        SystemExit: when a set is missing: the weights are for all.
    """
    embedder = await open_embedder()
    try:
        found = {}
        for name in SETS:
            chosen = load(name)
            if chosen is None:
                raise SystemExit(f"the weights are learned on all sets; {left_out(name)}")
            found[name], _ = await ask_all(embedder, replace(chosen, test=[]))
        return found, await learned_likeness(embedder)
    finally:
        await embedder.close()


def main() -> None:
    """Fit and write."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    training, likeness = asyncio.run(training_questions())
    weights = fit(list(training.values()))
    made = {
        "weights": asdict(weights),
        "likeness": likeness,
        "made_by": "python -m bench.quality.choosing_fit",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "questions": {SETS[name]: len(asked) for name, asked in training.items()},
    }
    FILE.write_text(f"{json.dumps(made, indent=1)}\n", encoding="utf-8")
    print(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
