"""Lists of tools of MCP, OpenAI, Anthropic and OpenAPI, as tools to register."""

from typing import Any

import pytest

from aftercall.errors import ConfigurationError
from aftercall.tool_lists import read_tools

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MCP = {"name": "lookup", "description": "Finds it.", "inputSchema": SCHEMA,
       "annotations": {"readOnlyHint": True, "title": "Lookup"}}  # fmt: skip
OPENAI = {"name": "lookup", "description": "Finds it.", "parameters": SCHEMA, "strict": True}


@pytest.mark.parametrize(
    "value",
    [
        {"tools": [MCP]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [MCP]}},
        [MCP],
        [{"type": "function", "function": OPENAI}],
        {"model": "m", "tools": [{"type": "function", **OPENAI}]},
        {"functions": [OPENAI]},
        [{"name": "lookup", "description": "Finds it.", "input_schema": SCHEMA}],
    ],
)
def test_a_list_of_tools_is_read_in_each_form(value: Any) -> None:
    """With its schema; the id is that of the gateway."""
    (tool,) = read_tools(value, "geo")
    assert (tool.tool_id, tool.name, tool.server_name) == ("geo.lookup", "lookup", "geo")
    assert (tool.description, tool.input_schema) == ("Finds it.", SCHEMA)
    assert read_tools(value)[0].tool_id == "lookup"


def test_an_operation_of_openapi_is_a_tool() -> None:
    """Its parameters and the members of its body; what they refer to comes along."""
    document = {
        "openapi": "3.1.0",
        "paths": {
            "/orders/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {"operationId": "get_order", "summary": "Reads an order."},
                "put": {
                    "parameters": [
                        {"name": "dry", "in": "query", "schema": {"type": "boolean"}},
                        {"name": "X-Key", "in": "header", "schema": {"type": "string"}},
                    ],
                    "requestBody": {"required": True, "content": {"application/json": {"schema": {
                        "$ref": "#/components/schemas/Order"}}}},
                },
            }
        },
        "components": {
            "parameters": {"Id": {"name": "id", "in": "path", "required": True,
                                  "description": "Its id.", "schema": {"type": "integer"}}},
            "schemas": {
                "Order": {"type": "object", "required": ["line"], "properties": {
                    "line": {"$ref": "#/components/schemas/Line"}}},
                "Line": {"type": "object", "properties": {
                    "next": {"$ref": "#/components/schemas/Line"}}},
                "Other": {"type": "string"},
            },
        },
    }  # fmt: skip
    read, put = read_tools(document, "shop")
    assert (read.tool_id, read.description) == ("shop.get_order", "Reads an order.")
    assert read.annotations.read_only_hint
    assert read.input_schema == {
        "type": "object",
        "properties": {"id": {"description": "Its id.", "type": "integer"}},
        "required": ["id"],
    }
    assert put.name == "put_orders_id"
    schema: Any = put.input_schema
    assert set(schema["properties"]) == {"id", "dry", "line"}
    assert schema["required"] == ["id", "line"]
    assert schema["properties"]["line"] == {"$ref": "#/$defs/Line"}
    assert set(schema["$defs"]) == {"Line"}


@pytest.mark.parametrize("value", [7, {}, [], [7], {"tools": [{"title": "x"}]}, {"paths": {}}])
def test_what_is_no_list_of_tools_says_what_would_be_one(value: Any) -> None:
    """And a malformed tool is named."""
    with pytest.raises(ConfigurationError, match="holds no list of tools"):
        read_tools(value)
    with pytest.raises(ConfigurationError, match="the tool 'xxx"):
        read_tools([{"name": "x" * 300, "inputSchema": SCHEMA}])
