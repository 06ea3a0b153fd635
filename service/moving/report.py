"""What an archive and a store hold, as a table for a person."""

from collections.abc import Mapping

from service.moving.checksum import Tally, checksum_of_all
from service.moving.restoring import Compared

_SHOWN = 16
"""Hexadecimal digits of a checksum that a table shows; all of them are compared."""


def table(tallies: Mapping[str, Tally]) -> list[str]:
    """A line per kind, and one for all."""
    return _rows(tallies, None)


def side_by_side(compared: Compared) -> list[str]:
    """The archive's counts and checksums, and the store's beside them."""
    return _rows(compared.archive, compared.store)


def _rows(left: Mapping[str, Tally], right: Mapping[str, Tally] | None) -> list[str]:
    head = f"{'':<18} {'archive':>12}  {'checksum':<16}"
    if right is not None:
        head += f"   {'store':>12}  {'checksum':<16}"
    lines = [head]
    for kind, tally in left.items():
        line = f"{kind:<18} {_cells(tally)}"
        if right is not None:
            line += f"   {_cells(right[kind])}  {'' if right[kind] == tally else 'DIFFERS'}"
        lines.append(line.rstrip())
    line = f"{'all':<18} {_total(left)}"
    if right is not None:
        line += f"   {_total(right)}"
    return [*lines, line]


def _cells(tally: Tally) -> str:
    return f"{tally.count:>12,}  {tally.checksum[:_SHOWN]}"


def _total(tallies: Mapping[str, Tally]) -> str:
    count = sum(tally.count for tally in tallies.values())
    return f"{count:>12,}  {checksum_of_all(tallies)[:_SHOWN]}"
