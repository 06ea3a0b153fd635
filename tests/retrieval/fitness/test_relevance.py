"""What past successes say: bounded, monotone, more of what is nearer."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval.fitness.relevance import PAST_HALF, past_evidence

COSINES = st.floats(-1, 1)
SHARES = st.floats(0, 1)
SUCCESSES = st.lists(st.tuples(COSINES, SHARES), max_size=20)


@given(SUCCESSES)
def test_past_evidence_is_between_0_and_1_and_free_of_order(successes):
    """Many successes saturate."""
    found = past_evidence(successes)
    assert 0.0 <= found <= 1.0
    assert past_evidence(reversed(successes)) == pytest.approx(found)


@given(SUCCESSES, COSINES, SHARES)
def test_another_success_never_lowers_past_evidence(successes, cosine, share):
    """What failed only adds nothing: failures are demoted elsewhere."""
    more = past_evidence([*successes, (cosine, share)])
    assert more >= past_evidence(successes) or math.isclose(more, past_evidence(successes))


@given(COSINES, COSINES, SHARES)
def test_a_nearer_success_says_more(one, other, share):
    """By the kernel: a tenth less of cosine counts e times less."""
    assume(share > 0.01)
    low, high = sorted((one, other))
    assert past_evidence([(low, share)]) <= past_evidence([(high, share)])


def test_one_success_at_the_half_point_says_one_half():
    """And one in the very same scenario nearly all, in an unlike one nearly nothing."""
    assert past_evidence([]) == 0.0
    assert past_evidence([(PAST_HALF, 1.0)]) == pytest.approx(0.5)
    assert past_evidence([(1.0, 1.0)]) > 0.95
    assert past_evidence([(0.3, 1.0)]) < 0.02
    assert past_evidence([(1.0, 0.0)]) == 0.0
