"""Masking in a JSON Schema: what it says, never what it is made of.

In a schema `password` names a property and is no secret, so keys stay and their values are searched
by form only. `default` and `examples` are values of the property itself: those of `password` are
masked by its name, like the parameter would be, and so are those of all below it.
"""

from collections.abc import Callable

from aftercall.json_values import JsonObject, JsonValue

_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
"""Keywords that hold schemas under names of the author's choice (JSON Schema 2020-12, draft 7)."""

_VALUE, _VALUES = frozenset({"default", "example"}), frozenset({"examples"})
"""Keywords that hold a value of the property, and a list of such (`example` is OpenAPI's)."""


def mask_schema(
    schema: JsonObject,
    *,
    is_secret_name: Callable[[str], bool],
    text: Callable[[str], str],
    member: Callable[[str, JsonValue], JsonValue],
) -> JsonObject:
    """A copy of `schema` with the same keys at every level.

    Args:
        schema: a JSON Schema; what is none is masked as far as it goes.
        is_secret_name: whether a value of this name is a secret.
        text: masks a text by its form.
        member: masks a value that belongs to a name.
    """

    def of_schema(value: JsonValue, owner: str) -> JsonValue:
        if isinstance(value, dict):
            return {keyword: of_keyword(keyword, item, owner) for keyword, item in value.items()}
        if isinstance(value, list):
            return [of_schema(item, owner) for item in value]
        return text(value) if isinstance(value, str) else value

    def of_keyword(keyword: str, value: JsonValue, owner: str) -> JsonValue:
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            inherited = owner if is_secret_name(owner) else None
            return {name: of_schema(item, inherited or name) for name, item in value.items()}
        if keyword in _VALUE:
            return member(owner, value)
        if keyword in _VALUES and isinstance(value, list):
            return [member(owner, item) for item in value]
        return of_schema(value, owner)

    return {keyword: of_keyword(keyword, item, "") for keyword, item in schema.items()}
