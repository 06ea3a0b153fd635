"""Places in parameters: `flights[].date` is the `date` of every item of the list `flights`."""

from collections.abc import Iterable, Iterator

from aftercall.json_values import JsonObject, JsonValue
from retrieval.reading.faults import Path

MAX_DEPTH = 3
"""Objects or lists that are looked into below a parameter, one in the other."""
MAX_ITEMS = 20
"""Items of one list that are looked at: the others are like them."""
MAX_KEYS = 40
"""Keys of one object; one with more is a map from ids, not a record of named fields."""
MAX_NODES = 200
"""Values inside the parameters of one call that are looked at, so that no call is slow to learn."""


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


def place_of(path: Path) -> str:
    """The place that a fault's path leads to."""
    steps = ("[]" if isinstance(step, int) else f".{step}" for step in path[1:])
    return f"{path[0]}{''.join(steps)}" if path else ""


def value_at(parameters: JsonObject, path: Path) -> JsonValue:
    """The value that a fault's path leads to; None where it leads nowhere."""
    value: JsonValue = parameters
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _members(place: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, list):
        for item in value[:MAX_ITEMS]:
            yield f"{place}[]", item
    elif isinstance(value, dict) and len(value) <= MAX_KEYS:
        for key, item in value.items():
            yield f"{place}.{key}", item
