"""The law of depth: a fault that lies deeper is repaired there as it is at the top."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench.quality.laws.case import Case
from bench.quality.laws.complaints import errors_of
from bench.quality.laws.dialects import refusal
from bench.quality.laws.law import Same, Variation
from bench.quality.laws.values import properties_of, words_of
from bench.quality.trial import Json

_SHARED = ("$defs", "definitions", "$schema", "$id")
"""Keywords that stand at the root of a schema."""


@dataclass(frozen=True, slots=True)
class Level:
    """A way to put a call deeper: under names, and in a list where it has elements."""

    kind: str
    names: tuple[str, ...]
    elements: tuple[str, ...] = ()
    """`call`, and `right` for a right call that stands next to it."""

    def lower_schema(self, schema: Json) -> Json:
        """Return the schema of calls that are put deeper."""
        lowered: Json = {"type": "array", "items": schema} if self.elements else schema
        for name in reversed(self.names):
            holder: Json = {"type": "object", "properties": {name: lowered}, "required": [name]}
            lowered = {**holder, "additionalProperties": False}
        return lowered

    def lower_call(self, call: Json, right: Json) -> Json:
        """Return the call deeper; `right` is one that may stand next to it."""
        known = {"call": call, "right": right}
        lowered: Any = [known[each] for each in self.elements] if self.elements else call
        for name in reversed(self.names):
            lowered = {name: lowered}
        found: Json = lowered
        return found


_LEVELS = (
    Level("one deeper", ("parcel",)),
    Level("two deeper", ("crate", "parcel")),
    Level("in a list", ("parcels",), ("call",)),
    Level("second element", ("parcels",), ("right", "call")),
    Level("every element", ("parcels",), ("call", "call")),
    Level("list in an object", ("crate", "parcels"), ("call",)),
)


def vary_depth(case: Case, _: random.Random) -> Iterator[Variation]:
    """Yield the case with its whole call one level deeper, in a list, and in every element."""
    if case.schema is None or (properties := properties_of(case)) is None:
        return
    dialect = case.dialect or "jsonschema"
    error = refusal(dialect, case.tool, case.schema, case.call)
    if error is None:
        return
    base = replace(case, error=error, dialect=dialect, context="")  # it speaks of one element
    taken = set().union(*map(words_of, (*properties, *case.call)))
    right = case.right[0] if case.right and not errors_of(case.schema, case.right[0]) else None
    for level in _LEVELS:
        is_unknown = right is None and level.kind == "second element"
        if is_unknown or taken & set().union(*map(words_of, level.names)):
            continue
        if lower := _lowered(base, level, right or {}):
            yield Variation(
                level.kind, base, lower, Same(partial(level.lower_call, right=right or {}))
            )


def _lowered(case: Case, level: Level, right: Json) -> Case | None:
    assert case.schema is not None
    assert case.dialect is not None
    shared = {name: case.schema[name] for name in _SHARED if name in case.schema}
    plain = {name: each for name, each in case.schema.items() if name not in shared}
    schema = {**level.lower_schema(plain), **shared}
    call = level.lower_call(case.call, right)
    error = refusal(case.dialect, case.tool, schema, call)
    return None if error is None else replace(case, schema=schema, call=call, error=error)
