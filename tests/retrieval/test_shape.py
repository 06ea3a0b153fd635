"""Calls in another shape than the tool's: what is proposed, how sure, and as what class."""

from typing import Any

import pytest

from aftercall.models import ExecutionError, Suggestion, ToolAnnotations
from retrieval.answers.answer import Question, answer
from retrieval.answers.proposers.case import CallContext
from tests.retrieval.cases import make_case, object_schema

ITEM = object_schema([], place_id="integer")
CLOSED = {"additionalProperties": False}
WEATHER = object_schema(city="string", days="integer") | CLOSED
EDIT = object_schema(oldText="string", newText="string") | CLOSED
EDITS = object_schema(
    path="string",
    edits={"type": "array", "items": EDIT},
) | CLOSED  # fmt: skip
ENTITY = {"name": "string", "entityType": "string"}
ENTITIES = object_schema(entities={"type": "array", "items": object_schema(**ENTITY)}) | CLOSED
PLACE = object_schema(name="string", at=object_schema(lat="number", lon="number")) | CLOSED
DAYS = object_schema(
    days={"type": "array", "items": {"type": "string", "enum": ["mon", "tue", "wed"]}},
) | CLOSED  # fmt: skip
PARIS = {"city": "Paris", "days": 3}
MISSING = "MCP error -32602: Input validation error: '{}' is a required property"


def suggestions(
    parameters: dict[str, Any], message: str, schema: dict[str, Any] | None
) -> list[Suggestion]:
    """What is answered for a tool that writes."""
    case = make_case(parameters, message, schema=schema, writes=True)
    question = Question(
        case, ExecutionError(message=message), ToolAnnotations(),
        call_context=CallContext(tool_name="put_thing"),
    )  # fmt: skip
    return answer(question, limit=3).response.suggestions


@pytest.mark.parametrize(
    ("parameters", "name", "schema", "right"),
    [
        ({"params": PARIS}, "city", WEATHER, PARIS),
        ({"kwargs": PARIS}, "city", WEATHER, PARIS),
        ({"input": '{"city": "Paris", "days": 3}'}, "city", WEATHER, PARIS),
        ({"arguments": {"input": PARIS}}, "city", WEATHER, PARIS),
        ({"arguments": [PARIS]}, "city", WEATHER, PARIS),
        ({"options": {"days": 3}, "city": "Paris"}, "days", WEATHER, PARIS),
        ({"city": {"value": "Paris"}, "days": 3}, "city", WEATHER, PARIS),
        ({"city": {"type": "string", "value": "Paris"}, "days": 3}, "city", WEATHER, PARIS),
        ({"city": {"city": "Paris", "days": 3}}, "days", WEATHER, PARIS),
        ({"path": "a", "oldText": "x", "newText": "y"}, "edits", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"path": "a", "old_string": "x", "new_string": "y"}, "edits", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"name": "Ada", "entityType": "person"}, "entities", ENTITIES,
         {"entities": [{"name": "Ada", "entityType": "person"}]}),
        ({"name": "Ada", "type": "person"}, "entities", ENTITIES,
         {"entities": [{"name": "Ada", "entityType": "person"}]}),
        ({"name": "here", "lat": 1.5, "lon": 2}, "at", PLACE,
         {"name": "here", "at": {"lat": 1.5, "lon": 2}}),
        ({"name": "here", "at": {"lat": 1.5, "lon": 2, "name": "x"}}, None, PLACE, None),
        ({"params": {"City": "Paris", "days": "3"}}, "city", WEATHER, PARIS),
        ({"path": "a", "edits": [{"oldText": "x"}], "newText": "y"}, "edits", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"edits": [{"oldText": "x", "newText": "y", "path": "a"}]}, "path", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"city": 3, "days": "Paris"}, "x", WEATHER, PARIS),
        ({"input": "city,days\nParis,3"}, "city", WEATHER, PARIS),
        ({"table": "| city | days |\n| --- | --- |\n| Paris | 3 |"}, "city", WEATHER, PARIS),
        ({"input": "city,days\nParis,3\nRome,2"}, "city", WEATHER, None),
        ({"path": "a", "edits[0][oldText]": "x", "edits[0][newText]": "y"}, "edits", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"path": "a", "edits": [{"OLD_TEXT": "x", "New_Text": "y"}]}, "oldText", EDITS,
         {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ({"days": ["['mon', 'tue']"]}, "days", DAYS, {"days": ["mon", "tue"]}),
        ({"path": "a", "edits[\u00b2]": "x", "edits" + "[0]" * 900: "y"}, "edits", EDITS, None),
        ({"days": ["mon, tue"]}, "days", DAYS, {"days": ["mon", "tue"]}),
    ],
)  # fmt: skip
def test_a_call_in_another_shape_is_put_into_the_tools(
    parameters: dict[str, Any],
    name: str | None,
    schema: dict[str, Any],
    right: dict[str, Any] | None,
) -> None:
    """Sure where nothing of it is lost; what is in there is mended like any call."""
    found = suggestions(parameters, MISSING.format(name), schema)
    if right is None:
        assert not found or found[0].change_class != "lossless"
        return
    assert found[0].corrected_parameters == right
    assert found[0].confidence > (0.8 if found[0].change_class == "lossless" else 0.5)


