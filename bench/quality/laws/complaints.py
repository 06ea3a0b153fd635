"""What a schema refuses of a call: complaints, which `dialects` puts into words."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from referencing.exceptions import Unresolvable

from bench.quality.laws.case import KeyPath
from bench.quality.trial import Json

BOUNDS = {"maximum": "<=", "exclusiveMaximum": "<", "minimum": ">=", "exclusiveMinimum": ">"}
"""Keywords of bounds, and how the bound is written."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that a schema refuses; `path` leads to the place, also of what is missing."""

    rule: str
    path: KeyPath
    value: Any
    wanted: Any
    """The types, the bound, the listed values, the pattern, the format or the known names."""
    message: str

    @property
    def name(self) -> str:
        """The last name of the path."""
        return str(next((key for key in reversed(self.path) if isinstance(key, str)), "input"))

    @property
    def above(self) -> KeyPath:
        """The path of the object that holds the place."""
        return self.path[:-1]


@lru_cache(256)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema), format_checker=FormatChecker())


def errors_of(schema: Json, call: Json) -> list[ValidationError]:
    """Return what a schema refuses of a call, formats too, in a fixed order.

    Nothing where the schema has a reference that leads nowhere: it refuses no call then.
    """
    try:
        found = list(_validator(json.dumps(schema)).iter_errors(call))
    except Unresolvable:
        return []
    return sorted(found, key=lambda each: (list(map(str, each.absolute_path)), each.message))


def complaints_of(schema: Json, call: Json) -> list[Complaint] | None:
    """Return the complaints about a call; None where a union or another rule makes them unclear."""
    found: list[Complaint] = []
    for error in errors_of(schema, call):
        made = list(_complaints(error))
        if not made:
            return None
        found += made
    return list({(each.rule, each.path): each for each in found}.values())


def _complaints(error: ValidationError) -> Iterator[Complaint]:
    rule, path = str(error.validator), tuple(error.absolute_path)
    wanted: Any = error.validator_value
    held: Any = error.instance
    schema: Any = error.schema
    if rule == "required":
        for name in [each for each in wanted if each not in held]:
            kind = schema.get("properties", {}).get(name, {}).get("type", "string")
            yield Complaint(rule, (*path, name), held, kind, f"'{name}' is a required property")
    elif rule == "additionalProperties" and wanted is False:
        known = list(schema.get("properties", {}))
        for name in [each for each in held if each not in known]:
            yield Complaint(rule, (*path, name), held[name], known, error.message)
    elif rule in ("type", "enum", "pattern", "format", *BOUNDS):
        yield Complaint(rule, path, held, wanted, error.message)


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array"}
    return names.get(type(value), "null" if value is None else "object")
