"""Python values seen as JSON: which type they are of, how large they are, what they hold.

Dataclass instances and pydantic models are seen as the objects that they become; sets and tuples
as arrays.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel

JsonType = Literal["object", "array", "string", "number", "integer", "boolean"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)

_MAX_TYPE_CHARS = 80

# What nearly all values are, found without asking the abstract types, which is many times slower.
_OF_PLAIN = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    bool: "boolean",
    type(None): "null",
}


def type_of(value: object) -> str:
    """The JSON type's name, `null` included; a foreign Python type gives its own name."""
    if (kind := _OF_PLAIN.get(type(value))) is not None:
        return kind
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number" if math.isfinite(value) else "number that is not finite"
    if isinstance(value, str):
        return "string"
    if items_of(value) is not None:
        return "array"
    if members_of(value) is not None:
        return "object"
    return f"Python {type(value).__name__[:_MAX_TYPE_CHARS]}"  # a class may be called `object`


def is_of_type(value: object, wanted: str) -> bool:
    """Whether `value` is a `wanted`; 3.0 is an integer, as in JSON Schema, and True no number."""
    kind = type_of(value)
    if wanted == "number":
        return kind in {"number", "integer"}
    if wanted == "integer":
        return kind == "integer" or (isinstance(value, float) and value.is_integer())
    return kind == wanted


def is_empty(value: object) -> bool:
    """Null, text without a visible character, and containers that hold nothing."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    items, members = items_of(value), members_of(value)
    return not items if items is not None else members is not None and not members


def members_of(value: object) -> Mapping[Any, Any] | None:
    """What an object holds by its keys; None for what is no object."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def items_of(value: object) -> Sequence[Any] | None:
    """What an array holds, in order; None for what is no array."""
    if isinstance(value, list | tuple):
        return value
    return list(value) if isinstance(value, set | frozenset) else None


def described(value: object) -> str:
    """A value's type and size in words, without anything of what it says."""
    if isinstance(value, str):
        return f"string of {_count(len(value), 'character')}"
    items = items_of(value)
    if items is not None:
        return f"array of {_count(len(items), 'item')}"
    members = members_of(value)
    return type_of(value) if members is None else f"object with {_count(len(members), 'key')}"


def plain(value: object, depth: int) -> Any:
    """The same value in dicts and lists, at most `depth` levels deep.

    Raises:
        RecursionError: it is nested more deeply.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if depth <= 0:
        raise RecursionError("the value is nested too deeply")
    items = items_of(value)
    if items is not None:
        return [plain(item, depth - 1) for item in items]
    members = members_of(value)
    if members is not None:
        return {str(key): plain(item, depth - 1) for key, item in members.items()}
    return value


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