@pytest.mark.parametrize(
    ("parameters", "message", "schema", "right", "change_class"),
    [
        ({"city": {"name": "Paris", "land": "France"}, "days": 3},
         f"{MISSING[:18]}'city' must be string", WEATHER,
         {"city": '{"name":"Paris","land":"France"}', "days": 3}, "lossless"),
        ({"data": PARIS}, MISSING.format("city"), None, PARIS, "lossless"),
        ({"args": ["Paris", 3]}, MISSING.format("city"), WEATHER, PARIS, "plausible"),
    ],
    ids=["as text", "without a schema", "without names"],
)  # fmt: skip
def test_what_is_there_is_put_where_it_is_due(
    parameters: dict[str, Any], message: str, schema: dict[str, Any] | None,
    right: dict[str, Any], change_class: str,
) -> None:  # fmt: skip
    """An object as text says the same; values without names take those of the schema, in order."""
    [best, *_] = suggestions(parameters, message, schema)
    assert (best.corrected_parameters, best.change_class) == (right, change_class)


def test_a_call_inside_a_call_is_never_one_value() -> None:
    """It is neither renamed to what is missing, nor left out."""
    parameters = {"body": {"city": "Paris"}, "days": 3}
    for each in suggestions(parameters, MISSING.format("city"), WEATHER):
        assert each.corrected_parameters == PARIS


@pytest.mark.parametrize("city", ["<your city>", "{{city}}", "your_city_here"])
def test_a_call_that_is_still_strange_is_less_sure(city: str) -> None:
    """The repaired call is judged as a whole: a placeholder is no value."""
    found = suggestions(
        {"city": city, "days": "3"}, f"{MISSING[:18]}'days' must be integer", WEATHER
    )
    plain = suggestions(
        {"city": "Paris", "days": "3"}, f"{MISSING[:18]}'days' must be integer", WEATHER
    )
    changed = [each.confidence for each in found if each.corrected_parameters]
    assert plain[0].confidence > 0.9
    assert max(changed, default=0.0) < 0.8 or found[0].corrected_parameters == PARIS


def test_two_faults_are_hardly_surer_than_the_weaker_alone() -> None:
    """However often both were right: what the schema proves is as sure for two as for one."""
    both = suggestions({"town": "Paris", "days": "3"}, MISSING.format("city"), WEATHER)
    alone = suggestions({"town": "Paris", "days": 3}, MISSING.format("city"), WEATHER)
    assert both[0].corrected_parameters == alone[0].corrected_parameters == PARIS
    assert both[0].confidence <= alone[0].confidence + 0.05


@pytest.mark.parametrize(
    ("parameters", "right"),
    [
        ({"input": {**PARIS, "reason": "asked"}}, PARIS),
        ({"town": "Paris", "days": "3", "apiVersion": "v2"}, PARIS),
        ({"city": ["Paris"], "days": 3, "verbose": True}, PARIS),
    ],
)
@pytest.mark.parametrize("message", ["400 Bad Request", "validation failed: 2 errors"])
def test_names_that_the_tool_does_not_have_go_with_the_other_mistakes(
    parameters: dict[str, Any], right: dict[str, Any], message: str
) -> None:
    """Also where nothing is said of them, and the schema does not forbid them."""
    open_schema = {key: of for key, of in WEATHER.items() if key != "additionalProperties"}
    assert suggestions(parameters, message, open_schema)[0].corrected_parameters == right


@pytest.mark.parametrize(
    ("parameters", "message", "schema"),
    [
        ({"genre": "x", "isbn": "y", "shelf": "z", "days": 3}, MISSING.format("city"), WEATHER),
        ({"api_version": "v2", "days": 3}, MISSING.format("city"), WEATHER),
        ({"files": {"a.py": "x"}}, "'files' must be array", None),
        ({"input": "city~days\nParis~3"}, MISSING.format("city"), WEATHER),
        ({"places": [{"Unit": "kg", "place_id": 5}], "days": "3"}, "'days' must be integer",
         object_schema([], days="integer", places={"type": "array", "items": ITEM})),
        ({"args": ["Paris"]}, "400 Bad Request: invalid arguments", None),
        ({"city=Paris": "", "days": 3}, MISSING.format("city"), WEATHER),
        ({"city": "report", "days": 3, "extension": "csv"},
         "got an unexpected keyword argument 'extension'", WEATHER),
    ],
)  # fmt: skip
def test_what_may_be_another_call_or_has_more_wrong_with_it_is_never_sure(
    parameters: dict[str, Any], message: str, schema: dict[str, Any] | None
) -> None:
    """More left out than kept; a name only left over; a map; what nothing shows.

    A text that names parameters; an unknown name inside; an error that says nothing; a value in the
    name; the name of a part of another value.
    """
    assert max((s.confidence for s in suggestions(parameters, message, schema)), default=0) < 0.8
