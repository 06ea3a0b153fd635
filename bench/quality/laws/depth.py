"""The law of depth: a fault that lies deeper is repaired there as it is at the top."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bench.quality.laws.asking import Reply, same
from bench.quality.laws.case import Case
from bench.quality.laws.complaints import errors_of
from bench.quality.laws.dialects import refusal
from bench.quality.laws.law import Relation, Variation, first_broken
from bench.quality.laws.values import properties_of, words_of
from bench.quality.trial import Json

_SHARED = ("$defs", "definitions", "$schema", "$id")
"""Keywords that stand at the root of a schema."""


@dataclass(frozen=True, slots=True)
class Level:
    """A way to put a call deeper; `names` are the parameters that this takes."""

    kind: str
    names: tuple[str, ...]
    schema: Callable[[Json], Json]
    call: Callable[[Json, Json], Json]
    """Takes the call and a right call, which stands next to it in a list."""


def _object(name: str, of: Json) -> Json:
    return {"type": "object", "properties": {name: of}, "required": [name],
            "additionalProperties": False}  # fmt: skip


def _list(name: str, of: Json) -> Json:
    return _object(name, {"type": "array", "items": of})


_LEVELS = (
    Level("one deeper", ("parcel",), lambda of: _object("parcel", of),
          lambda call, _: {"parcel": call}),
    Level("two deeper", ("parcel", "crate"), lambda of: _object("crate", _object("parcel", of)),
          lambda call, _: {"crate": {"parcel": call}}),
    Level("in a list", ("parcels",), lambda of: _list("parcels", of),
          lambda call, _: {"parcels": [call]}),
    Level("second element", ("parcels",), lambda of: _list("parcels", of),
          lambda call, right: {"parcels": [right, call]}),
    Level("every element", ("parcels",), lambda of: _list("parcels", of),
          lambda call, _: {"parcels": [call, call]}),
    Level("list in an object", ("crate", "parcels"),
          lambda of: _object("crate", _list("parcels", of)),
          lambda call, _: {"crate": {"parcels": [call]}}),
)  # fmt: skip


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
            yield Variation(level.kind, base, lower, _same_there(level, right or {}))


def _lowered(case: Case, level: Level, right: Json) -> Case | None:
    assert case.schema is not None
    assert case.dialect is not None
    shared = {name: case.schema[name] for name in _SHARED if name in case.schema}
    plain = {name: each for name, each in case.schema.items() if name not in shared}
    schema = {**level.schema(plain), **shared}
    call = level.call(case.call, right)
    error = refusal(case.dialect, case.tool, schema, call)
    return None if error is None else replace(case, schema=schema, call=call, error=error)


def _same_there(level: Level, right: Json) -> Relation:
    def relation(base: Reply, changed: Reply) -> str | None:
        wanted = None if base.repaired is None else level.call(base.repaired, right)
        return first_broken(
            (base.action == changed.action, f"{base.action} became {changed.action}"),
            (same(wanted, changed.repaired), "another repair"),
        )

    return relation
