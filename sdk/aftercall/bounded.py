"""A table that holds so many at most: what was put longest ago makes room."""

from collections.abc import MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep(table: MutableMapping[K, V], key: K, value: V, most: int) -> V:
    """Put a value last in a table of `most` entries, 1 or more, in place; returns the value."""
    table.pop(key, None)
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]
    return value
