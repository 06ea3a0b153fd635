"""hit@1, hit@5 and nDCG@10 as macro averages over tools, and intervals for differences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.quality.choosing_data import Question

DEPTH = 10
RESAMPLES = 2_000
SEED = 4
_GAINS = 1 / np.log2(np.arange(2, DEPTH + 2))

Ranking = Sequence[str]
"""Names of tools, best first."""


@dataclass(frozen=True, slots=True)
class Macro:
    """Averages over tools; each tool's is over the questions that it is right for."""

    hit_1: float
    hit_5: float
    ndcg_10: float


def ndcg(ranking: Ranking, question: Question) -> float:
    """Normalised discounted cumulative gain of the first ten, all right tools being as good."""
    gained = sum(
        float(gain)
        for gain, name in zip(_GAINS, ranking, strict=False)
        if name in question.relevant
    )
    return gained / float(_GAINS[: len(question.relevant)].sum())


def macro(rankings: Sequence[Ranking], questions: Sequence[Question]) -> Macro:
    """The averages; a hit is any of the right tools among the first."""
    values = np.array(
        [
            (
                float(any(name in asked.relevant for name in found[:1])),
                float(any(name in asked.relevant for name in found[:5])),
                ndcg(found, asked),
            )
            for found, asked in zip(rankings, questions, strict=True)
        ]
    )
    return Macro(*(float(each) for each in _averaged(values, _membership(questions))))


def interval(
    one: Sequence[Ranking], other: Sequence[Ranking], questions: Sequence[Question]
) -> tuple[float, float]:
    """The middle 95 % of nDCG@10 of one less that of the other, over resampled questions."""
    differences = np.array(
        [ndcg(a, asked) - ndcg(b, asked) for a, b, asked in zip(one, other, questions, strict=True)]
    )
    tools, places = _membership(questions)
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(RESAMPLES):
        drawn = np.bincount(
            rng.integers(0, len(questions), len(questions)), minlength=len(questions)
        ).astype(float)
        found.append(_weighted(differences, drawn, tools, places))
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def _membership(questions: Sequence[Question]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a tool's number and the place of a question that it is right for."""
    numbers: dict[str, int] = {}
    pairs = [
        (numbers.setdefault(name, len(numbers)), place)
        for place, question in enumerate(questions)
        for name in sorted(question.relevant)
    ]
    tools, places = np.array(pairs).T
    return tools, places


def _averaged(
    values: NDArray[np.float64], membership: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> list[float]:
    ones = np.ones(len(values))
    return [_weighted(column, ones, *membership) for column in values.T]


def _weighted(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    tools: NDArray[np.int64],
    places: NDArray[np.int64],
) -> float:
    """The average over tools of the weighted averages over each one's questions."""
    total = np.bincount(tools, weights[places] * values[places])
    weight = np.bincount(tools, weights[places])
    return float((total[weight > 0] / weight[weight > 0]).mean())
