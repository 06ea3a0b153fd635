"""Failures that say one thing are one pattern, which keeps its id; others stay apart."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeddings.protocol import Embedder
from retrieval.patterns import MAX_FAILURES, grouped
from tests.retrieval.patterns.failures import TOOL, clustered, failure

BOUND = "topK must be <= <n>"
BOUND_TOO = "topK is too large, the maximum is <n>"
NEAR = {BOUND: 0.0, BOUND_TOO: 30.0}


def test_near_wordings_of_one_subject_are_one_pattern() -> None:
    """Counts, agents and examples of all are its own."""
    [pattern] = clustered([], [failure(1, BOUND, count=3), failure(2, BOUND_TOO, count=2)], NEAR)
    assert pattern.leader == BOUND
    assert pattern.signatures == [BOUND, BOUND_TOO]
    assert pattern.count == 5
    assert pattern.agents == ["agent-1", "agent-2"]
    assert pattern.execution_ids == ["execution-1", "execution-2"]
    assert (pattern.first_seen, pattern.last_seen) == (
        failure(1, BOUND).last_seen,
        failure(2, BOUND).last_seen,
    )


FROM, TO = "'from' is a required property", "'to' is a required property"
APART = {
    "far, of one parameter": (
        [failure(1, BOUND), failure(2, BOUND_TOO)],
        {BOUND: 0.0, BOUND_TOO: 60.0},
    ),
    "two parameters": ([failure(1, FROM), failure(2, TO)], {FROM: 0.0, TO: 1.0}),
    "two categories": ([failure(1, "failed"), failure(2, "failed", category="timeout")], None),
    "faults that contradict": (
        [
            failure(1, "bad topK", places={"topK": "missing"}),
            failure(2, "wrong topK", places={"topK": "out_of_range"}),
        ],
        {"bad topK": 0.0, "wrong topK": 1.0},
    ),
}


@pytest.mark.parametrize(("failures", "angles"), APART.values(), ids=APART)
def test_what_needs_another_correction_is_another_pattern(failures, angles) -> None:
    """However alike the words are; a cosine of a half is far."""
    assert len(clustered([], failures, angles or {})) == 2


async def no_model() -> Embedder:
    """Whoever asks for it fails the test."""
    raise AssertionError


async def test_the_same_letters_need_no_vectors() -> None:
    """Masks, marks and case make no difference."""
    [before] = await asyncio.to_thread(clustered, [], [failure(1, "No route to <v>", count=2)])
    groups, embedded = await grouped(TOOL, [before], [failure(2, "no route to: <n>!")], no_model)
    assert ([len(each.failures) for each in groups], embedded) == ([1], 0)


async def test_a_failure_without_kin_is_not_embedded() -> None:
    """There is nothing that it could be near to."""
    alone = [failure(1, BOUND), failure(2, "slow", category="timeout")]
    groups, embedded = await grouped(TOOL, [], alone, no_model)
    assert (len(groups), embedded) == (2, 0)


def test_a_new_wording_joins_the_pattern_of_last_night() -> None:
    """Which keeps its id and its leader, also when the new one is more frequent."""
    [before] = clustered([], [failure(1, BOUND)])
    [after] = clustered([before], [failure(1, BOUND), failure(2, BOUND_TOO, count=9)], NEAR)
    assert (after.pattern_id, after.leader) == (before.pattern_id, BOUND)
    assert after.signatures[0] == BOUND_TOO


def test_ids_last_when_the_leader_is_gone() -> None:
    """Most of it is the same."""
    both = [failure(1, BOUND), failure(2, BOUND_TOO)]
    [before] = clustered([], both, NEAR)
    [after] = clustered([before], both[1:])
    assert after.pattern_id == before.pattern_id
    assert after.first_seen == before.first_seen


def test_another_model_needs_new_vectors_and_keeps_the_patterns() -> None:
    """Vectors of two models are never compared."""
    both = [failure(1, BOUND), failure(2, BOUND_TOO)]
    [before] = clustered([], both, NEAR)
    third = failure(3, "topK exceeds <n>")
    angles = NEAR | {third.signature: 170.0, BOUND: 180.0}
    [after] = clustered([before], [*both, third], angles, embedder="another")
    assert after.pattern_id == before.pattern_id
    assert after.count == 3
    assert after.embedder == "another"


def test_only_the_most_frequent_of_very_many_are_looked_at() -> None:
    """A tool whose every message is new stays bounded."""
    many = [failure(n, f"oops {'abcdefghij'[n % 10] * (n // 10 + 1)}", count=n) for n in range(600)]
    found = clustered([], many)
    assert sum(each.count for each in found) == sum(range(600 - MAX_FAILURES, 600))


SIGNATURES = [
    BOUND, BOUND_TOO, "topK broke", "no <v> found", "No <n> found", "slow", "'to' missing",
]  # fmt: skip
failures = st.lists(
    st.builds(
        failure,
        st.integers(1, 40),
        st.sampled_from(SIGNATURES),
        category=st.sampled_from(["invalid_parameters", "timeout"]),
        count=st.integers(1, 5),
    ),
    max_size=12,
    unique_by=lambda each: each.document_id,
)
ANGLES = {each: 25.0 * place for place, each in enumerate(SIGNATURES)}


@given(failures, failures)
def test_doing_it_again_changes_nothing(first: list, second: list) -> None:  # type: ignore[type-arg]
    """After whatever nights came before."""
    once = clustered(clustered([], first, ANGLES), second, ANGLES)
    assert clustered(once, second, ANGLES) == once
    assert sum(each.count for each in once) == sum(each.count for each in second)
    assert len({each.pattern_id for each in once}) == len(once)
