"""Faults inside nested values that the live schema shows, though the error does not name them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from retrieval.parameters import ToolView
from retrieval.paths import Path
from retrieval.proposals.subschema import object_view
from retrieval.reading.faults import Fault


def inner_faults(
    schema: JsonObject,
    parameters: JsonObject,
    check: Callable[[ToolView, JsonObject], Sequence[Fault]],
) -> list[Fault]:
    """Faults that the live schema shows inside nested objects; the outer ones first.

    Args:
        schema: the tool's.
        parameters: the call's.
        check: what one object does not fit of its view (as `case` does for the call itself).
    """
    faults: list[Fault] = []
    for path, value in islice(_objects(parameters), _MAX_OBJECTS):
        view = object_view(schema, path, value)
        if view is not None and view.parameters:
            faults += [replace(each, path=(*path, *each.path)) for each in check(view, value)]
        if len(faults) >= _MAX_FAULTS:
            break
    return faults[:_MAX_FAULTS]


_MAX_OBJECTS = 20
"""Nested objects of a call that are held against the schema; the others of a list are alike."""
_MAX_FAULTS = 16
_MAX_DEPTH = 6


def _objects(parameters: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    level: list[tuple[Path, JsonValue]] = [
        ((name,), value) for name, value in islice(parameters.items(), 1_000)
    ]
    for _ in range(_MAX_DEPTH):
        below: list[tuple[Path, JsonValue]] = []
        for at, value in level:
            if isinstance(value, dict):
                yield at, value
                below += [((*at, key), each) for key, each in islice(value.items(), 100)]
            elif isinstance(value, list):
                below += [((*at, number), each) for number, each in enumerate(value[:20])]
        level = below[:1_000]
