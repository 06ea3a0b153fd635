"""Schemas of odd shape are read as they mean: valid calls pass, wrong types do not."""

from collections import Counter

import pytest

from aftercall.json_schemas import plain_schema
from bench.quality.odd_schemas import SCHEMAS, measure
from retrieval.knowledge.values.parameters import view_of_schema
from tests.service.running_service import RunningService


def test_valid_calls_pass_and_wrong_types_do_not(service: RunningService) -> None:
    """A share of `python -m bench.quality.odd_schemas`."""
    found = measure(service, calls=15)
    total = sum(found.values(), Counter[str]())
    assert total["valid"] == 15 * len(SCHEMAS)
    assert {name: each for name, each in found.items() if each["warned"]} == {}
    assert total["passed"] == total["passed in the SDK"] == 0


@pytest.mark.parametrize(
    ("name", "required", "known"),
    [
        ("root reference", {"query"}, {"query", "limit"}),
        ("root reference to a union", set(), {"page_id", "database_id"}),
        ("root oneOf", set(), {"id", "slug", "lang"}),
        ("root oneOf by a tag", {"kind"}, {"kind", "radius", "width", "height"}),
        ("root anyOf beside properties", {"channel"}, {"channel", "text", "blocks"}),
        ("root allOf", {"owner", "repo"}, {"owner", "repo", "page", "perPage"}),
        ("allOf beside properties", {"id", "at"}, {"id", "at", "note"}),
    ],
)
def test_parameters_are_found_at_the_root(name: str, required: set[str], known: set[str]) -> None:
    """Through references, parts and alternatives; what every alternative needs is needed."""
    view = view_of_schema(SCHEMAS[name])
    assert view.parameters.keys() == known
    assert {each for each, of in view.parameters.items() if of.required} == required


def test_a_tag_may_be_that_of_each_alternative() -> None:
    """`kind` is a circle's or a box's."""
    view = view_of_schema(SCHEMAS["root oneOf by a tag"])
    assert view.parameters["kind"].allowed == ("circle", "box")


def test_names_that_a_pattern_takes_are_known() -> None:
    """Others are not; a pattern that no engine can bound takes none."""
    view = view_of_schema(SCHEMAS["pattern properties"])
    assert view.unknown_parameters({"url": "a", "x-trace": "b", "y-trace": "c"}) == ["y-trace"]
    broken = view_of_schema({"patternProperties": {"(?=a)": {}}})
    assert broken.unknown_parameters({"a": 1}) == ["a"]


def test_openapi_is_written_as_json_schema() -> None:
    """`nullable` and exclusive bounds, at each depth; a parameter may be called `nullable`."""
    schema = {
        "properties": {
            "nullable": {"type": "boolean"},
            "a": {"type": "string", "nullable": True},
            "b": {"enum": ["x"], "nullable": True},
            "c": {"$ref": "#/$defs/c", "nullable": True},
            "d": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "e": {"maximum": 1, "exclusiveMaximum": False, "default": {"nullable": True}},
        }
    }
    assert plain_schema(schema)["properties"] == {
        "nullable": {"type": "boolean"},
        "a": {"type": ["string", "null"]},
        "b": {"enum": ["x", None]},
        "c": {"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]},
        "d": {"type": "number", "exclusiveMinimum": 0},
        "e": {"maximum": 1, "default": {"nullable": True}},
    }
