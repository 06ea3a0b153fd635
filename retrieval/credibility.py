"""How sure it is that a rate is above a tolerated one: the tail of a Beta distribution.

The tail is the regularised incomplete beta function, by the continued fraction of DLMF 8.17.22,
evaluated with the modified method of Lentz (Thompson and Barnett 1986). Counts may be fractions.
"""

from math import exp, lgamma, log, log1p

_TINY = 1e-300
_ENOUGH = 1e-13
_MAX_STEPS = 10_000
"""It takes about the square root of the counts; this bounds the work for counts of 10 million."""


def probability_above(rate: float, *, bad: float, good: float, prior_trials: float) -> float:
    """The probability, in [0, 1], that the true rate of bad trials is above `rate`.

    The prior is a Beta of mean `rate` that is worth `prior_trials` trials. More bad trials never
    lower the probability, more good ones never raise it (up to rounding).

    Args:
        rate: in (0, 1).
        bad: bad trials, weighted, not negative.
        good: the others.
        prior_trials: above 0.
    """
    return 1 - beta_below(rate, bad + rate * prior_trials, good + (1 - rate) * prior_trials)


def beta_below(x: float, a: float, b: float) -> float:
    """P(X <= x) for X ~ Beta(a, b), with x in (0, 1) and a, b above 0."""
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast below the mean only
        return 1 - _below(1 - x, b, a)
    return _below(x, a, b)


def _below(x: float, a: float, b: float) -> float:
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return min(1.0, max(0.0, front * _fraction(x, a, b)))


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _kept(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _kept(1 + term * d)
            c = _kept(1 + term / c)
            step = c * d
            value *= step
        if abs(step - 1) < _ENOUGH:
            break
    return value


def _kept(value: float) -> float:
    """Away from 0, by which it is divided."""
    return value if abs(value) > _TINY else _TINY
