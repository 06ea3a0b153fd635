"""Selecting: what is told of which tools, within a budget of tokens. Pure and deterministic.

First every tool gets its shortest form, the most useful first, as long as there is room; then
longer signatures and further lines, the most useful for their length first, over all tools.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from retrieval.known_tools.text import estimate_tokens

_MAX_COSTS = 8_192
"""Parts whose estimate is kept, those of some hundred tools: agents ask for the same ones often."""

_cost = lru_cache(_MAX_COSTS)(estimate_tokens)


@dataclass(frozen=True, slots=True)
class Line:
    """One line about a tool, ready to be shown; `worth` is as in `retrieval.known_tools.worth`."""

    text: str
    worth: float
    heading: str = ""
    """Lines of one heading stand together below it; it is told with the first of them."""


@dataclass(frozen=True, slots=True)
class Block:
    """All that could be told of one tool, ready to be shown.

    `short` and `full` are the forms of its first part, `closing` its end.
    """

    short: str
    full: str
    closing: str
    worth: float
    """Of `full` instead of `short`."""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the blocks. `left_out` takes the number of tools; `empty` is of none."""

    opening: str
    closing: str
    left_out: str
    empty: str


@dataclass(slots=True)
class _Chosen:
    """A tool that is told of, with what its parts cost and which of them are told."""

    block: Block
    is_full: bool = False
    lines: set[int] = field(default_factory=set)
    headings: set[str] = field(default_factory=lambda: {""})


@dataclass(frozen=True, slots=True)
class _Offer:
    """A longer first part, or the line of a number; `cost` is without the heading's."""

    density: float
    place: int
    line: int
    """-1 is the first part."""
    cost: int


def fill(frame: Frame, blocks: Sequence[Block], budget: int, *, further: int = 0) -> str:
    """The text of as much as fits. Every part ends where a word ends, so that estimates add up.

    Args:
        frame: alone it must fit any budget that is allowed.
        blocks: the tools, the most useful first.
        budget: in tokens, by `estimate_tokens`.
        further: tools that are left out in any case, less useful than all others.
    """
    if not blocks:
        return frame.opening + frame.empty + frame.closing
    room = budget - _cost(frame.opening) - _cost(frame.closing)
    chosen, room = _shortest_forms(frame, blocks, room, further)
    _fill_up(chosen, room)
    missing = len(blocks) + further - len(chosen)
    told = [_shown(each) for each in chosen]
    told.extend([_missing(frame, missing)] if missing else [])
    return frame.opening + "".join(told) + frame.closing


def _shortest_forms(
    frame: Frame, blocks: Sequence[Block], room: int, further: int
) -> tuple[list[_Chosen], int]:
    costs = [_cost(each.short) + _cost(each.closing) for each in blocks]
    if further or sum(costs) > room:  # then some are left out, and that is said
        room -= _cost(_missing(frame, len(blocks) + further))
    chosen = []
    for block, cost in zip(blocks, costs, strict=True):
        if cost <= room:
            room -= cost
            chosen.append(_Chosen(block))
    return chosen, room


def _fill_up(chosen: Sequence[_Chosen], room: int) -> None:
    offers = [offer for place, each in enumerate(chosen) for offer in _offers(place, each.block)]
    offers.sort(key=lambda each: (-each.density, each.place, each.line))
    headings: dict[str, int] = {"": 0}
    for offer in offers:
        each = chosen[offer.place]
        cost = offer.cost
        heading = "" if offer.line < 0 else each.block.lines[offer.line].heading
        if heading not in each.headings:
            cost += headings.setdefault(heading, _cost(heading))
        if cost > room:
            continue
        room -= cost
        if offer.line < 0:
            each.is_full = True
        else:
            each.lines.add(offer.line)
            each.headings.add(heading)


def _offers(place: int, block: Block) -> Iterator[_Offer]:
    if block.full != block.short:
        more = max(0, _cost(block.full) - _cost(block.short))
        yield _Offer(block.worth / max(1, more), place, -1, more)
    for number, line in enumerate(block.lines):
        cost = _cost(line.text)
        yield _Offer(line.worth / max(1, cost), place, number, cost)


def _shown(each: _Chosen) -> str:
    block = each.block
    parts = [block.full if each.is_full else block.short]
    heading = ""
    for number in sorted(each.lines):
        line = block.lines[number]
        if line.heading != heading:
            parts.append(line.heading)
            heading = line.heading
        parts.append(line.text)
    return "".join([*parts, block.closing])


def _missing(frame: Frame, count: int) -> str:
    return frame.left_out.format(count=count, s="" if count == 1 else "s")
