"""JSON Schemas as MCP clients take them: one object, every definition in its place.

References are written out, because many clients hand schemas to a model's API that knows none.
"""

from typing import Any

from pydantic import BaseModel

from aftercall.json_values import JsonObject

_REFERENCE = "#/$defs/"


def object_schema(model: type[BaseModel]) -> JsonObject:
    """The schema of a model in the wire's names, without references and without titles.

    The schema of what is read is taken for answers too: what is written fits it, and it tells the
    fields of models that write themselves.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    definitions: dict[str, Any] = schema.pop("$defs", {})
    written: JsonObject = _written(schema, definitions)
    return written


def _written(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema with its references written out; no model here holds itself."""
    if isinstance(schema, list):
        return [_written(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
    if "$ref" in schema:
        # What stands beside a reference says what the value is for here.
        named = definitions[schema["$ref"].removeprefix(_REFERENCE)]
        return _written({**named, **rest}, definitions)
    if rest.get("default", ...) is None:
        del rest["default"]
    return {key: _written_value(key, value, definitions) for key, value in rest.items()}


def _written_value(key: str, value: Any, definitions: dict[str, Any]) -> Any:
    if key == "properties":  # its keys are names of fields, one of which may be "title"
        return {name: _written(schema, definitions) for name, schema in value.items()}
    if key in {"default", "examples", "enum", "const", "required"}:  # values, no schemas
        return value
    return _written(value, definitions)
