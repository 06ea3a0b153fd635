"""Clustering: a partition by vectors, for any number of axes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.patterns.clusters import cluster_rows, to_unit

DIMENSION = 384
NEUTRAL = np.zeros((1, DIMENSION), dtype=np.float32)


def groups(*sizes: int, spread: float = 0.2, seed: int = 7) -> np.ndarray:
    """Unit rows around as many random directions as there are sizes."""
    random = np.random.default_rng(seed)
    middles = np.repeat(random.normal(size=(len(sizes), DIMENSION)), sizes, axis=0)
    return to_unit((middles + spread * random.normal(size=middles.shape)).astype(np.float32))


@pytest.mark.parametrize("sizes", [(1,), (1, 1), (2, 2), (3, 1, 5), (8,) * 20, (1,) * 30])
def test_one_threshold_serves_few_axes_and_many(sizes: tuple[int, ...]) -> None:
    """What is plainly together or apart is found so, from one axis to 160."""
    ends = np.cumsum(sizes)
    expected = [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    assert cluster_rows(groups(*sizes), NEUTRAL) == expected


@given(st.integers(0, 40), st.integers(0, 1_000))
def test_a_clustering_is_a_partition(size: int, seed: int) -> None:
    """Each row is in one cluster, whatever the vectors, those of nothing among them."""
    random = np.random.default_rng(seed)
    vectors = to_unit(random.normal(size=(size, DIMENSION)).astype(np.float32))
    vectors[::7] = 0
    found = cluster_rows(vectors, NEUTRAL)
    assert sorted(row for rows in found for row in rows) == list(range(size))


def test_axes_that_a_tool_names_together_are_kept_apart() -> None:
    """Near enough to be one, unless a referral says that they differ."""
    vectors = groups(2, 3, spread=0.7)
    assert [0, 1] in cluster_rows(vectors, NEUTRAL)
    assert [0, 1] not in cluster_rows(vectors, NEUTRAL, [(0, 1)])
