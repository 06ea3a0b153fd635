"""Repair rules as options: of the same error, of like ones, of all tools; and how they retire."""

from typing import Any

import pytest

from aftercall.models import ExecutionError
from ingest.learner import learn_repair
from ingest.mining import MinedRepair
from retrieval.answers.proposers.case import Case, value_sources_of
from retrieval.answers.proposers.experience import rule_options
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import (
    Add,
    Cast,
    Clamp,
    Edit,
    FromError,
    Remove,
    Rename,
    Replace,
)
from retrieval.knowledge.rewrites.inference import infer_edits
from retrieval.knowledge.tool.rules import SignatureKnowledge, ToolKnowledge, skeleton_of
from tests.retrieval.cases import an_execution, make_case, object_schema


def known(*edits: Edit, signature: str = "bad", sessions: int = 3) -> SignatureKnowledge:
    """A signature with one rule that agents of several sessions found."""
    found = SignatureKnowledge(signature=signature, category="invalid_parameters")
    rule = found.rule_to_update(list(edits))
    for number in range(sessions):
        rule.add_repair(f"agent {number}", f"session {number}")
    return found


def repair(
    failed: dict[str, Any], mended: dict[str, Any], message: str, number: int = 1
) -> MinedRepair:
    """A mined repair of a session of its own."""
    error = ExecutionError(message=message)
    reading = read_error(error, failed)
    edits = infer_edits(failed, mended, reading)
    assert edits, message
    session = f"s{number}"
    return MinedRepair(
        an_execution(parameters=failed, outcome="failure", error=error, session_id=session),
        an_execution(parameters=mended, session_id=session, agent=f"agent {number}"),
        reading,
        edits,
    )


def results(case: Case, **more: Any) -> list[Any]:
    """What the options of the rules make of the call."""
    return [
        apply_edits(case.parameters, option.edits, value_sources_of(case))
        for option in rule_options(case, **more)
    ]


def test_a_rule_learned_from_one_call_mends_another_with_other_values() -> None:
    """The bound of the error at hand is kept to, not that of the one it was learned from."""
    knowledge = ToolKnowledge()
    learn_repair(knowledge, repair({"n": 50}, {"n": 10}, "n must be <= 10"), None)
    message = "n must be <= 20"
    reading = read_error(ExecutionError(message=message), {"n": 99})
    case = make_case({"n": 99}, message, signature=knowledge.find_signature(reading.signature))
    assert results(case) == [{"n": 20}]


def test_like_errors_of_a_tool_share_their_rules_with_less_weight() -> None:
    """The same parameter of the wrong kind in other words: the rule is offered, less sure."""
    knowledge = ToolKnowledge()
    for number in range(3):
        made = repair({"n": "5"}, {"n": 5}, "1 bad: 'n' is not a valid integer", number)
        learn_repair(knowledge, made, None)
    first = next(iter(knowledge.signatures.values()))
    first.faults = {"n": "wrong_type"}
    assert knowledge.similar_signatures("another", {"n": "wrong_type"}) == [first]
    assert knowledge.similar_signatures("another", {"m": "wrong_type"}) == []
    assert knowledge.similar_signatures("another", {}) == []
    case = make_case({"n": "7"}, "n must be an integer")
    [near] = rule_options(case, near=knowledge.similar_signatures("another", {"n": "wrong_type"}))
    own = SignatureKnowledge(signature="own", category="invalid_parameters", rules=first.rules)
    [exact] = rule_options(make_case({"n": "7"}, "n must be an integer", signature=own))
    assert near.edits == exact.edits
    assert near.trials.mean < exact.trials.mean


