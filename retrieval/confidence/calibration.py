"""Calibration: from features to a probability that holds, with its interval.

Method: logistic regression (Platt 1999, with several features instead of one) over the log-odds of
the Beta means of a proposal's options. Its weights and the Beta priors by kind of edit are fitted
on the project's own benchmark history. A workspace with enough outcomes of its own gets a second,
two-parameter Platt scaling on top (see `retrieval.confidence.fitting`). Both have a positive slope,
and evidence moves nothing else of a proposal's own, so that confidence is monotone in evidence.
"""

import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from math import exp, log, sqrt
from typing import NamedTuple

from pydantic import BaseModel, Field

from retrieval.confidence.features import FEATURES
from retrieval.proposals.compose import Proposal

ENOUGH_OUTCOMES = 50
"""Outcomes, weighed, below which a workspace keeps the shipped calibration."""

_Z = 1.645
"""Of the two-sided 90 % interval."""


class Estimate(NamedTuple):
    """A probability of right, and the ends of its 90 % interval; all in [0, 1].

    `shipped` is the probability before the workspace's own scaling.
    """

    probability: float
    low: float
    high: float
    shipped: float

    def at_most(self, limit: float) -> "Estimate":
        """The same, none of its numbers above the limit."""
        return Estimate(*(min(limit, each) for each in self))


class Scaling(BaseModel):
    """A workspace's own Platt scaling of the shipped probability."""

    shift: float = 0.0
    slope: float = Field(default=1.0, gt=0)
    outcomes: int = 0
    """How many outcomes it was fitted on; 0 for none of its own."""
    fitted_at: datetime | None = None

    def score(self, score: float) -> float:
        """Log-odds from log-odds."""
        return self.shift + self.slope * score


class Calibration(BaseModel):
    """The fitted weights, and the workspace's own scaling."""

    intercept: float = 0.0
    """What has no rival and leaves nothing open is surer than the mean of its kind."""
    weights: dict[str, float] = Field(default_factory=lambda: {"likelihood": 1.0})
    scaling: Scaling = Field(default_factory=Scaling)

    def estimate(self, features: tuple[float, ...], proposal: Proposal) -> Estimate:
        """The probability that a proposal is right.

        The interval is that of the options' Beta counts by the delta method: little evidence makes
        it wide.
        """
        score = self.intercept + sum(
            self.weights.get(name, 0.0) * value
            for name, value in zip(FEATURES, features, strict=True)
        )
        spread = _Z * self.weights["likelihood"] * _deviation(proposal)
        own = self.scaling.score
        return Estimate(
            logistic(own(score)),
            logistic(own(score - spread)),
            logistic(own(score + spread)),
            logistic(score),
        )


def _deviation(proposal: Proposal) -> float:
    """Standard deviation of the log-odds of a proposal's likelihood."""
    variance = 0.0
    for option in proposal.options:
        right, wrong = max(option.evidence.right, 0.1), max(option.evidence.wrong, 0.1)
        variance += (right + wrong) / (right * wrong * (right + wrong + 1))
    return sqrt(variance)


def logistic(score: float) -> float:
    """The probability of log-odds."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def log_odds(probability: float) -> float:
    """The log-odds of a probability, kept within those of 0.001 and 0.999."""
    kept = min(0.999, max(0.001, probability))
    return log(kept / (1 - kept))


@cache
def shipped() -> Calibration:
    """The calibration that was fitted on the project's own benchmark history."""
    text = files("retrieval").joinpath("calibration.json").read_text(encoding="utf-8")
    fitted = json.loads(text)
    return Calibration(intercept=fitted["intercept"], weights=fitted["weights"])
