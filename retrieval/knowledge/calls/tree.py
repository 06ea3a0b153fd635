"""A call as a tree: its leaves with their paths, and the keys of a path."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from aftercall.json_values import JsonValue, json_or_none
from retrieval.knowledge.values.parameters import Path

_MAX_TEXT = 20_000
"""Characters of a text that is read as JSON."""


class Piece(NamedTuple):
    """A value at a path; `read` is the path of the text that it was read out of."""

    path: Path
    value: JsonValue
    read: Path | None = None


def leaves_of(value: JsonValue, path: Path = ()) -> Iterator[Piece]:
    """Yield the scalars and empty containers of a tree with their paths, in order."""
    children = list(children_of(Piece(path, value)))
    if children:
        for child in children:
            yield from leaves_of(child.value, child.path)
    else:
        yield Piece(path, value)


def children_of(piece: Piece) -> Iterator[Piece]:
    """Yield the members of a container; none of a scalar."""
    value = piece.value
    if isinstance(value, dict):
        for key, held in value.items():
            yield Piece((*piece.path, key), held, piece.read)
    elif isinstance(value, list):
        for at, held in enumerate(value):
            yield Piece((*piece.path, at), held, piece.read)


def members_at(value: JsonValue, path: Path) -> Mapping[str, JsonValue]:
    """Return the members of the object at a path; none where there is no object."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return {}
    return value if isinstance(value, dict) else {}


def read_out_of(piece: Piece) -> Iterator[Piece]:
    """Yield the members of the container that a text holds, under the path of the text."""
    text = piece.value
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "[") or len(text) > _MAX_TEXT:
        return
    held = json_or_none(text)
    if isinstance(held, dict | list):
        yield from children_of(Piece(piece.path, held, piece.read or piece.path))


def around_key(path: Path, at: int) -> Path:
    """Return the path of the object that holds the key at a position among the keys."""
    places = [place for place, step in enumerate(path) if isinstance(step, str)]
    return path[: places[at]]


def last_key(path: Path) -> str | None:
    """Return the last key of a path, None for one of positions alone."""
    return next((step for step in reversed(path) if isinstance(step, str)), None)


def at_last_key(path: Path) -> int:
    """Return the position of the last key of a path."""
    return max((at for at, step in enumerate(path) if isinstance(step, str)), default=0)
