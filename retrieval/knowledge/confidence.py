"""Confidence: Beta bounds, log-odds, and a workspace's own scaling of the judge's probability.

A workspace with enough outcomes of its own gets a two-parameter Platt scaling (Platt 1999) on top
of what the judge states (see `fitting`). Its slope is positive: it changes no order.
"""

from datetime import datetime
from math import exp, log, sqrt
from typing import NamedTuple

from pydantic import BaseModel, Field

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

    def scale_score(self, log_odds: float) -> float:
        """Return log-odds as the workspace scales them."""
        return self.shift + self.slope * log_odds

    def estimate_probability(self, log_odds: float, spread: float) -> Estimate:
        """Return the probability of log-odds as the workspace scales them, with its interval.

        Args:
            log_odds: those that the judge states.
            spread: half the width of the interval, in log-odds.
        """
        return Estimate(
            apply_logistic(self.scale_score(log_odds)),
            apply_logistic(self.scale_score(log_odds - spread)),
            apply_logistic(self.scale_score(log_odds + spread)),
            apply_logistic(log_odds),
        )


def apply_logistic(score: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, kept within those of 0.001 and 0.999."""
    kept = min(0.999, max(0.001, probability))
    return log(kept / (1 - kept))
