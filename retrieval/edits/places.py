"""Places in nested values: reading them, and every concrete place that a general one stands for."""

from collections.abc import Iterator, Sequence
from itertools import islice

from aftercall.json_values import JsonObject, JsonValue
from retrieval.edits.base import EVERY, MAX_ELEMENTS, EditDoesNotApplyError
from retrieval.reading.faults import Path

MAX_LEAVES = 500
"""Plain values of a call that are looked at; real calls have a few dozen."""
_MAX_DEPTH = 12


def value_at(parameters: JsonObject, path: Path) -> JsonValue:
    """The value that a concrete path leads to; None when it leads nowhere."""
    value: JsonValue = parameters
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def concrete(value: JsonValue, path: Path, so_far: Path = ()) -> Iterator[Path]:
    """The paths that a general one stands for in a value; the last step need not exist.

    Raises:
        EditDoesNotApplyError: when it leads through something that is not there.
    """
    if not path:
        yield so_far
        return
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        key = str(step)
        if rest and key not in value:
            raise EditDoesNotApplyError(f"{'/'.join(map(str, (*so_far, key)))} is not there")
        yield from concrete(value.get(key), rest, (*so_far, key))
    elif isinstance(value, list):
        for index in _indexes(value, step, so_far):
            try:
                yield from concrete(value[index], rest, (*so_far, index))
            except EditDoesNotApplyError:
                if step != EVERY:
                    raise
    else:
        raise EditDoesNotApplyError(f"{'/'.join(map(str, so_far))} has no members")


def _indexes(value: Sequence[JsonValue], step: str | int, so_far: Path) -> Sequence[int]:
    if step == EVERY and len(value) <= MAX_ELEMENTS:
        return range(len(value))
    if isinstance(step, int) and -len(value) <= step < len(value):
        return [step % len(value)]
    raise EditDoesNotApplyError(f"{'/'.join(map(str, so_far))} has no element {step}")


def leaves_like(parameters: JsonObject, path: Path) -> list[tuple[Path, JsonValue]]:
    """The plain values of a call at places like this one, whatever the positions in arrays.

    An empty path means all of them.
    """
    wanted = general(path)
    found = islice(_leaves(parameters, ()), MAX_LEAVES)
    return [(at, value) for at, value in found if not path or general(at) == wanted]


def general(path: Path) -> Path:
    """The path with every position in an array as `*`."""
    return tuple(EVERY if isinstance(step, int) else step for step in path)


def first(path: Path) -> Path:
    """The path with the first position for every `*`: one place that it stands for."""
    return tuple(0 if step == EVERY else step for step in path)


def number_of(value: JsonValue) -> float | None:
    """The number that a value is, or that its whole text says; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) and len(value) <= 30 else None
    except ValueError:
        return None


def _leaves(value: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, dict) and len(path) < _MAX_DEPTH:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and len(path) < _MAX_DEPTH:
        for index, item in enumerate(value[:MAX_ELEMENTS]):
            yield from _leaves(item, (*path, index))
    elif not isinstance(value, dict | list):
        yield path, value
