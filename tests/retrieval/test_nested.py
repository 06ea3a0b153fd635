"""Faults inside nested values, and right values that the error states."""

from typing import Any

import pytest

from retrieval.answers.proposers.case import Case, value_sources_of
from retrieval.answers.proposers.compose import nested_options
from retrieval.answers.proposers.faults import inner_faults
from retrieval.answers.proposers.values import stated_value_options
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.reading.reader import ErrorReading
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.values.parameters import view_of_schema
from tests.retrieval.cases import answer_to, make_case, object_schema

FLIGHT = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "date": {"type": "string"},
        "seats": {"type": "integer", "maximum": 9},
        "cabin": {"enum": ["economy", "business"]},
    },
    "required": ["number", "date"],
    "additionalProperties": False,
}
BOOK = object_schema(
    ["flights"],
    flights={"type": "array", "items": {"$ref": "#/$defs/Flight"}},
    tags={"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
) | {"$defs": {"Flight": FLIGHT}}


def case_of(parameters: dict[str, Any], fault: Fault, schema: dict[str, Any] | None = None) -> Case:
    """The case of a call whose error names one fault."""
    return Case(
        parameters=parameters,
        reading=ErrorReading("invalid_parameters", 1.0, "s", (fault,), rejected_before_run=True),
        view=view_of_schema(schema) if schema else None,
        schema=schema,
        writes=False,
    )


def best(case: Case, fault: Fault) -> dict[str, Any]:
    """The call as the most trusted option for a fault would make it."""
    index = case.faults.index(fault)
    options = list(nested_options(case, index, fault))
    first = max(options, key=lambda option: option.trials.mean)
    assert index in first.covers
    return apply_edits(case.parameters, first.edits, value_sources_of(case))


def shown(case: Case) -> list[Fault]:
    """The faults inside nested objects, as the case would check them."""
    assert case.schema is not None
    return inner_faults(case.schema, case.parameters)


def call_of(part: dict[str, Any]) -> dict[str, Any]:
    """With this as its second flight, unless it is no flight."""
    flights = [{"number": "B", "date": "2"}]
    return {"flights": [*flights, part]} if "number" in part else {"flights": flights, **part}


@pytest.mark.parametrize(
    ("wrong", "fault", "right"),
    [
        # `tags/1` is a text where a number belongs.
        ({"tags": [1, "2", 3]}, Fault("wrong_type", ("tags", 1), expected_types=("integer",)),
         {"tags": [1, 2, 3]}),
        ({"number": "A", "dates": "1"},
         Fault("missing", ("flights", 1, "date")),
         {"number": "A", "date": "1"}),
        ({"number": "A", "date": "1", "seats": "3"},
         Fault("wrong_type", ("flights", 1, "seats"), expected_types=("integer",)),
         {"number": "A", "date": "1", "seats": 3}),
        ({"number": "A", "date": "1", "cabin": "Economy"},
         Fault("not_allowed", ("flights", 1, "cabin"), allowed=("economy", "business")),
         {"number": "A", "date": "1", "cabin": "economy"}),
    ],
)  # fmt: skip
def test_a_nested_fault_is_mended_in_its_place(
    wrong: dict[str, Any], fault: Fault, right: dict[str, Any]
) -> None:
    """The proposals for top-level parameters serve for the fields of an object in an array."""
    assert best(case_of(call_of(wrong), fault, BOOK), fault) == call_of(right)


def test_a_known_value_inside_of_a_call_is_found_without_a_schema() -> None:
    """What other sessions had at the same place of a list, or of an object."""
    profile = ToolProfile()
    for number in range(9):
        door = {"doors": ["driver", "rear_left"], "car": {"mode": "locked"}}
        profile.observe_success(door, session=f"s{number}", agent=f"a{number % 3}")
    for call, shown, at, right in (
        ({"doors": ["drivar"], "car": {"mode": "locked"}}, "drivar", "/doors/0", "driver"),
        ({"doors": ["rear_left"], "car": {"mode": "loccked"}}, "loccked", "/car/mode", "locked"),
    ):
        case = make_case(call, f"'{shown}' not found", profile=profile)
        [change] = answer_to(case).response.suggestions[0].changes
        assert (change.path, change.value) == (at, right)


def test_the_schema_shows_nested_faults_that_the_error_does_not_name() -> None:
    """A misspelt field of the second flight is found without a word about it."""
    case = make_case(
        {"flights": [{"number": "B", "date": "2"}, {"number": "A", "dates": "1", "seats": "3"}]},
        "Invalid arguments", schema=BOOK,
    )  # fmt: skip
    assert {(fault.kind, fault.path) for fault in shown(case)} == {
        ("missing", ("flights", 1, "date")),
        ("unexpected", ("flights", 1, "dates")),
        ("wrong_type", ("flights", 1, "seats")),
    }


def stated(parameters: dict[str, Any], fault: Fault) -> list[dict[str, Any]]:
    """The calls that a stated right value leads to, best first."""
    case = case_of(parameters, fault)
    return [
        apply_edits(parameters, option.edits, value_sources_of(case))
        for option in stated_value_options(case, 0, case.faults[0])
    ]


def test_a_stated_value_takes_the_place_of_the_wrong_one() -> None:
    """The wrong one is a single value of the call, wherever it is."""
    fault = Fault("not_allowed", value_text="299", stated=375)
    assert stated({"pay": [{"amount": 299}], "n": 1}, fault) == [{"pay": [{"amount": 375}], "n": 1}]
    assert stated({"a": 299, "b": 299}, fault) == []


def test_a_stated_total_is_made_up_by_one_of_its_parts() -> None:
    """The last takes the difference first; never surely, for it is the caller's to say."""
    fault = Fault("not_allowed", value_text="255", stated=305)
    call = {"pay": [{"amount": 250}, {"amount": 5}], "bags": [{"w": 9}, {"w": 8}]}
    made = stated(call, fault)
    assert [[each["amount"] for each in one["pay"]] for one in made] == [[250, 55], [300, 5]]
    assert stated({"pay": [{"amount": 1}, {"amount": 2}]}, fault) == []
