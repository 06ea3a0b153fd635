"""Durations are told within the stated error, however they are spread."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.usage.durations import (
    BUCKETS,
    FIRST_BUCKET,
    RELATIVE_ERROR,
    bucket_of,
    quantile,
    quantiles,
)

durations = st.floats(0.02, 1e8, allow_nan=False)


def buckets(values: list[float]) -> Counter[int]:
    return Counter(bucket for each in values if (bucket := bucket_of(each)) is not None)


@given(st.lists(durations, min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_is_within_the_error_of_the_true_one(values: list[float], share: float) -> None:
    """The true one is the value of that rank among those that came."""
    exact = sorted(values)[int(share * (len(values) - 1))]
    told = quantile(buckets(values), share)
    assert told is not None
    assert abs(told - exact) <= exact * (RELATIVE_ERROR + 1e-6)


@given(st.lists(durations, max_size=50), st.lists(durations, max_size=50), st.floats(0, 1))
def test_what_is_merged_is_as_if_counted_together(
    one: list[float], other: list[float], share: float
) -> None:
    """Hours add up to windows without loss."""
    merged = buckets(one)
    merged.update(buckets(other))
    assert quantile(merged, share) == quantile(buckets(one + other), share)


def test_a_duration_that_nobody_measured_is_none() -> None:
    """The wire's default is 0; and of no durations there is no quantile."""
    assert bucket_of(0.0) is None
    assert quantile({}, 0.5) is None


def test_extremes_have_a_bucket() -> None:
    """A microsecond and a century are counted at the ends."""
    assert bucket_of(1e-9) == bucket_of(0.01)
    assert bucket_of(1e300) == bucket_of(1e9)
    assert (bucket_of(1e-9), bucket_of(1e300)) == (FIRST_BUCKET, FIRST_BUCKET + BUCKETS - 1)


@given(st.lists(st.lists(durations, max_size=20), min_size=1, max_size=5), st.floats(0, 1))
def test_many_at_once_are_told_as_each_by_itself(rows: list[list[float]], share: float) -> None:
    """NaN is none."""
    counts = np.zeros((len(rows), BUCKETS), np.int64)
    for number, values in enumerate(rows):
        for bucket, calls in buckets(values).items():
            counts[number, bucket - FIRST_BUCKET] = calls
    for number, told in enumerate(quantiles(counts, [share])[:, 0].tolist()):
        expected = quantile(buckets(rows[number]), share)
        assert np.isnan(told) if expected is None else told == pytest.approx(expected, rel=1e-12)
