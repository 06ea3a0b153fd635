"""Schemas as they are meant: what OpenAPI 3.0 writes otherwise than JSON Schema."""

from aftercall.json_values import JsonObject, JsonValue

_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose keys are names, whatever they are."""
_OF_VALUES = ("enum", "const", "default", "example", "examples")
"""Keywords that hold values, which are no schemas."""
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def plain_schema(schema: JsonObject) -> JsonObject:
    """Return a schema in the words of JSON Schema: `nullable`, and bounds that a flag excludes."""
    found = _plain_schema(schema)
    return found if isinstance(found, dict) else schema


def _plain_schema(part: JsonValue) -> JsonValue:
    if isinstance(part, list):
        return [_plain_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    plain: JsonObject = {}
    for key, value in part.items():
        if key in _OF_VALUES:
            plain[key] = value
        elif key in _OF_NAMES and isinstance(value, dict):
            plain[key] = {name: _plain_schema(each) for name, each in value.items()}
        else:
            plain[key] = _plain_schema(value)
    for exclusive, bound in _BOUNDS:
        is_flag = plain.get(exclusive)
        if is_flag is True and bound in plain:
            plain[exclusive] = plain.pop(bound)
        elif isinstance(is_flag, bool):
            del plain[exclusive]
    return _with_null(plain) if plain.pop("nullable", False) is True else plain


def _with_null(part: JsonObject) -> JsonObject:
    kind, values = part.get("type"), part.get("enum")
    if isinstance(values, list) and None not in values:
        part["enum"] = [*values, None]
    if isinstance(kind, str | list):
        part["type"] = [*([kind] if isinstance(kind, str) else kind), "null"]
        return part
    return part if isinstance(values, list) else {"anyOf": [part, {"type": "null"}]}
