"""Input schemas in a few words, and the check that refuses what they refuse."""

import re
from functools import lru_cache

from aftercall.json_values import JsonObject, JsonValue
from service.demo.history.dialects import Dialect

DAY = r"\d{4}-\d\d-\d\d"
TIME = r"\d\d:\d\d"

_FORM_WORDS = {DAY: "YYYY-MM-DD", TIME: "HH:MM"}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def text(description: str = "", *, default: str | None = None) -> JsonObject:
    """Any text."""
    return _property("string", description, default)


def form(pattern: str, description: str = "", *, default: str | None = None) -> JsonObject:
    """A text of a form, such as `DAY`."""
    return _property("string", description, default) | {"pattern": f"^{pattern}$"}


def choice(*values: str, default: str | None = None, description: str = "") -> JsonObject:
    """One of some texts."""
    return _property("string", description, default) | {"enum": list(values)}


def whole(
    minimum: int | None = None, maximum: int | None = None, *, default: int | None = None
) -> JsonObject:
    """A whole number, the bounds included."""
    return _property("integer", "", default) | _bounds(minimum, maximum)


def number(minimum: float | None = None, maximum: float | None = None) -> JsonObject:
    """Any number, the bounds included."""
    return _property("number", "", None) | _bounds(minimum, maximum)


def flag(*, default: bool | None = None) -> JsonObject:
    """True or false."""
    return _property("boolean", "", default)


def texts(description: str = "") -> JsonObject:
    """A list of texts."""
    return _property("array", description, None) | {"items": {"type": "string"}}


def schema(*required: str, **properties: JsonObject) -> JsonObject:
    """The input schema of a tool; closed."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def properties_of(input_schema: JsonObject) -> dict[str, JsonObject]:
    """The parameters by their names."""
    found = input_schema["properties"]
    if not isinstance(found, dict):
        raise TypeError("a tool's input schema has an object of properties")
    return {name: each for name, each in found.items() if isinstance(each, dict)}


def check(input_schema: JsonObject, parameters: JsonObject, tool: str, dialect: Dialect) -> None:
    """Refuse what the schema refuses; the first fault found is the one that is told.

    Raises:
        ToolFault: in the words of `dialect`.
    """
    known = properties_of(input_schema)
    for name in parameters:
        if name not in known:
            raise dialect.unknown(tool, name)
    required = input_schema.get("required")
    for needed in map(str, required if isinstance(required, list) else ()):
        if needed not in parameters:
            raise dialect.missing(tool, needed)
    for name, value in parameters.items():
        _check_value(known[name], value, name, tool, dialect)


def _check_value(wanted: JsonObject, value: JsonValue, name: str, tool: str, say: Dialect) -> None:
    kind = str(wanted["type"])
    is_flag = isinstance(value, bool)
    if not isinstance(value, _TYPES[kind]) or is_flag != (kind == "boolean"):
        raise say.wrong_type(tool, name, kind, value)
    choices, pattern = wanted.get("enum"), wanted.get("pattern")
    if isinstance(choices, list) and value not in choices:
        raise say.not_a_choice(tool, name, [str(each) for each in choices], value)
    if isinstance(pattern, str) and not _compiled(pattern).search(str(value)):
        bare = pattern.removeprefix("^").removesuffix("$")
        raise say.wrong_form(tool, name, _FORM_WORDS.get(bare, bare), value)
    if isinstance(value, int | float):
        low, high = wanted.get("minimum"), wanted.get("maximum")
        if isinstance(high, int | float) and value > high:
            raise say.out_of_range(tool, name, high, value, is_upper=True)
        if isinstance(low, int | float) and value < low:
            raise say.out_of_range(tool, name, low, value, is_upper=False)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _property(kind: str, description: str, default: JsonValue) -> JsonObject:
    made: JsonObject = {"type": kind}
    if description:
        made["description"] = description
    if default is not None:
        made["default"] = default
    return made


def _bounds(minimum: float | None, maximum: float | None) -> JsonObject:
    bounds: JsonObject = {}
    if minimum is not None:
        bounds["minimum"] = minimum
    if maximum is not None:
        bounds["maximum"] = maximum
    return bounds
