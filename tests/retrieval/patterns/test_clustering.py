"""Failures that say one thing are one pattern, which keeps its id; others stay apart."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeddings.protocol import Embedder
from retrieval.knowledge.patterns.consolidation import Failure
from retrieval.knowledge.patterns.groups import MAX_FAILURES, group_failures
from retrieval.knowledge.reading.faults import FaultKind
from retrieval.knowledge.tool.causes import PlaceChange, correction_of, find_place_changes
from retrieval.knowledge.tool.examples import RepairExample
from tests.retrieval.patterns.failures import NOON, TOOL, clustered, failure

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


SHOP: dict[str, FaultKind] = {"shop": "missing"}
ISO = {"date": PlaceChange("string", "string", "9-9-9")}
RENAMED = {"order_no": PlaceChange("string", ""), "order_id": PlaceChange("", "string")}
ALIKE = {
    "a fault in two dialects": [
        failure(1, "'shop' is a required property", places=SHOP),
        failure(2, "missing field `shop` at line <n>", places=SHOP),
    ],
    "one repair of words that say nothing": [
        failure(1, "Bad request", changes=ISO),
        failure(2, "Something went wrong", category="unknown", changes=ISO),
        failure(3, "could not parse <v>", changes=ISO),
    ],
    "a rename, seen from both ends": [
        failure(1, "unknown order_no", places={"order_no": "unexpected"}, changes=RENAMED),
        failure(2, "order_id missing", places={"order_id": "missing"}, changes=RENAMED),
    ],
    "a repair that says more in one session": [
        failure(1, "Bad request", changes=ISO),
        failure(2, "Oops", changes=ISO | {"guest": PlaceChange("string", "string", "a")}),
    ],
    "a tool that is too slow": [
        failure(1, "timed out after <n> s", category="timeout"),
        failure(2, "Deadline exceeded", category="timeout"),
    ],
    "one that leads from one to the other": [
        failure(1, "'shop' is a required property", places=SHOP),
        failure(2, "Bad request", changes={"shop": PlaceChange("", "string", "a")}),
        failure(3, "shop?", places=SHOP, changes={"shop": PlaceChange("", "string", "a")}),
    ],
}


@pytest.mark.parametrize("failures", ALIKE.values(), ids=ALIKE)
def test_wordings_of_one_cause_are_one_pattern(failures: list[Failure]) -> None:
    """However far apart their words are, and without the model where nothing else is there."""
    [pattern] = clustered([], failures)
    assert pattern.count == len(failures)
    assert clustered([pattern], failures) == [pattern]


OTHER_FORM = {"date": PlaceChange("string", "string", "a 9")}
OTHER_CAUSES = {
    "other forms of one parameter": [
        failure(1, "Bad request", changes=ISO),
        failure(2, "Oops", changes=OTHER_FORM),
    ],
    "near words, repaired otherwise": [
        failure(1, BOUND, changes=RENAMED),
        failure(2, BOUND_TOO, changes=ISO),
    ],
    "one parameter, other faults": [
        failure(1, "bad date", places={"date": "wrong_type"}, changes=ISO),
        failure(2, "no date", places={"date": "not_found"}, changes=ISO),
    ],
    "one repair, another kind": [
        failure(1, "not yours", category="permission_denied", changes=ISO),
        failure(2, "Bad request", changes=ISO),
    ],
}


@pytest.mark.parametrize("failures", OTHER_CAUSES.values(), ids=OTHER_CAUSES)
def test_other_causes_stay_apart(failures: list[Failure]) -> None:
    """Though something of them is the same."""
    assert len(clustered([], failures, NEAR)) == 2


def test_patterns_that_turn_out_to_be_one_keep_the_older_id() -> None:
    """Once a repair of both is known."""
    first, second = failure(1, "Bad request"), failure(2, "Oops")
    [older] = clustered([], [first])
    both = clustered([older], [first, second])
    assert len(both) == 2
    repaired = [failure(1, "Bad request", changes=ISO), failure(2, "Oops", changes=ISO)]
    [one] = clustered(both, repaired)
    assert (one.pattern_id, one.count) == (older.pattern_id, 2)


def test_what_repairs_have_in_common_is_told_without_values() -> None:
    """Of more than half of the examples; forms where they all agree."""
    pairs = [
        ({"date": "03/12/2026", "to": "Ott"}, {"date": "2026-12-03", "to": "Ott"}),
        ({"date": "25/11/2026", "to": "Lee"}, {"date": "2026-11-25", "to": "Ann"}),
        ({"date": "01/02/2026", "to": "Kim"}, {"date": "2026-02-01", "to": "Kim"}),
    ]
    examples = [
        RepairExample(failed, worked, [], "a", f"s{at}", f"e{at}", NOON)
        for at, (failed, worked) in enumerate(pairs)
    ]
    assert find_place_changes(examples) == ISO
    assert correction_of(ISO, {"date": "bad_format"}) == (
        "`date` must be written in the form that the tool states."
    )
    assert correction_of(RENAMED, {}) == "The parameter is called `order_id`, not `order_no`."


async def no_model() -> Embedder:
    """Whoever asks for it fails the test."""
    raise AssertionError


async def test_the_same_letters_need_no_vectors() -> None:
    """Masks, marks and case make no difference."""
    [before] = await asyncio.to_thread(clustered, [], [failure(1, "No route to <v>", count=2)])
    groups, embedded = await group_failures(
        TOOL, [before], [failure(2, "no route to: <n>!")], no_model
    )
    assert ([len(each.failures) for each in groups], embedded) == ([1], 0)


async def test_a_failure_without_kin_is_not_embedded() -> None:
    """There is nothing that it could be near to."""
    alone = [failure(1, BOUND), failure(2, "slow", category="timeout")]
    groups, embedded = await group_failures(TOOL, [], alone, no_model)
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
        places=st.sampled_from([{}, SHOP, {"topK": "missing"}, {"topK": "invalid"}]),
        changes=st.sampled_from([{}, ISO, RENAMED, OTHER_FORM]),
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
