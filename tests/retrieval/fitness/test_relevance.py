"""Relevance: bounded, monotone, near 1 for an obvious match and near 0 for none."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrieval.fitness.relevance import PAST_HALF, past_evidence, relevance

COSINES = st.floats(-1, 1)
TERMS = st.floats(0, 200)
SHARES = st.floats(0, 1)
SUCCESSES = st.lists(st.tuples(COSINES, SHARES), max_size=20)


@given(COSINES, TERMS, SHARES, TERMS)
def test_it_is_a_number_between_0_and_1(cosine, terms, past, best):
    """Whatever goes in, it can be multiplied with the base of a semantic match."""
    assert 0.0 <= relevance(cosine, terms, best_terms=best, past=past) <= 1.0


@given(COSINES, COSINES, TERMS, TERMS, SHARES, SHARES, TERMS)
def test_more_of_any_evidence_never_lowers_it(one, other, less, more, few, many, best):
    """Monotone in cosine, in BM25 and in past successes, each for itself and together."""
    low, high = sorted((one, other))
    less, more = sorted((less, more))
    few, many = sorted((few, many))
    start = relevance(low, less, best_terms=best, past=few)
    assert start <= relevance(high, less, best_terms=best, past=few)
    assert start <= relevance(low, more, best_terms=best, past=few)
    assert start <= relevance(low, less, best_terms=best, past=many)
    assert start <= relevance(high, more, best_terms=best, past=many)


@given(COSINES, TERMS, TERMS, TERMS)
def test_a_better_match_elsewhere_never_raises_it(cosine, terms, one, other):
    """The best BM25 tells how much a good match of this scenario has."""
    low, high = sorted((one, other))
    assert relevance(cosine, terms, best_terms=high) <= relevance(cosine, terms, best_terms=low)


def test_it_tells_an_obvious_match_from_none():
    """As 0.8 x relevance it must be able to compete with 0.9, and to lose against anything."""
    assert relevance(0.85, 19.0, best_terms=19.0) > 0.99
    assert relevance(0.55, 8.0, best_terms=8.0) > 0.9
    assert relevance(0.10, 0.0, best_terms=8.0) < 0.1
    assert relevance(0.0, 0.0, best_terms=0.0) < 0.05


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
