"""Paths into a call's parameters, and places: `flights[].date` is the `date` of every flight.

A *path* leads to one value: keys of objects and positions of arrays, where -1 is the last one and
`*` stands for every element. A *place* is a text that forgets the positions.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from aftercall.json_values import JsonObject, JsonValue

Path = tuple[str | int, ...]

EVERY: Literal["*"] = "*"
"""In a path: every element of an array."""
MAX_ELEMENTS = 100
"""Elements of an array that are looked at; a longer one is data."""
MAX_LEAVES = 500
"""Plain values of a call that are looked at; real calls have a few dozen."""
_DEEPEST_LEAF = 12

MAX_DEPTH = 3
"""Objects or lists that a profile looks into below a parameter, one in the other."""
MAX_ITEMS = 20
"""Items of one list that a profile looks at: the others are like them."""
MAX_KEYS = 40
"""Keys of one object; one with more is a map from ids, not a record of named fields."""
MAX_NODES = 200
"""Values inside the parameters of one call that a profile looks at, so that none is slow."""


def value_at(parameters: JsonObject, path: Path) -> JsonValue:
    """The value that a path without `*` leads to; None when it leads nowhere."""
    value: JsonValue = parameters
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def leaves_like(parameters: JsonObject, path: Path) -> list[tuple[Path, JsonValue]]:
    """The plain values of a call at paths like this one, whatever the positions in arrays.

    An empty path means all of them.
    """
    wanted = general(path)
    found = islice(_leaves(parameters, ()), MAX_LEAVES)
    return [(at, value) for at, value in found if not path or general(at) == wanted]


def _leaves(value: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, dict) and len(path) < _DEEPEST_LEAF:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and len(path) < _DEEPEST_LEAF:
        for index, item in enumerate(value[:MAX_ELEMENTS]):
            yield from _leaves(item, (*path, index))
    elif not isinstance(value, dict | list):
        yield path, value


def general(path: Path) -> Path:
    """The path with every position in an array as `*`."""
    return tuple(EVERY if isinstance(step, int) else step for step in path)


def first(path: Path) -> Path:
    """The path with the first position for every `*`: one value that it stands for."""
    return tuple(0 if step == EVERY else step for step in path)


def place_of(path: Path) -> str:
    """The place of a path, such as `flights[].date`."""
    steps = ("[]" if isinstance(step, int) else f".{step}" for step in path[1:])
    return f"{path[0]}{''.join(steps)}" if path else ""


def inner_values(parameters: Iterable[tuple[str, JsonValue]]) -> Iterator[tuple[str, JsonValue]]:
    """The values below the parameters themselves, each with its place; the outer ones first."""
    level: list[tuple[str, JsonValue]] = [
        each for each in parameters if isinstance(each[1], dict | list)
    ]
    left = MAX_NODES
    for _ in range(MAX_DEPTH):
        below: list[tuple[str, JsonValue]] = []
        for place, value in level:
            for each in _members(place, value):
                if left == 0:
                    return
                left -= 1
                yield each
                if isinstance(each[1], dict | list):
                    below.append(each)
        level = below


def _members(place: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, list):
        for item in value[:MAX_ITEMS]:
            yield f"{place}[]", item
    elif isinstance(value, dict) and len(value) <= MAX_KEYS:
        for key, item in value.items():
            yield f"{place}.{key}", item
