"""What is kept of decoded rows, by workspace and key, bounded by their number or by their size."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")


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
