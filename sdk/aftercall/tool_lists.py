"""Lists of tools as others write them, as tools to register. Pure.

| value | read as |
|---|---|
| `{"tools": [{"name", "inputSchema"}]}`, a JSON-RPC response, or the list | `tools/list` of MCP |
| `[{"type": "function", "function": {"name", "parameters"}}]`, with `function` or flat | OpenAI |
| `[{"name", "input_schema"}]` | Anthropic |
| `{"openapi": "3...", "paths": {...}}` | an operation each; what is in path, query and body |
"""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject, bounded_name
from aftercall.models import NamedTool, ToolAnnotations

_METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
_READING = ("get", "head", "options")
_REF = "#/components/schemas/"
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")
_NO_LIST = (
    "holds no list of tools: expected what `tools/list` of MCP answers, a list of functions for "
    "OpenAI or Anthropic, or OpenAPI 3 in JSON"
)


def read_tools(value: object, server: str | None = None) -> list[NamedTool]:
    """Return the tools in a JSON value; their ids are `server.name`, as the gateway's are.

    Raises `ConfigurationError` for what holds no list of tools, and for a tool that is malformed.
    """
    found = {tool["name"]: tool for tool in _tools_in(value)}
    if not found:
        raise ConfigurationError(_NO_LIST)
    tools = []
    for name, tool in found.items():
        try:
            named = NamedTool(
                tool_id=f"{server}.{name}" if server else name, server_name=server, **tool
            )
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ConfigurationError(f"the tool {name[:100]!r}: {place}: {first['msg']}") from None
        tools.append(named)
    return tools


def _tools_in(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and isinstance(value.get("paths"), dict):
        yield from _list_operations(value)
        return
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    if isinstance(value, dict):
        value = value.get("tools", value.get("functions"))
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            held = each.get("function")
            tool = held if isinstance(held, dict) else each
            if isinstance(name := tool.get("name"), str) and name:
                yield {"name": name, **_describe_tool(tool)}


def _describe_tool(tool: dict[str, Any]) -> dict[str, Any]:
    keys = ("inputSchema", "input_schema", "parameters")
    schema = next((tool[key] for key in keys if isinstance(tool.get(key), dict)), None)
    hints = tool.get("annotations")
    known = {field.alias for field in ToolAnnotations.model_fields.values()}
    annotations = {
        key: hint
        for key, hint in (hints.items() if isinstance(hints, dict) else ())
        if key in known and isinstance(hint, bool)
    }
    description = tool.get("description")
    return {
        "description": description if isinstance(description, str) else "",
        "input_schema": schema,
        "annotations": ToolAnnotations.model_validate(annotations),
    }


def _list_operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, item in document["paths"].items():
        shared = item.get("parameters") if isinstance(item, dict) else None
        for method in _METHODS:
            operation = item.get(method) if isinstance(item, dict) else None
            if not isinstance(operation, dict):
                continue
            named = operation.get("operationId")
            made = _NO_NAME.sub("_", f"{method}_{path}").strip("_")
            parameters = [*_as_list(shared), *_as_list(operation.get("parameters"))]
            schema = _input_schema(document, parameters, operation)
            said = (operation.get(key) for key in ("description", "summary"))
            yield {
                "name": bounded_name(named) if isinstance(named, str) and named else made,
                "description": next((each for each in said if isinstance(each, str)), ""),
                "input_schema": schema,
                "annotations": ToolAnnotations(read_only_hint=method in _READING or None),
            }


def _input_schema(
    document: dict[str, Any], parameters: list[Any], operation: dict[str, Any]
) -> JsonObject:
    properties: JsonObject = {}
    required: list[Any] = []
    for each in parameters:
        told = _resolve_reference(document, each)
        name = told.get("name")
        if not isinstance(name, str) or told.get("in") not in ("path", "query"):
            continue
        schema = told.get("schema")
        held = dict(schema) if isinstance(schema, dict) else {}
        if isinstance(description := told.get("description"), str):
            held = {"description": description, **held}
        properties[name] = held
        if told.get("required") is True and name not in required:
            required.append(name)
    whole: JsonObject = {"type": "object", "properties": properties, "required": required}
    body = _resolve_reference(document, operation.get("requestBody"))
    content = body.get("content")
    media = content.get("application/json") if isinstance(content, dict) else None
    schema = media.get("schema") if isinstance(media, dict) else None
    if isinstance(schema, dict):
        inner = _resolve_reference(document, schema)
        if isinstance(members := inner.get("properties"), dict):
            properties |= members
            required += [each for each in _as_list(inner.get("required")) if each not in required]
        else:
            properties["body"] = schema
            required += ["body"] if body.get("required") is True else []
    return _with_definitions(document, whole)


def _with_definitions(document: dict[str, Any], schema: JsonObject) -> JsonObject:
    """Return a schema with the definitions that it refers to, as `$defs`."""
    definitions: JsonObject = {}
    moved = _move_references(schema)
    waiting = sorted(_referred_names(schema))
    while waiting:
        name = waiting.pop()
        if name in definitions:
            continue
        held = _resolve_reference(document, {"$ref": _REF + name})
        definitions[name] = _move_references(held)
        waiting += sorted(_referred_names(held))
    return {**moved, "$defs": definitions} if definitions else moved


def _move_references(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: held.replace(_REF, "#/$defs/")
            if key == "$ref" and isinstance(held, str)
            else _move_references(held)
            for key, held in value.items()
        }
    if isinstance(value, list):
        return [_move_references(each) for each in value]
    return value


def _referred_names(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for each in value for name in _referred_names(each)}
    if not isinstance(value, dict):
        return set()
    found = {name for each in value.values() for name in _referred_names(each)}
    ref = value.get("$ref")
    if isinstance(ref, str) and ref.startswith(_REF):
        found.add(ref.removeprefix(_REF))
    return found


def _resolve_reference(document: dict[str, Any], value: object) -> dict[str, Any]:
    """Return an object, or the one in the document that it refers to; empty for neither."""
    for _ in range(10):
        if not isinstance(value, dict):
            return {}
        ref = value.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return value
        value = document
        for step in ref[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            value = value.get(key) if isinstance(value, dict) else None
    return {}


def _as_list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return []
