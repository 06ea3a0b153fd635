"""What a message names, the schema explains (ADR 83)."""

from typing import Any

import pytest

from aftercall.models import ExecutionError
from retrieval.answers.proposers.faults import faults_of
from retrieval.knowledge.reading.reader import read_error
from retrieval.knowledge.values.parameters import view_of_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "page": {"type": "integer"},
        "filter": {"type": "object", "properties": {"ownerId": {"type": "string"}}},
        "code": {"type": "string"},
    },
}


def found(message: str, parameters: dict[str, Any]) -> list[tuple[str, tuple[str | int, ...]]]:
    """Return kind and place of what is wrong with a call by message and schema."""
    reading = read_error(ExecutionError(message=message), parameters)
    faults = faults_of(parameters, reading, view_of_schema(SCHEMA), None, SCHEMA)
    return [(fault.kind, fault.path) for fault in faults]


@pytest.mark.parametrize(
    ("message", "parameters", "faults"),
    [
        ("unheard-of words about 'pageNo', sorry: invalid", {"pageNo": 3},
         [("unexpected", ("pageNo",))]),
        ("invalid: the thing called owner_id is odd", {"filter": {"owner_id": "a"}},
         [("unexpected", ("filter", "owner_id"))]),
        ("page must be an integer number", {"code": "x"}, [("missing", ("page",))]),
        ("filter.ownerId cannot be null", {"filter": {"ownerId": None}},
         [("wrong_type", ("filter", "ownerId"))]),
    ],
)  # fmt: skip
def test_a_named_key_is_at_fault_as_the_schema_says(
    message: str, parameters: dict[str, Any], faults: list[Any]
) -> None:
    """Unknown to it, or absent, or there and null."""
    assert [fault for fault in found(message, parameters) if fault[1]] == faults


def test_a_member_of_an_echoed_object_is_not_named() -> None:
    """The call that a message repeats says of none of its keys that it is wrong."""
    error = ExecutionError(message='invalid request: {"page_no": 3}')
    assert not read_error(error, {"page_no": 3, "code": "x"}).faults


def test_a_thing_that_is_not_found_is_no_missing_parameter() -> None:
    """Though the tool has a parameter of that name."""
    assert ("missing", ("page",)) not in found("page not found", {"code": "x"})


def test_a_traceback_of_sent_code_is_about_the_code() -> None:
    """And no parameter is left out for it, though one has the name."""
    message = (
        'Traceback (most recent call last):\n  File "<string>", line 2, in <module>\n'
        "TypeError: send() got an unexpected keyword argument 'page'"
    )
    error = ExecutionError(message=message)
    assert not read_error(error, {"code": "send(page=1)", "page": 1}).faults


def test_two_near_names_are_no_suggestion() -> None:
    """`Did you mean "a" or "b"?` leaves it open."""
    message = 'Field "name" is not defined by type "User". Did you mean "firstName" or "lastName"?'
    [fault] = read_error(ExecutionError(message=message), {"name": "Robin"}).faults
    assert fault.suggested is None
    assert fault.known == ("firstName", "lastName")
