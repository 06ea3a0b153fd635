"""Fitting: from what became of proposals to priors, weights and a workspace's scaling. Pure.

Priors by kind of edit are Beta counts, drawn towards 0.7 as if `_SHRINK` trials had been seen there
(empirical Bayes), and no surer than `_MOST` trials, so that a workspace's own evidence can move
them. The weights are those of a logistic regression (scikit-learn, L2).

A workspace's scaling is a logistic regression of its outcomes on the shipped log-odds, with pseudo-
outcomes that say what the shipped calibration says, so that few outcomes move it little. No agent
counts for more than `_MOST_OF_AN_AGENT` outcomes beside others; a success counts as right for
`_RIGHT_OF_SUCCESS` only (on the benchmark so many of the corrections that ran did what was meant).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from retrieval.confidence.calibration import (
    ENOUGH_OUTCOMES,
    Calibration,
    Scaling,
    log_odds,
    logistic,
)
from retrieval.confidence.features import FEATURES

_SHRINK = 4.0
_MOST = 60.0
_FEW = 8
"""Trials of a kind below which its prior stays the judged one."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A proposal's features, and whether it was right; `weight` is its share of its case."""

    features: tuple[float, ...]
    right: bool
    weight: float = 1.0


def fit_priors(
    seen: Iterable[tuple[str, bool]], judged: float = 0.7
) -> dict[str, tuple[float, float]]:
    """Beta counts by kind, from options and whether each was right."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for kind, was_right in seen:
        counts[kind][not was_right] += 1
    fitted = {}
    for kind, (right, wrong) in sorted(counts.items()):
        total = right + wrong
        if total < _FEW:
            continue
        size = min(1.0, _MOST / (total + _SHRINK))
        fitted[kind] = (
            round((right + judged * _SHRINK) * size, 2),
            round((wrong + (1 - judged) * _SHRINK) * size, 2),
        )
    return fitted


def fit_weights(rows: Sequence[Labelled]) -> Calibration:
    """The weights of a logistic regression; the likelihood's is kept positive.

    Raises:
        ValueError: when all rows are right, or none is.
    """
    features = np.array([row.features for row in rows])
    right = np.array([row.right for row in rows])
    weight = np.array([row.weight for row in rows])
    model = LogisticRegression(C=1.0, max_iter=1000).fit(features, right, sample_weight=weight)
    weights = dict(zip(FEATURES, (round(float(w), 4) for w in model.coef_[0]), strict=True))
    weights["likelihood"] = max(0.05, weights["likelihood"])
    weights["rivals"] = max(0.0, weights["rivals"])  # it rises with a proposal's own evidence
    return Calibration(intercept=round(float(model.intercept_[0]), 4), weights=weights)


_MOST_OF_AN_AGENT = 50.0
_PSEUDO = 40.0
_RIGHT_OF_SUCCESS = 0.96
_SLOPES = (0.3, 2.0)
_ANCHORS = np.linspace(-3.0, 4.0, 15)
_HELD_OUT = 5
"""One outcome in so many, the newest, judges a new scaling before it replaces the current one."""


def fit_scaling(
    estimates: Sequence[float], rights: Sequence[bool], agents: Sequence[str | None]
) -> Scaling:
    """A workspace's scaling; the identity while its outcomes weigh less than 50.

    Args:
        estimates: shipped probabilities of suggestions, in [0, 1].
        rights: whether each succeeded when it was followed.
        agents: who followed it; all that are not known count as one.
    """
    weights = _weights(agents)
    if weights.sum() < ENOUGH_OUTCOMES:
        return Scaling()
    return _platt(estimates, rights, weights)


def refit_scaling(
    current: Scaling,
    estimates: Sequence[float],
    rights: Sequence[bool],
    agents: Sequence[str | None],
) -> Scaling:
    """The scaling that `fit_scaling` finds, if such a one holds on outcomes it was not fitted on.

    It is fitted on the older four fifths first: where that has a higher log loss on the newest
    fifth than `current`, `current` is returned.

    Args:
        current: what is in use.
        estimates: as for `fit_scaling`, latest first.
        rights: likewise.
        agents: likewise.
    """
    fitted = fit_scaling(estimates, rights, agents)
    if not fitted.outcomes:
        return fitted
    newest = len(agents) // _HELD_OUT
    trial = _platt(estimates[newest:], rights[newest:], _weights(agents[newest:]))
    held_out = estimates[:newest], rights[:newest], agents[:newest]
    return fitted if log_loss(trial, *held_out) <= log_loss(current, *held_out) else current


def log_loss(
    scaling: Scaling,
    estimates: Sequence[float],
    rights: Sequence[bool],
    agents: Sequence[str | None],
) -> float:
    """The weighed mean log loss, in nats, of scaled estimates of outcomes; lower is better.

    The arguments are those of `fit_scaling`, and so is what an agent and a success count.

    Raises:
        ZeroDivisionError: when there are no outcomes.
    """
    scaled = np.array([logistic(scaling.score(log_odds(estimate))) for estimate in estimates])
    right = np.where(np.array(rights), _RIGHT_OF_SUCCESS, 0.0)
    losses = -(right * np.log(scaled) + (1 - right) * np.log1p(-scaled))
    return float(np.average(losses, weights=_weights(agents)))


def _weights(agents: Sequence[str | None]) -> NDArray[np.float64]:
    """What each outcome counts for, shape (outcomes,), in (0, 1]."""
    counts = Counter(agents)
    most = _MOST_OF_AN_AGENT if len(counts) > 1 else float("inf")
    return np.array([min(1.0, most / counts[agent]) for agent in agents])


def _platt(
    estimates: Sequence[float], rights: Sequence[bool], weights: NDArray[np.float64]
) -> Scaling:
    scores = np.array([log_odds(estimate) for estimate in estimates])
    right = np.where(np.array(rights), _RIGHT_OF_SUCCESS, 0.0) * weights
    expected = np.array([logistic(float(score)) for score in _ANCHORS]) * (_PSEUDO / len(_ANCHORS))
    pseudo = np.full(len(_ANCHORS), _PSEUDO / len(_ANCHORS))
    features = np.concatenate([scores, _ANCHORS, scores, _ANCHORS])[:, None]
    labels = np.repeat([True, False], len(scores) + len(_ANCHORS))
    weight = np.concatenate([right, expected, weights - right, pseudo - expected])
    model = LogisticRegression(C=1e6, max_iter=1000).fit(features, labels, sample_weight=weight)
    slope = float(np.clip(model.coef_[0][0], *_SLOPES))
    shift = float(model.intercept_[0])
    return Scaling(shift=round(shift, 4), slope=round(slope, 4), outcomes=len(weights))
