"""Where the clusters of a map lie: on a circle, next to those they co-occur with. Pure.

The places follow from the data alone, so that a map which is drawn again lies as it lay.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.models import AxisCluster, Boundaries, CoOccurrence
from service.dashboard.shown.call_text import one_line

MAX_NODES: Final = 24
"""Clusters of one map, the weightiest: more names than that cover each other on a circle."""

MAX_LABEL: Final = 22
"""Characters of a name in the map; the table has all of it."""

_SMALLEST, _LARGEST = 12.0, 44.0  # pixels across
_THINNEST, _THICKEST = 1.0, 9.0  # pixels


@dataclass(frozen=True, slots=True)
class Node:
    """One cluster: its place within the unit circle (y grows downward), its size in pixels."""

    cluster_id: str
    label: str
    weight: float
    count: int
    x: float
    y: float
    size: float


@dataclass(frozen=True, slots=True)
class Edge:
    """Two clusters that co-occur; how wide a line, in pixels."""

    source: str
    target: str
    weight: float
    count: int
    width: float


@dataclass(frozen=True, slots=True)
class BoundaryMap:
    """All that is drawn, and how many clusters are not."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int


def map_of(boundaries: Boundaries) -> BoundaryMap:
    """The map of the weightiest clusters and of what co-occurs among them."""
    shown = boundaries.clusters[:MAX_NODES]
    ids = {each.cluster_id for each in shown}
    pairs = [each for each in boundaries.co_occurrences if ids.issuperset(each.cluster_ids)]
    heaviest = max((each.weight for each in shown), default=0.0)
    widest = max((each.weight for each in pairs), default=0.0)
    by_id = {each.cluster_id: each for each in shown}
    order = circle_order(shown, pairs)
    places = zip(order, circle(len(order)), strict=True)
    return BoundaryMap(
        nodes=tuple(_node(by_id[each], place, heaviest) for each, place in places),
        edges=tuple(
            Edge(
                *each.cluster_ids,
                weight=each.weight,
                count=each.count,
                width=round(_THINNEST + (_THICKEST - _THINNEST) * _share(each.weight, widest), 2),
            )
            for each in pairs
        ),
        left_out=len(boundaries.clusters) - len(shown),
    )


def circle(places: int) -> list[tuple[float, float]]:
    """Points on the unit circle, the first on top, clockwise; one alone in the middle."""
    if places == 1:
        return [(0.0, 0.0)]
    turns = (2 * math.pi * place / places for place in range(places))
    return [(round(math.sin(each), 4), round(-math.cos(each), 4)) for each in turns]


def circle_order(clusters: Sequence[AxisCluster], pairs: Sequence[CoOccurrence]) -> list[str]:
    """Ids in the order of the circle: after each the one that co-occurs most with it.

    By counts and ids, for weights fade by the hour and the order must not.
    """
    ties = _ties(pairs)
    left = {each.cluster_id for each in clusters}
    order: list[str] = []
    while left:
        near = ties.get(order[-1], {}) if order else {}
        following = max(
            left, key=lambda each: (near.get(each, 0), sum(ties.get(each, {}).values()), each)
        )
        order.append(following)
        left.remove(following)
    return order


def _ties(pairs: Sequence[CoOccurrence]) -> Mapping[str, dict[str, int]]:
    ties: dict[str, dict[str, int]] = {}
    for pair in pairs:
        one, other = pair.cluster_ids
        ties.setdefault(one, {})[other] = pair.count
        ties.setdefault(other, {})[one] = pair.count
    return ties


def _node(cluster: AxisCluster, place: tuple[float, float], heaviest: float) -> Node:
    # The eye compares areas, so the root of the weight is the diameter.
    share = math.sqrt(_share(cluster.weight, heaviest))
    return Node(
        cluster_id=cluster.cluster_id,
        label=one_line(cluster.name, MAX_LABEL),
        weight=cluster.weight,
        count=cluster.count,
        x=place[0],
        y=place[1],
        size=round(_SMALLEST + (_LARGEST - _SMALLEST) * share, 2),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
