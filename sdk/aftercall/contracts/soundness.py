"""Which deliverables make sense: constraints that are of their kind, bounded, and can be met."""

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from aftercall.contracts.json_types import JSON_TYPES
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject

if TYPE_CHECKING:
    from aftercall.contracts.deliverables import Deliverable

MAX_DEPTH = 20
"""Deepest nesting of a deliverable: what tools return is rarely 5 levels deep."""

MAX_PARTS = 500
"""Deliverables within one, so that checking a result stays a matter of its own size."""

MAX_NAMES = 200
"""Keys in `required` or `non_empty`, and `fields` of one object."""

MAX_NAME_CHARS = 256
MAX_ACCEPTANCE_CHARS = 4_000

IMPLIED_TYPE: dict[str, str] = {
    "required": "object",
    "fields": "object",
    "min_items": "array",
    "max_items": "array",
    "items": "array",
    "min_length": "string",
    "max_length": "string",
    "minimum": "number",
    "maximum": "number",
}
_BOUNDS = (("min_items", "max_items"), ("min_length", "max_length"), ("minimum", "maximum"))
_COUNTS = ("min_items", "max_items", "min_length", "max_length")
_NEVER_EMPTY = ("number", "integer", "boolean")


def check_sound(given: "Deliverable") -> None:
    """Say what is wrong with a deliverable before it is used.

    Raises:
        ConfigurationError: names the constraint at fault and the cure.
    """
    _check_values(given)
    _check_types(given)
    _check_bounds(given)
    _check_size(given)
    if given.json_schema is not None:
        _check_schema(given.json_schema)


def given_in(deliverable: "Deliverable") -> list[str]:
    """Names of the constraints that are given."""
    values = ((each.name, getattr(deliverable, each.name)) for each in fields(deliverable))
    return [name for name, value in values if not _is_left_out(value)]


def _is_left_out(value: object) -> bool:
    """A bound of 0 is given; only the defaults are not."""
    return value is None or value is False or (isinstance(value, tuple | dict) and not value)


def type_in(schema: JsonObject | None) -> str | None:
    """The one type that a JSON Schema asks for at its root; None for none or several."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) and kind in JSON_TYPES else None


def names_in(constraint: str, value: object) -> tuple[str, ...]:
    """The keys that a constraint names, each once; a lone one may stand by itself.

    Raises:
        ConfigurationError: they are no keys, or too many.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        either = "true or " if constraint == "non_empty" else ""
        raise ConfigurationError(f"{constraint} must be {either}an array of keys")
    if len(names) > MAX_NAMES or any(len(name) > MAX_NAME_CHARS for name in names):
        raise ConfigurationError(
            f"{constraint} may name {MAX_NAMES} keys of {MAX_NAME_CHARS} characters at most"
        )
    return tuple(dict.fromkeys(names))


def _check_values(given: "Deliverable") -> None:
    if given.type is not None and given.type not in JSON_TYPES:
        raise ConfigurationError(f"type must be one of {', '.join(JSON_TYPES)}")
    for name in _COUNTS:
        count = getattr(given, name)
        if count is not None and (type(count) is not int or count < 0):
            raise ConfigurationError(f"{name} must be a whole number, 0 or more")
    for name in ("minimum", "maximum"):
        bound = getattr(given, name)
        if bound is not None and (
            isinstance(bound, bool) or not isinstance(bound, int | float) or not _is_finite(bound)
        ):
            raise ConfigurationError(f"{name} must be a number")
    if given.acceptance is not None and (
        not isinstance(given.acceptance, str) or len(given.acceptance) > MAX_ACCEPTANCE_CHARS
    ):
        raise ConfigurationError(
            f"acceptance must be a text of at most {MAX_ACCEPTANCE_CHARS:,} characters"
        )


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _check_types(given: "Deliverable") -> None:
    """Constraints that are about different types can never be met together."""
    about: list[tuple[str, str]] = [
        (name, IMPLIED_TYPE[name]) for name in given_in(given) if name in IMPLIED_TYPE
    ]
    if isinstance(given.non_empty, tuple) and given.non_empty:
        about.append(("non_empty with keys", "object"))
    if (of_schema := type_in(given.json_schema)) is not None:
        about.append(("json_schema", "number" if of_schema == "integer" else of_schema))
    if given.type is not None:
        wanted = "number" if given.type == "integer" else given.type
        about.insert(0, (f"type {given.type!r}", wanted))
    for name, kind in about[1:]:
        first, first_kind = about[0]
        if kind != first_kind:
            raise ConfigurationError(
                f"{first} is about a {first_kind} and {name} about a {kind}; keep one of them"
            )
    if given.non_empty is True and given.expected_type in _NEVER_EMPTY:
        raise ConfigurationError(
            f"non_empty says nothing about a {given.expected_type}, which is never empty; use "
            "minimum and maximum"
        )


def _check_bounds(given: "Deliverable") -> None:
    for low_name, high_name in _BOUNDS:
        low, high = getattr(given, low_name), getattr(given, high_name)
        if low is not None and high is not None and low > high:
            raise ConfigurationError(
                f"{low_name} is {low:g} and {high_name} is {high:g}, which nothing can meet; "
                "exchange or change them"
            )
    low, high = given.minimum, given.maximum
    is_range = given.type == "integer" and low is not None and high is not None
    if is_range and math.ceil(low or 0) > math.floor(high or 0):
        raise ConfigurationError("no integer lies between minimum and maximum; widen them")
    if given.non_empty is True and 0 in (given.max_items, given.max_length):
        raise ConfigurationError("non_empty contradicts a most of 0; keep one of them")
    for name in given.non_empty if isinstance(given.non_empty, tuple) else ():
        part = given.fields.get(name)
        if part is not None and 0 in (part.max_items, part.max_length):
            raise ConfigurationError(f"non_empty contradicts the most of 0 in fields.{name}")


def _check_size(given: "Deliverable") -> None:
    if len(given.fields) > MAX_NAMES or any(len(name) > MAX_NAME_CHARS for name in given.fields):
        raise ConfigurationError(
            f"fields may have {MAX_NAMES} keys of {MAX_NAME_CHARS} characters at most"
        )
    parts, level = 0, [given]
    for _ in range(MAX_DEPTH + 1):
        parts += len(level)
        if parts > MAX_PARTS:
            raise ConfigurationError(f"it has more than {MAX_PARTS} parts; ask for less")
        level = [part for each in level for part in (*each.fields.values(), each.items) if part]
        if not level:
            return
    raise ConfigurationError(f"it is nested deeper than {MAX_DEPTH} levels; flatten it")


def _check_schema(schema: object) -> None:
    """Looked at now, so that a mistake shows where it was written and not in some later call."""
    try:  # here and not above, as most deliverables have no schema
        from aftercall.contracts.json_schema import check_schema  # noqa: PLC0415  # the extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"json_schema needs {error.name}; install it with `pip install aftercall[contracts]`"
        ) from error
    check_schema(schema)
