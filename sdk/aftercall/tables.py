"""Tables: what belongs to one key, sums by key, and at most so many keys."""

from collections.abc import Iterable, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
N = TypeVar("N", int, float)


def gather_values(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, in their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def sum_values(pairs: Iterable[tuple[K, N]]) -> dict[K, N]:
    """Return the sum of each key's numbers."""
    return {key: sum(numbers[1:], numbers[0]) for key, numbers in gather_values(pairs).items()}


def keep_latest(table: MutableMapping[K, V], key: K, value: V, most: int) -> V:
    """Put a value last in a table of `most` entries, 1 or more, in place; returns the value.

    What was put longest ago makes space.
    """
    table.pop(key, None)
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]
    return value
