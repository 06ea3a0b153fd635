"""Confidence: monotone in evidence, with an honest interval, and moved by nobody alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.models import EvidenceSource
from retrieval import read_word_table
from retrieval.answers.judge.ranking import bound, judge
from retrieval.answers.proposers.case import Option, prior_trials
from retrieval.answers.proposers.compose import Proposal
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.confidence import Scaling, apply_logistic, log_odds, lower_bound
from retrieval.knowledge.fitting import fit_scaling
from retrieval.knowledge.rewrites.edits import Add, Clamp, Edit, Rename, Replace, edits_of_key
from retrieval.knowledge.tool.rules import SignatureKnowledge
from tests.retrieval.cases import answer_to, make_case, object_schema

AUTOMATIC = 0.8
MISSING = "'repo_path' is a required property"
SCHEMA = object_schema(repo_path="string") | {"additionalProperties": False}
RENAME = Rename(name="repo", to="repo_path")

counts = st.floats(0.1, 500)
trials = st.builds(Trials, counts, counts)
scalings = st.builds(Scaling, shift=st.floats(-3, 3), slope=st.floats(0.3, 2))


# Log-odds


@settings(deadline=None)
@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_any_score_has_a_probability_and_a_higher_one_no_lower(one: float, other: float) -> None:
    """Also infinite ones."""
    low, high = sorted([one, other])
    assert 0 < apply_logistic(low) <= apply_logistic(high) <= 1


# Evidence


@settings(deadline=None)
@given(st.floats(-20, 20), st.floats(0, 5), scalings)
def test_the_interval_is_around_the_probability(
    score: float, spread: float, scaling: Scaling
) -> None:
    """All three are probabilities, in order; more spread is a wider interval."""
    found, wider = (scaling.estimate_probability(score, each) for each in (spread, spread + 1))
    assert 0 <= wider.low <= found.low <= found.probability <= found.high <= wider.high <= 1


def bound_of(edit: Edit, evidence: Trials, *sources: EvidenceSource, repairs: int = 0) -> float:
    """What bounds the confidence of a proposal of this one edit."""
    option = Option((edit,), "found", evidence, sources, repairs=repairs)
    return bound(Proposal({}, (option,), frozenset(), ""))


FILL = Add(name="folder", value="temp")


@settings(deadline=None)
@given(trials, st.floats(0, 100))
def test_a_found_value_is_no_surer_than_its_record(evidence: Trials, more: float) -> None:
    """Whatever the calibration says; more that speaks for it never makes it less sure.

    A record that makes nothing likely promises its mean.
    """
    least = bound_of(FILL, evidence, "context", "session")
    assert least <= max(lower_bound(evidence), min(0.5, evidence.mean))
    assert bound_of(FILL, evidence.add_trials(Trials(more, 0)), "session") >= least - 1e-9


@pytest.mark.parametrize(
    ("edit", "sources", "repairs", "is_bounded"),
    [
        (FILL, ("session",), 0, True),
        (FILL, ("repairs", "profile"), 9, True),
        (FILL, ("context", "error"), 0, False),
        (FILL, ("schema",), 0, False),
        (Replace(name="to", before="Rome", value="Oslo"), ("profile",), 0, True),
        (Replace(name="to", before="Osloo", value="Oslo"), ("session",), 0, False),
        (Replace(name="level", before="urgent", value="p1"), ("repairs",), 1, True),
        (Replace(name="level", before="urgent", value="p1"), ("repairs",), 4, False),
        (RENAME, ("profile",), 0, False),
    ],
)
def test_what_neither_call_nor_tool_says_is_a_found_value(
    edit: Edit, sources: tuple[EvidenceSource, ...], repairs: int, is_bounded: bool
) -> None:
    """What was nearly sent was said, and what several repairs put in its place is about it."""
    assert (bound_of(edit, Trials(3, 1), *sources, repairs=repairs) < 1) is is_bounded


@given(st.floats(-9, 9), scalings)
def test_the_shipped_estimate_does_not_depend_on_the_workspace(
    score: float, scaling: Scaling
) -> None:
    """It is what the next scaling is fitted on: else each would build on the last."""
    ours, theirs = (each.estimate_probability(score, 0.1) for each in (scaling, Scaling()))
    assert ours.shipped == theirs.shipped == theirs.probability


# A rule, from its reports to the suggestion


def a_rule(message: str, edit: Edit, *, repairs: int, successes: int, failures: int) -> Any:
    """A rule that agents found, then followed; those that report failures are others."""
    known = SignatureKnowledge(signature=message, category="invalid_parameters")
    rule = known.rule_to_update([edit])
    for number in range(repairs):
        rule.add_repair(f"finder {number % 3}", f"session {number}")
    for number in range(failures):
        rule.add_report(f"critic {number % 2}", "failure")
    for number in range(successes):
        rule.add_report(f"follower {number % 3}", "success")
    return known


CASES: list[tuple[str, Edit, dict[str, Any], dict[str, Any], dict[str, Any] | None]] = [
    (MISSING, RENAME, {"repo": "a"}, {"repo_path": "a"}, SCHEMA),
    (MISSING, RENAME, {"repo": "a"}, {"repo_path": "a"}, None),
    ("limit must be <= 10", Clamp(name="limit"), {"limit": 50}, {"limit": 10}, None),
    (
        "bad ref",
        Replace(name="ref", before="old", value="new"),
        {"ref": "old"},
        {"ref": "new"},
        None,
    ),
]
"""Edits that are proposed without the rule too, in three ways, and one that only the rule has."""


def confidence_of(number: int, **reports: int) -> float:
    """How sure the ranking is of what the rule's edit makes; 0 where it is not proposed."""
    message, edit, parameters, mended, schema = CASES[number]
    known = a_rule(message, edit, **reports)
    case = make_case(parameters, message, schema=schema, signature=known)
    return max(
        (
            each.estimate.probability
            for each in judge(case, Scaling())
            if each.proposal.parameters == mended
        ),
        default=0.0,
    )


