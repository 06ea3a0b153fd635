"""Axes: what tools and users name as boundaries, counted over a whole workspace. Pure."""

from collections.abc import Mapping
from datetime import datetime
from itertools import combinations

from retrieval.health.tally import Tally
from retrieval.health.tool_health import (
    MAX_BOOK_AXES,
    MAX_BOOK_PAIRS,
    AxisBook,
    AxisSeen,
    pair_key,
)

_MAX_PAIRED = 8
"""Axes of one referral that are paired: 28 pairs. A referral of more names a list, no boundary."""

_OVERFLOW = 2
"""A book may grow to twice its bound before it is pruned, so that pruning is rare."""


def count_axes(book: AxisBook, axes: Mapping[str, str], at: datetime) -> None:
    """Count the axes that were named together, in place.

    Args:
        book: of the workspace; call `prune` when all is counted.
        axes: by their normalised form, as spelled.
        at: when.
    """
    for axis, spelled in axes.items():
        seen = book.axes.get(axis)
        if seen is None:
            seen = book.axes[axis] = AxisSeen(spelled=spelled)
        elif seen.tally.at is None or (at, spelled) > (seen.tally.at, seen.spelled):
            seen.spelled = spelled
        seen.tally.add(at)
        seen.first_seen = at if seen.first_seen is None else min(at, seen.first_seen)
    for one, other in combinations(list(axes)[:_MAX_PAIRED], 2):
        book.pairs.setdefault(pair_key(one, other), Tally()).add(at)
    if len(book.axes) > _OVERFLOW * MAX_BOOK_AXES or len(book.pairs) > _OVERFLOW * MAX_BOOK_PAIRS:
        prune(book)


def prune(book: AxisBook) -> None:
    """Forget the least heavy axes and pairs of a book that is too full, in place."""
    tallies = {axis: seen.tally for axis, seen in book.axes.items()}
    for axis in _lightest(tallies, MAX_BOOK_AXES):
        del book.axes[axis]
    for pair in _lightest(book.pairs, MAX_BOOK_PAIRS):
        del book.pairs[pair]


def latest_use(book: AxisBook) -> datetime | None:
    """When an axis was named last; None of an empty book."""
    return max((each.tally.at for each in book.axes.values() if each.tally.at), default=None)


def _lightest(tallies: Mapping[str, Tally], limit: int) -> list[str]:
    """What goes so that only the heaviest stay, of equal weight the first by name."""
    if len(tallies) <= limit:
        return []
    now = max(each.at for each in tallies.values() if each.at)
    return sorted(tallies, key=lambda name: (-tallies[name].weight_at(now), name))[limit:]
