"""The tail of a Beta distribution."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.credibility import beta_below, probability_above

rates = st.floats(0.01, 0.99)
counts = st.floats(0, 2_000)


@given(rates, st.integers(1, 60), st.integers(1, 60))
def test_for_whole_counts_it_is_the_tail_of_a_binomial(x: float, a: int, b: int) -> None:
    """DLMF 8.17.5: P(Beta(a, b) <= x) = P(Binomial(a + b - 1, x) >= a)."""
    n = a + b - 1
    exact = sum(comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert beta_below(x, a, b) == pytest.approx(exact, abs=1e-10)


@given(rates, counts, counts, st.floats(0, 100))
def test_bad_trials_raise_it_and_good_ones_lower_it(
    rate: float, bad: float, good: float, more: float
) -> None:
    """Up to rounding."""
    base = probability_above(rate, bad=bad, good=good, prior_trials=10)
    worse = probability_above(rate, bad=bad + more, good=good, prior_trials=10)
    better = probability_above(rate, bad=bad, good=good + more, prior_trials=10)
    assert 0 <= better <= base + 1e-9 <= worse + 2e-9 <= 1 + 2e-9


def test_large_counts_are_a_step() -> None:
    """A rate of 10 % in a million calls is surely above 9 % and surely not above 11 %."""
    assert probability_above(0.09, bad=1e5, good=9e5, prior_trials=10) == pytest.approx(1)
    assert probability_above(0.11, bad=1e5, good=9e5, prior_trials=10) == pytest.approx(0)
