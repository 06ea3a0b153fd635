"""Relevance: how well a tool fits a scenario, 0 to 1, from cosine, BM25 and past successes.

    log-odds = slope x (cosine + terms_weight x BM25 + past_weight x past)
               - best_terms_weight x (the best BM25 of any tool) + intercept

BM25 is a sum over the shared terms of what each is worth as evidence, log-odds in origin (Robertson
and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009), so it is added to the
log-odds as it is. That lets it count by how much there is of it: little for a short question in
everyday words, a lot for one that names what a tool's schema names. Ranks, or scores scaled by the
best of each list, lose that (ADR 19). The best BM25 says how much a good match of this scenario
has: a long scenario shares some terms with every tool.

The log-odds are with even odds beforehand: 0.5 is a tool that is as likely right as wrong.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PAST_WIDTH = 0.1
"""By how much less cosine a past success counts e times less. Like the half point, from the
training halves of MetaTool and Seal-Tools (ADR 19)."""

PAST_HALF = 0.7
"""Cosine at which a single past success is evidence 0.5."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Learned by `python -m bench.quality.choosing_fit`; all but the intercept are above 0."""

    slope: float
    terms: float
    past: float
    best_terms: float
    intercept: float


@cache
def shipped() -> Weights:
    """The weights that were learned on the training halves of MetaTool and Seal-Tools."""
    text = files("retrieval.fitness").joinpath("relevance.json").read_text(encoding="utf-8")
    return Weights(**json.loads(text)["weights"])


def relevance(
    cosine: float,
    terms: float,
    *,
    best_terms: float,
    past: float = 0.0,
    weights: Weights | None = None,
) -> float:
    """How well a tool fits a scenario: near 1 for an obvious match, near 0 for none.

    Never falls when `cosine`, `terms` or `past` rises, nor rises with `best_terms`.

    Args:
        cosine: Of scenario and tool, -1 to 1; the best of the scenario's parts.
        terms: BM25 of the scenario's terms and the tool's, with the IDF over the workspace's tools.
        best_terms: The highest BM25 of any tool of the workspace for this scenario.
        past: See `past_evidence`; 0 where nothing is known.
        weights: The shipped ones when `None`.
    """
    by = weights or shipped()
    evidence = cosine + by.terms * terms + by.past * past
    return _logistic(by.slope * evidence - by.best_terms * best_terms + by.intercept)


def past_evidence(successes: Iterable[tuple[float, float]]) -> float:
    """What past scenarios in which a tool succeeded say for it now, 0 (nothing) to 1.

    A kernel estimate: each scenario counts exp((cosine - 1) / 0.1) x its share of successes; the
    sum saturates, so that many successes cannot outweigh everything.

    Args:
        successes: For each past scenario its cosine to this one, and the share of its trials that
            succeeded, 0 to 1.
    """
    near = sum(share * math.exp((cosine - 1) / PAST_WIDTH) for cosine, share in successes)
    return near / (near + math.exp((PAST_HALF - 1) / PAST_WIDTH))


def _logistic(log_odds: float) -> float:
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    power = math.exp(log_odds)  # large log-odds would overflow the other form
    return power / (1 + power)
