"""Whether a promoted version fails more than its original: a comparison of two failure rates.

With a uniform prior each failure rate is a Beta(failures + 1, successes + 1); the probability that
one is higher than the other has a closed form for whole counts (Miller 2015, "Formulas for Bayesian
A/B testing").
"""

from math import erf, exp, lgamma, log, sqrt
from typing import NamedTuple

LEAST_TRIALS = 10
"""Trials that either version must have before anything is said of it."""

SURE = 0.95
"""Probability from which on a promotion is reported. It is looked at again and again, so more than
1 in 20 harmless promotions would be reported at some time; a report changes nothing by itself."""

_MAX_TERMS = 1_000
"""Terms of the exact sum; beyond, a normal approximation is off by less than 0.01."""


class Counts(NamedTuple):
    """How often a version's calls succeeded and failed."""

    successes: int
    failures: int

    @property
    def total(self) -> int:
        """All calls."""
        return self.successes + self.failures


def compare(evolved: Counts, original: Counts) -> float:
    """The probability, in [0, 1], that the evolved version's failure rate is the higher one.

    0.5 where nothing is known of either. A further failure of the evolved version never lowers it.
    Exact (to rounding) as long as one of the four counts is below 1,000; beyond that by the normal
    approximation of both Betas, off by less than 0.01.
    """
    # P(X > Y) for X ~ Beta(a, b), Y ~ Beta(c, d); the sum may run over any of the four.
    a, b = evolved.failures + 1, evolved.successes + 1
    c, d = original.failures + 1, original.successes + 1
    smallest = min(a, b, c, d)
    if smallest > _MAX_TERMS:
        return _normal(a, b, c, d)
    if smallest == a:
        found = _sum(a, b, c, d)
    elif smallest == d:
        found = _sum(d, c, b, a)
    elif smallest == c:
        found = 1 - _sum(c, d, a, b)
    else:
        found = 1 - _sum(b, a, d, c)
    return min(1.0, max(0.0, found))


def fails_more(evolved: Counts, original: Counts) -> bool:
    """Whether the evolved version surely fails more: enough trials of both, and `SURE`."""
    if min(evolved.total, original.total) < LEAST_TRIALS:
        return False
    return compare(evolved, original) >= SURE


def _sum(a: int, b: int, c: int, d: int) -> float:
    """P(X > Y) for X ~ Beta(a, b) and Y ~ Beta(c, d), as a sum of `a` terms."""
    least = _log_beta(c, d)
    return sum(
        exp(_log_beta(c + i, b + d) - log(b + i) - _log_beta(1 + i, b) - least) for i in range(a)
    )


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _normal(a: int, b: int, c: int, d: int) -> float:
    spread = sqrt(_variance(a, b) + _variance(c, d))
    return 0.5 * (1 + erf((a / (a + b) - c / (c + d)) / (spread * sqrt(2))))


def _variance(a: int, b: int) -> float:
    return a * b / ((a + b) ** 2 * (a + b + 1))
