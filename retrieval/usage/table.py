"""Sparse counts in columns: rows of an hour, up to two further keys, and counts. Pure.

Rows of the same keys stand for their sum. A quarter of a million rows are summed in milliseconds
and take a few megabytes, since a column has the smallest integers that hold it.
"""

import base64
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

Ints = NDArray[np.int64]
Column = NDArray[np.integer]

_LEVEL: Final = 6
"""Of zlib; a table of counts shrinks to a fifth, and 9 takes six times as long for 2 % more."""


class StoredTable(BaseModel):
    """A table as a fact holds it."""

    kinds: list[str]
    """Of each column, as NumPy writes them; all little-endian or of one byte."""
    data: str
    """The columns one after the other, zlib, base64."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length: `keys` (the hour first) and `counts`.

    `is_sorted` says that rows stand in the order of their hours, so that a span is a slice.
    """

    keys: tuple[Column, ...]
    counts: tuple[Column, ...]
    is_sorted: bool = False

    def __len__(self) -> int:
        return len(self.keys[0])

    @property
    def nbytes(self) -> int:
        """What its columns take."""
        return sum(each.nbytes for each in (*self.keys, *self.counts))

    def within(self, first: int, last: int) -> "Table":
        """The rows of the hours from `first` to `last`, both among them."""
        hours = self.keys[0]
        if self.is_sorted:
            chosen: slice | NDArray[np.bool_] = slice(
                int(np.searchsorted(hours, first, "left")),
                int(np.searchsorted(hours, last, "right")),
            )
        else:
            chosen = (hours >= first) & (hours <= last)
        return self.rows(chosen)

    def having(self, key: int, value: int) -> "Table":
        """The rows whose key of that place has this value."""
        return self.rows(self.keys[key] == value)

    def total(self) -> Ints:
        """The sum of each count, shape (counts,)."""
        return np.array([int(each.sum(dtype=np.int64)) for each in self.counts], np.int64)

    def by(self, key: int, size: int, first: int = 0) -> Ints:
        """Sums by the values of a key that lie in [first, first + size); shape (size, counts)."""
        return self._summed(self.keys[key].astype(np.int64) - first, size)

    def by_both(self, one: int, ones: int, other: int, others: int, first: int = 0) -> Ints:
        """Sums of the first count by two keys, shape (ones, others); `first` is of the other."""
        place = self.keys[one].astype(np.int64) * others + (
            self.keys[other].astype(np.int64) - first
        )
        return self._summed(place, ones * others)[:, 0].reshape(ones, others)

    def by_step(self, first: int, step: int, steps: int) -> Ints:
        """Sums by steps of hours from `first` on, shape (steps, counts)."""
        return self._summed((self.keys[0].astype(np.int64) - first) // step, steps)

    def stepped(self, first: int, step: int) -> "Table":
        """The same rows with the number of their step in the place of the hour."""
        steps = (self.keys[0].astype(np.int64) - first) // step
        return Table((steps, *self.keys[1:]), self.counts, self.is_sorted)

    def joined(self, other: "Table") -> "Table":
        """All rows of both."""
        if not len(other):
            return self
        if not len(self):
            return other
        pairs = zip((*self.keys, *self.counts), (*other.keys, *other.counts), strict=True)
        columns = [np.concatenate(pair) for pair in pairs]
        kept = len(self.keys)
        return Table(tuple(columns[:kept]), tuple(columns[kept:]))

    def replaced(self, key: int, values: Column) -> "Table":
        """The same rows with other values of a key."""
        keys = (*self.keys[:key], values, *self.keys[key + 1 :])
        return Table(keys, self.counts, self.is_sorted and key != 0)

    def compact(self) -> "Table":
        """One row for the same keys, sorted by all keys; columns as narrow as they can be."""
        if not len(self):
            return self
        order = np.lexsort(self.keys[::-1])
        keys = [each[order] for each in self.keys]
        is_new = np.zeros(len(order), np.bool_)
        is_new[0] = True
        for each in keys:
            is_new[1:] |= each[1:] != each[:-1]
        begins = np.flatnonzero(is_new)
        return Table(
            tuple(_narrow(each[begins]) for each in keys),
            tuple(
                _narrow(np.add.reduceat(each[order].astype(np.int64), begins))
                for each in self.counts
            ),
            is_sorted=True,
        )

    def stored(self) -> StoredTable:
        """As a fact holds it; the same bytes for the same compact rows."""
        columns = (*self.keys, *self.counts)
        raw = b"".join(each.tobytes() for each in columns)
        return StoredTable(
            kinds=[each.dtype.str for each in columns],
            data=base64.b64encode(zlib.compress(raw, _LEVEL)).decode(),
        )

    def rows(self, chosen: slice | NDArray[np.bool_]) -> "Table":
        """Those of the rows."""
        return Table(
            tuple(each[chosen] for each in self.keys),
            tuple(each[chosen] for each in self.counts),
            self.is_sorted,
        )

    def _summed(self, places: Ints, size: int) -> Ints:
        sums = [  # floats of 64 bits hold whole numbers up to 9e15
            np.bincount(places, each, size)[:size].astype(np.int64) for each in self.counts
        ]
        return np.stack(sums, axis=1)


def empty(keys: int, counts: int) -> Table:
    """No rows."""
    nothing = np.zeros(0, np.int64)
    return Table((nothing,) * keys, (nothing,) * counts, is_sorted=True)


def table_of(numbers: "array[int]", keys: int, counts: int) -> Table:
    """Rows of keys and counts, given one after the other."""
    flat = np.frombuffer(numbers, np.int64).reshape(-1, keys + counts)
    columns = [np.ascontiguousarray(flat[:, place]) for place in range(keys + counts)]
    return Table(tuple(columns[:keys]), tuple(columns[keys:]))


def read_table(stored: StoredTable, keys: int, counts: int) -> Table:
    """The reverse of `Table.stored`; the columns cannot be written to.

    Raises:
        ValueError: it is no such table.
    """
    if len(stored.kinds) != keys + counts:
        raise ValueError("a table of usage has other columns than expected")
    if not set(stored.kinds) <= _STORED_KINDS:
        raise ValueError("a table of usage holds something else than whole numbers")
    kinds = [np.dtype(each) for each in stored.kinds]
    try:
        raw = zlib.decompress(base64.b64decode(stored.data))
    except zlib.error as error:
        raise ValueError("a table of usage cannot be unpacked") from error
    width = sum(each.itemsize for each in kinds)
    rows, rest = divmod(len(raw), width)
    if rest:
        raise ValueError("a table of usage is cut off")
    columns: list[Column] = []
    at = 0
    for each in kinds:
        columns.append(np.frombuffer(raw, each, rows, at))
        at += rows * each.itemsize
    table = Table(tuple(columns[:keys]), tuple(columns[keys:]), is_sorted=True)
    hours = columns[0]
    if np.any(hours[1:] < hours[:-1]) or any(np.any(each < 0) for each in table.counts):
        raise ValueError("a table of usage holds no counts in the order of their hours")
    return table


def _narrow(column: Column) -> Column:
    least, most = int(column.min()), int(column.max())
    for kind in _KINDS:
        bounds = np.iinfo(kind)
        if bounds.min <= least and most <= bounds.max:
            return column.astype(kind)
    return column


_KINDS: Final[Sequence[str]] = ("|u1", "|i1", "<u2", "<i2", "<u4", "<i4")
_STORED_KINDS: Final = frozenset((*_KINDS, "<i8"))