numbers = st.integers(0, len(CASES) - 1)
reports = st.integers(0, 12)


@pytest.mark.parametrize("outcome", ["successes", "failures"])
@settings(max_examples=200, deadline=None)
@given(numbers, reports, reports, reports)
def test_one_more_outcome_of_a_rule_moves_its_suggestion_its_own_way(
    outcome: str, number: int, repairs: int, successes: int, failures: int
) -> None:
    """From the stored reports through merging and ranking to the probability."""
    known = {"repairs": repairs, "successes": successes, "failures": failures}
    rise = confidence_of(number, **known | {outcome: known[outcome] + 1}) - confidence_of(
        number, **known
    )
    assert rise >= -1e-9 if outcome == "successes" else rise <= 1e-9


@pytest.mark.parametrize("number", range(3))
def test_a_suggestion_that_keeps_failing_is_not_retried_automatically(number: int) -> None:
    """Also one that is made without any rule: what ten followers report counts against it."""
    message, _, parameters, mended, schema = CASES[number]
    before = answer_to(make_case(parameters, message, schema=schema))
    best = before.response.suggestions[0]
    assert best.corrected_parameters == mended
    known = SignatureKnowledge(signature=message, category="invalid_parameters")
    rule = known.rule_to_update(edits_of_key(before.ranked[best.suggestion_id].edit_key))
    for agent in range(10):
        rule.add_report(f"agent {agent}", "failure")
    case = make_case(parameters, message, schema=schema, signature=known)
    assert all(each.confidence < AUTOMATIC for each in answer_to(case).response.suggestions)


# A workspace's own scaling


def scaled(scaling: Scaling, probability: float) -> float:
    """What the workspace makes of a shipped probability."""
    return apply_logistic(scaling.scale_score(log_odds(probability)))


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_overconfidence_is_taken_back(share: float) -> None:
    """Suggestions at 0.9 that succeed less often are soon no automatic retries."""
    rights = [n < 400 * share for n in range(400)]
    scaling = fit_scaling([0.9] * 400, rights, [f"agent {n % 20}" for n in range(400)])
    assert scaled(scaling, 0.9) == pytest.approx(share, abs=0.15)
    assert scaled(scaling, 0.9) < AUTOMATIC


outcomes = st.lists(
    st.tuples(
        st.floats(0, 1), st.booleans(), st.sampled_from(["ada", "bob", "eve", None])
    ), max_size=150,
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(outcomes, st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_a_scaling_keeps_the_order(
    said: list[tuple[float, bool, str | None]], one: float, other: float
) -> None:
    """Whatever became of them, the likelier stays the likelier: the slope is positive."""
    columns = [list(each) for each in zip(*said, strict=True)] or [[], [], []]
    scaling = fit_scaling(*columns)
    low, high = sorted([one, other])
    assert scaling.slope > 0
    assert scaled(scaling, low) <= scaled(scaling, high)


@pytest.mark.parametrize("flood", [True, False])
@pytest.mark.parametrize("mallory", ["mallory", None])
def test_a_flood_of_one_agent_moves_no_more_than_its_cap(flood: bool, mallory: str | None) -> None:
    """5,000 outcomes beside others' are worth as many as one agent may have, 50."""
    others = [(0.9, n % 10 != 0, f"agent {n % 8}") for n in range(200)]

    def fitted(size: int) -> Scaling:
        said = [*others, *[(0.9, flood, mallory)] * size]
        return fit_scaling(*[list(each) for each in zip(*said, strict=True)])

    few, many = fitted(50), fitted(5_000)
    assert many.shift == pytest.approx(few.shift, abs=0.01)
    assert many.slope == pytest.approx(few.slope, abs=0.01)
    assert scaled(many, 0.9) == pytest.approx(scaled(fitted(0), 0.9), abs=0.25)


# What is shipped


def shipped_priors() -> dict[str, tuple[float, float]]:
    """The measured Beta counts, right and wrong, by kind."""
    return {
        kind: (right, wrong)
        for kind, (right, wrong) in read_word_table("answers/proposers/priors.toml")[
            "measured"
        ].items()
    }


def test_shipped_priors_can_be_moved() -> None:
    """Both counts are above 0, and no kind is surer than 60 trials."""
    for kind, (right, wrong) in shipped_priors().items():
        assert min(right, wrong) > 0, kind
        assert right + wrong <= 60.1, kind


def test_every_prior_stands_once_and_is_used() -> None:
    """A kind that no proposer names any more goes; one that the table lacks is named."""
    table = read_word_table("answers/proposers/priors.toml")
    assert table["measured"].keys().isdisjoint(table["judged"])
    with pytest.raises(KeyError, match=r"priors\.toml"):
        prior_trials("no such kind")
    assert prior_trials("mine", (3, 1)).mean == 0.75
