"""Our Betas against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv

from retrieval.knowledge.beta import Beta

trials = st.floats(0.5, 1e5)
betas = st.builds(Beta, trials, trials)


@given(betas, st.floats(0, 1))
def test_the_share_below_is_the_incomplete_beta(rate: Beta, share: float) -> None:
    """From half a trial to many, in the tails and between."""
    assert rate.probability_below(share) == pytest.approx(betainc(*rate, share), abs=1e-8)


def test_the_ends() -> None:
    """Nothing is below 0, and all is below 1."""
    assert (Beta(2, 3).probability_below(0.0), Beta(2, 3).probability_below(1.0)) == (0, 1)


@given(*2 * [st.builds(Beta, st.integers(1, 2000), st.integers(1, 2000))])
def test_one_rate_above_another(one: Beta, other: Beta) -> None:
    """As the mean of the tail over many quantiles of the other has it; and the other way round."""
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    tails = 1 - betainc(*one, betaincinv(*other, quantiles))
    assert one.probability_above(other) == pytest.approx(tails.mean(), abs=1e-4)
    assert one.probability_above(other) + other.probability_above(one) == pytest.approx(1, abs=1e-9)
