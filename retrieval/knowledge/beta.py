"""Beta distributions: the share of one below a point, and how likely one rate is above another."""

from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

_FAR = 30.0
"""Standard deviations from the mean within which a Beta lies, to what a double shows apart."""
_NODES = 256
_EXACT = 1e-14


class Beta(NamedTuple):
    """The distribution of a rate after so many trials, its prior's among them; both above 0."""

    right: float
    wrong: float

    def probability_below(self, share: float) -> float:
        """Return the probability, in [0, 1], of a rate below `share`.

        The regularised incomplete beta.

        By its continued fraction (DLMF 8.17.22), from its beginning (Lentz).
        """
        if share > (self.right + 1) / (self.right + self.wrong + 2):  # it converges below that
            return 1 - Beta(self.wrong, self.right).probability_below(1 - share)
        if share <= 0:
            return 0.0
        a, b = self
        found, c, d = 1.0, 1.0, 0.0
        term, change = 0, 0.0
        while abs(change - 1) > _EXACT:
            term += 1
            m = term // 2
            top = -(a + m) * (a + b + m) if term % 2 else m * (b - m)
            top *= share / ((a + term - 1) * (a + term))
            c, d = 1 + top / c, 1 / (1 + top * d)
            change = c * d
            found *= change
        return min(1.0, self._density_at(share) * share * (1 - share) / (a * found))

    def probability_above(self, other: "Beta") -> float:
        """Return the probability, in [0, 1], that the rate of this one is above that of the other.

        The density of the narrower one, times the share of the wider below it, is summed at the
        points of Gauss and Legendre.
        """
        if self.deviation > other.deviation:
            return 1 - other.probability_above(self)
        mean, reach = self.right / (self.right + self.wrong), _FAR * self.deviation
        low, high = max(0.0, mean - reach), min(1.0, mean + reach)
        placed = ((low + (high - low) * point, weight) for point, weight in _gauss_points())
        dense = [(at, weight * self._density_at(at)) for at, weight in placed]
        return sum(mass * other.probability_below(at) for at, mass in dense) / sum(
            mass for _, mass in dense
        )

    def _density_at(self, share: float) -> float:
        a, b = self
        scale = lgamma(a + b) - lgamma(a) - lgamma(b)
        return exp(scale + (a - 1) * log(share) + (b - 1) * log1p(-share))

    @property
    def deviation(self) -> float:
        """Its standard deviation."""
        total = self.right + self.wrong
        return sqrt(self.right * self.wrong / (total * total * (total + 1)))


@cache
def _gauss_points() -> list[tuple[float, float]]:
    """Return the points within (0, 1), each with its weight."""
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    return list(zip(((points + 1) / 2).tolist(), weights.tolist(), strict=True))


_OLD_SCHEMA = 0.5
"""Weight of what was seen under another schema of the tool (4-rules.md, Suggesting)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Beta counts: how often such an edit was right and wrong; priors count as trials too.

    `kind` names what the counts are of, so that outcomes of such edits can be counted for it.
    """

    right: float
    wrong: float
    kind: str = ""

    @property
    def mean(self) -> float:
        """Share that was right, in [0, 1]."""
        return self.right / (self.right + self.wrong)

    def add_trials(self, other: "Trials") -> "Trials":
        """Return both evidences together; of this one's kind."""
        return Trials(self.right + other.right, self.wrong + other.wrong, self.kind)

    def under_old_schema(self) -> "Trials":
        """Return the same seen under another schema.

        Half of what spoke for it, and one more doubt.
        """
        return Trials(self.right * _OLD_SCHEMA, self.wrong + 1, self.kind)