@pytest.mark.parametrize(
    ("parameters", "edits"),
    [
        ({"zone": "UTC", "n": 1}, [Rename(name="zone", to="tz")]),
        ({"timezone": "UTC", "n": 1}, [Cast(name="n", to="string")]),
        ({"timezone": "UTC"}, [Replace(name="timezone", before="UTC", value="Mars")]),
        ({"timezone": "UTC", "n": 500}, [Clamp(name="n", maximum=200)]),
        ({"timezone": "UTC"}, [Remove(name="timezone")]),
        ({"timezone": "UTC"}, [Add(name="n", value="many")]),
        ({"timezone": "UTC", "at": {"d": 1}}, [Rename(name="at", inside=("d",), to="dd")]),
    ],
)
def test_the_live_schema_retires_what_it_contradicts(
    parameters: dict[str, Any], edits: list[Edit]
) -> None:
    """However often it worked under another schema."""
    schema = object_schema(
        ["timezone"],
        timezone={"type": "string", "enum": ["UTC", "CET"]},
        n={"type": "integer", "maximum": 100},
        at={"type": "object", "properties": {"day": {"type": "integer"}}},
    )
    signature = known(*edits)
    assert results(make_case(parameters, "odd", signature=signature))
    assert not results(make_case(parameters, "odd", signature=signature, schema=schema))


def test_a_general_rule_without_its_grounds_is_not_offered() -> None:
    """The error states no value this time."""
    signature = known(FromError(name="b"))
    assert not results(make_case({"b": "x"}, "b is odd", signature=signature))
    message = "No branch found with name 'mian'. Did you mean 'main'?"
    said = make_case({"b": "mian"}, message, signature=signature)
    assert results(said) == [{"b": "main"}]


def test_the_skeleton_names_places_and_kinds_alone() -> None:
    """Equal for any position in an array, and without a value."""
    reading = read_error(
        ExecutionError(message="", details={"errors": [
            {"loc": ["body", "flights", 3, "date"], "type": "missing", "msg": "Field required"},
        ]}),
        {"flights": [{}, {}, {}, {}]},
    )  # fmt: skip
    assert skeleton_of(reading) == {"flights[].date": "missing"}


@pytest.mark.parametrize(
    "edit",
    [
        Rename(name="users", inside=("x",), to="ada@acme.org"),
        Add(name="users", inside=("ada@acme.org",), value=True),
        Replace(name="style", before="a", value="ada"),
    ],
)
def test_what_one_session_alone_knew_stays_with_it(edit: Edit) -> None:
    """Keys, directories and values go to others only when several sessions had them."""
    call = {"users": {"x": 1}, "style": "a"}
    for sessions, offered in ((1, 0), (2, 1)):
        case = make_case(call, "odd", signature=known(edit, sessions=sessions))
        assert len(results(case)) == offered


def test_one_agent_that_mends_it_otherwise_does_not_take_a_rule_from_the_others() -> None:
    """Eight agents mend it alike; one has its own wishes a thousand times, in a thousand sessions.

    What it counts against the rule is bounded, as all that one agent says.
    """
    error = ExecutionError(message="bad ref")

    def mended(number: int, agent: str, value: str, edits: list[Edit] | None) -> MinedRepair:
        fields = {"session_id": f"{agent} {number}", "agent": agent}
        failed = an_execution(parameters={"ref": "old"}, outcome="failure", error=error, **fields)
        success = an_execution(parameters={"ref": value}, **fields)
        return MinedRepair(failed, success, read_error(error, failed.parameters), edits)

    alike: list[Edit] = [Replace(name="ref", before="old", value="new")]
    answers = []
    for flood in (5, 1_000):
        knowledge = ToolKnowledge()
        for number in range(8):
            learn_repair(knowledge, mended(number, f"agent {number}", "new", alike), None)
        for number in range(flood):
            learn_repair(knowledge, mended(number, "mallory", f"other {number}", None), None)
        case = make_case({"ref": "old"}, "bad ref", signature=knowledge.find_signature("bad ref"))
        [option] = rule_options(case)
        answers.append(option.trials.mean)
    assert answers[1] == pytest.approx(answers[0], abs=0.05)
    assert answers[1] > 0.5
