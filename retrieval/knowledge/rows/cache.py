"""Decoded rows that are kept, by workspace and key, bounded by their number or by their size."""

import time
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")

_MANY, _FORMER_S = 20, 15.0
"""Where one commit changes so many rows, what they were before still does for some questions, so
long. While much is recorded most tools change twice a second, and an answer that decodes its
siblings as well takes twice as long."""


class RowCache(Generic[T]):
    """A bounded map; `changes` keeps a slow read from putting back what was just changed."""

    def __init__(self, most: int, *, by_size: bool = False) -> None:
        self._items: LRUCache[tuple[str, str], tuple[T | None, int]] = LRUCache(
            most, getsizeof=lambda kept: kept[1] if by_size else 1
        )
        self.changes = 0

    def get(self, workspace: str, key: str) -> T | None:
        """Return what is kept; None when nothing is."""
        return self._items.get((workspace, key), (None, 0))[0]

    def is_known(self, workspace: str, key: str) -> bool:
        """Return whether something is kept, be it None."""
        return (workspace, key) in self._items

    def put(self, workspace: str, key: str, value: T | None, seen: int, size: int = 1) -> None:
        """Keep a value, unless something was changed since `changes` was as `seen` states."""
        kept = value, size
        if seen == self.changes and self._items.getsizeof(kept) <= self._items.maxsize:
            self._items[workspace, key] = kept

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over what is kept: its workspace and key."""
        return iter(list(self._items))

    def forget_key(self, workspace: str, key: str) -> None:
        """Forget one row: it has changed."""
        self.changes += 1
        self._items.pop((workspace, key), None)

    def clear_items(self) -> None:
        """Forget all."""
        self.changes += 1
        self._items.clear()


class FormerRows(Generic[T]):
    """Rows as they were before many of them changed at once, for a while."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], tuple[T, float]] = {}
        """With the time until which they do."""

    def find_row(self, workspace: str, key: str) -> T | None:
        """Return what a row was; None where that is long ago, or few changed with it."""
        former, until = self._rows.get((workspace, key), (None, 0.0))
        return former if until > time.monotonic() else None

    def keep_rows(self, changed: Sequence[tuple[str, str]], kept: RowCache[T]) -> None:
        """Keep what rows are that change now, if they are many."""
        self.drop_old()
        until = time.monotonic() + _FORMER_S
        for place in changed:
            former = kept.get(*place)
            if len(changed) < _MANY:
                self._rows.pop(place, None)
            elif former is not None:
                self._rows[place] = former, until

    def drop_old(self) -> None:
        """Drop what no longer does."""
        now = time.monotonic()
        self._rows = {place: each for place, each in self._rows.items() if each[1] > now}

    def clear_rows(self) -> None:
        """Drop all."""
        self._rows.clear()
