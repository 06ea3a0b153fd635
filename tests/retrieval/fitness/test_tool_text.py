"""What is embedded of a tool, and the terms it is found by."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Tool
from embeddings.text import MAX_TERMS
from retrieval.knowledge.rows.tool_texts import MAX_TEXT, tool_terms, tool_text

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "jobTitle": {"type": "string", "description": "Occupation, such as nurse"},
        "options": {
            "type": "object",
            "properties": {"sort_by": {"enum": ["population", "year", 7]}},
        },
        "places": {"type": "array", "items": {"properties": {"country": {}}}},
    },
}


def _tool(name: str = "getHealthWorkforce", **fields: Any) -> Tool:
    made = {"tool_id": "t", "name": name, "updated_at": datetime(2026, 1, 5, tzinfo=UTC)}
    return Tool.model_validate(made | fields)


def test_the_text_says_in_words_what_the_tool_is_and_takes():
    """Identifiers are split, since the model reads prose; the name is first, as it says most."""
    tool = _tool(
        description="Counts medical staff.", namespace="public_health", tags=["statistics"],
        input_schema=SCHEMA,
    )  # fmt: skip
    assert tool_text(tool) == (
        "get health workforce: Counts medical staff. For public health, statistics. "
        "Takes job title, options, places."
    )


def test_the_terms_hold_what_the_schema_says_to_its_depth():
    """Names whole and split, descriptions and stated values: a scenario may use any of them."""
    terms = tool_terms(_tool(input_schema=SCHEMA, tags=["publicHealth"])).split()
    for word in (
        *("gethealthworkforce", "health", "publichealth", "jobtitle", "job", "nurse"),
        *("sortby", "population", "country"),
    ):
        assert word in terms


def test_negative_tags_are_in_no_text():
    """What a tool is not for must not make it found for just that."""
    tool = _tool(negative_tags=["not-for-code-blocks"])
    assert "code" not in tool_text(tool)
    assert "code" not in tool_terms(tool)


def test_a_long_description_leaves_room_for_the_parameters():
    """The model reads about 1,000 characters; parameters are among them all the same."""
    tool = _tool(description="word " * 1_000, input_schema=SCHEMA)
    assert len(tool_text(tool)) <= MAX_TEXT
    assert tool_text(tool).endswith("Takes job title, options, places.")


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": None},
        {"properties": {"a": True, "b": {"description": 7, "enum": "x"}}},
        {"properties": []},
        {"items": {"items": {"items": {"items": {}}}}},
        {"$ref": "#"},
    ],
)
def test_a_schema_that_is_none_is_passed_over(schema):
    """It is whatever the tool's maker wrote."""
    assert tool_text(_tool(input_schema=schema)).startswith("get health workforce:")
    assert tool_terms(_tool(input_schema=schema)).startswith("gethealthworkforce get health")


def test_a_deep_or_wide_schema_costs_no_more():
    """Depth and number of properties are bounded."""
    deep: dict[str, Any] = {}
    for level in range(40):
        deep = {"properties": {f"level{level}": deep}}
    wide = {"properties": {f"name{number}": {} for number in range(900)}}
    assert len(tool_terms(_tool(input_schema=deep)).split()) < 20
    assert len(tool_terms(_tool(input_schema=wide)).split()) <= MAX_TERMS
    assert len(tool_text(_tool(input_schema=wide))) <= MAX_TEXT


@given(st.text(min_size=1), st.text(max_size=1_500), st.lists(st.text(min_size=1), max_size=5))
def test_any_tool_has_a_text_of_bounded_length(name, description, tags):
    """Whatever is registered can be embedded, and gives the same text each time."""
    tool = _tool().model_copy(update={"name": name, "description": description, "tags": tags})
    assert 0 < len(tool_text(tool)) <= MAX_TEXT
    assert tool_text(tool) == tool_text(tool)
    assert len(tool_terms(tool).split()) <= MAX_TERMS
