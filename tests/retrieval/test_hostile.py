"""Hostile input: whatever is asked, an answer or an abstention comes, after bounded work."""

from typing import Any

import pytest

from retrieval.answers.judge.acceptance import accepts as may_be_made
from retrieval.answers.judge.acceptance import check_of
from retrieval.answers.proposers.compose import Proposal
from retrieval.knowledge.rows.documents import shape_of
from retrieval.knowledge.values.likeness import nearest_value
from retrieval.knowledge.values.parameters import MAX_SCHEMA, view_of_schema
from tests.retrieval.cases import make_case, object_schema


def accepts(parameters: dict[str, Any], schema: dict[str, Any]) -> bool:
    proposal = Proposal(parameters, (), frozenset(parameters), "")
    return may_be_made(make_case({}, "bad", schema=schema), proposal, check_of(schema))


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(a*)*(a*)*c"])
def test_a_catastrophic_pattern_does_not_hang(pattern: str) -> None:
    """A backtracking engine would take until the end of the world for 60 letters."""
    schema = object_schema(a={"type": "string", "pattern": pattern})
    assert not accepts({"a": "a" * 60 + "!"}, schema)


def test_a_pattern_is_still_held_against_a_value() -> None:
    """A bounded engine still checks; what it does not know it cannot refuse."""
    schema = object_schema(a={"type": "string", "pattern": r"^\d{4}-\d\d$"})
    assert accepts({"a": "2026-02"}, schema)
    assert not accepts({"a": "Feb 2026"}, schema)
    look_ahead = object_schema(a={"type": "string", "pattern": "(?=x)y"})
    assert accepts({"a": "anything"}, look_ahead)


def test_a_schema_that_branches_without_end_is_given_up() -> None:
    """2^40 paths through the references: after so many steps nothing is refused any more."""
    steps = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": steps | {"d40": {"type": "null"}},
    }
    assert accepts({"a": 1}, schema)


def test_a_schema_beyond_the_bound_is_not_looked_into() -> None:
    """It is neither cached nor checked; the answer goes by the error alone."""
    schema = object_schema(a={"type": "string", "description": "d" * MAX_SCHEMA})
    assert view_of_schema(schema).parameters == {}
    assert accepts({"a": 5}, schema)


def test_nearness_has_a_bound() -> None:
    """A text too long for a value of a closed list is near to none."""
    assert nearest_value("Berlin" * 100, ["Berlin" * 100, "Berlin"]) is None


def test_data_in_keys_makes_no_shape() -> None:
    """An object with a thousand keys holds data: else every call would be a document of its own."""
    first = shape_of({"a": {f"user{n}": 1 for n in range(1_000)}})
    other = shape_of({"a": {f"client{n}": 1 for n in range(1_000)}})
    assert first == other
