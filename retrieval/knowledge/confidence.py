"""Confidence: Beta bounds, log-odds, and a workspace's own scaling of the judge's probability.

A workspace with enough outcomes of its own gets a two-parameter Platt scaling (Platt 1999) on top
of what the judge states (see `fitting`). Its slope is positive: it changes no order.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from math import exp, log, sqrt
from typing import NamedTuple

from pydantic import BaseModel, Field

from retrieval import read_data_file
from retrieval.knowledge.beta import Trials

MIN_CONFIDENCE = 0.15
"""Below this nothing is proposed (4-rules.md, Suggesting)."""


def lower_bound(trials: Trials, deviations: float = 1.0) -> float:
    """Return the Beta mean less so many standard deviations, in [0, 1].

    Higher is more likely right.
    """
    total = trials.right + trials.wrong
    deviation = sqrt(trials.right * trials.wrong / (total**2 * (total + 1)))
    return max(0.0, trials.mean - deviations * deviation)


ENOUGH_OUTCOMES = 50
"""Outcomes, weighed, below which a workspace keeps the shipped calibration."""


class Estimate(NamedTuple):
    """A probability of right, its 90 % interval, and `shipped`, before scaling; all in [0, 1]."""

    probability: float
    low: float
    high: float
    shipped: float

    def scale_down(self, factor: float) -> "Estimate":
        """Return the same, each of its numbers so much smaller: what was less likely stays so."""
        return Estimate(*(factor * each for each in self))


class Scaling(BaseModel):
    """A workspace's own Platt scaling of the shipped probability."""

    shift: float = 0.0
    slope: float = Field(default=1.0, gt=0)
    outcomes: int = 0
    """How many outcomes it was fitted on; 0 for none of its own."""
    fitted_at: datetime | None = None

    def scale_score(self, score: float) -> float:
        """Log-odds from log-odds."""
        return self.shift + self.slope * score


class Calibration(BaseModel):
    """The weights of evidence for similar repairs before, and the workspace's own scaling."""

    intercept: float = 0.0
    weights: dict[str, float] = Field(default_factory=lambda: {"odds": 1.0})
    scaling: Scaling = Field(default_factory=Scaling)

    def score_signals(self, signals: Mapping[str, float]) -> float:
        """Return the log-odds of right of what was repaired alike before, by its signals."""
        return self.intercept + sum(weight * signals[name] for name, weight in self.weights.items())

    def estimate_probability(self, score: float, spread: float) -> Estimate:
        """Return the probability of log-odds as the workspace scales them, with its interval."""
        own = self.scaling.scale_score
        return Estimate(
            apply_logistic(own(score)),
            apply_logistic(own(score - spread)),
            apply_logistic(own(score + spread)),
            apply_logistic(score),
        )


def apply_logistic(score: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, kept within those of 0.001 and 0.999."""
    kept = min(0.999, max(0.001, probability))
    return log(kept / (1 - kept))


@cache
def shipped_calibration() -> Calibration:
    """Return the calibration that was fitted on the project's own benchmark history."""
    fitted = read_data_file("knowledge/calibration.json")
    return Calibration(intercept=fitted["intercept"], weights=fitted["weights"])
