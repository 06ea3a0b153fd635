"""Fitting: a workspace's scaling of confidence, on what became of its suggestions. Pure.

It is a logistic regression (Platt's) of its outcomes on the shipped log-odds, with pseudo-outcomes
that say what the shipped calibration states, so that few outcomes move it little. No agent counts
for more than `_MOST_OF_AN_AGENT` outcomes next to others; a success counts as right for
`_RIGHT_OF_SUCCESS` only (of the corrections that ran on the benchmark so many did what was meant).
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.knowledge.confidence import ENOUGH_OUTCOMES, Scaling, apply_logistic, log_odds

_MOST_OF_AN_AGENT = 50.0
_PSEUDO = 40.0
_RIGHT_OF_SUCCESS = 0.96
_SLOPES = (0.3, 2.0)
_STEPS = 50
_ANCHORS = np.linspace(-3.0, 4.0, 15)
_HELD_OUT = 5
"""One outcome in so many, the newest, judges a new scaling before it replaces the current one."""


def fit_scaling(
    estimates: Sequence[float], rights: Sequence[bool], agents: Sequence[str | None]
) -> Scaling:
    """Return a workspace's scaling; the identity while its outcomes weigh less than 50.

    Of each suggestion: the shipped probability, whether it succeeded when it was followed, and who
    followed it; all that are not known count as one.
    """
    weights = _outcome_weights(agents)
    if weights.sum() < ENOUGH_OUTCOMES:
        return Scaling()
    return _fit_platt(estimates, rights, weights)


def refit_scaling(
    current: Scaling,
    estimates: Sequence[float],
    rights: Sequence[bool],
    agents: Sequence[str | None],
) -> Scaling:
    """Return the scaling of `fit_scaling`, if it holds on outcomes not fitted on.

    All are latest first. It is fitted on the older four fifths first: where that has a higher log
    loss on the newest fifth than `current`, which is in use, `current` is returned.
    """
    fitted = fit_scaling(estimates, rights, agents)
    if not fitted.outcomes:
        return fitted
    newest = len(agents) // _HELD_OUT
    trial = _fit_platt(estimates[newest:], rights[newest:], _outcome_weights(agents[newest:]))
    held_out = estimates[:newest], rights[:newest], agents[:newest]
    if log_loss(trial, *held_out) <= log_loss(current, *held_out):
        return fitted
    return current


def log_loss(
    scaling: Scaling,
    estimates: Sequence[float],
    rights: Sequence[bool],
    agents: Sequence[str | None],
) -> float:
    """Return the mean log loss, in nats, of scaled outcomes, as in `fit_scaling`.

    Lower is better.
    """
    scaled = np.array(
        [apply_logistic(scaling.scale_score(log_odds(estimate))) for estimate in estimates]
    )
    right = np.where(np.array(rights), _RIGHT_OF_SUCCESS, 0.0)
    losses = -(right * np.log(scaled) + (1 - right) * np.log1p(-scaled))
    return float(np.average(losses, weights=_outcome_weights(agents)))


def _outcome_weights(agents: Sequence[str | None]) -> NDArray[np.float64]:
    """Return what each outcome counts for, shape (outcomes,), in (0, 1]."""
    counts = Counter(agents)
    most = _MOST_OF_AN_AGENT if len(counts) > 1 else float("inf")
    return np.array([min(1.0, most / counts[agent]) for agent in agents])


def _fit_platt(
    estimates: Sequence[float], rights: Sequence[bool], weights: NDArray[np.float64]
) -> Scaling:
    scores = np.array([log_odds(estimate) for estimate in estimates])
    right = np.where(np.array(rights), _RIGHT_OF_SUCCESS, 0.0) * weights
    expected = np.array([apply_logistic(float(score)) for score in _ANCHORS]) * (
        _PSEUDO / len(_ANCHORS)
    )
    pseudo = np.full(len(_ANCHORS), _PSEUDO / len(_ANCHORS))
    x = np.concatenate([scores, _ANCHORS])
    features = np.stack([x, np.ones_like(x)])
    weight = np.concatenate([weights, pseudo])
    wanted = np.concatenate([right, expected])
    fitted = np.array([1.0, 0.0])
    for _ in range(_STEPS):  # Newton's, none longer than 1: from no scaling it is not far
        told = 1 / (1 + np.exp(-fitted @ features))
        steepness = (features * (weight * told * (1 - told))) @ features.T
        step = np.linalg.solve(steepness, features @ (wanted - weight * told))
        fitted = fitted + step.clip(-1, 1)
    slope = float(np.clip(fitted[0], *_SLOPES))
    shift = float(fitted[1])
    return Scaling(shift=round(shift, 4), slope=round(slope, 4), outcomes=len(weights))
