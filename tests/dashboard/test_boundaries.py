"""Boundaries in sentences, and a map whose places follow from the data alone."""

import itertools
import json
import math
from pathlib import Path

from aftercall.models import AxisCluster, Boundaries, CoOccurrence
from service.dashboard.boundaries import (
    MAX_NODES,
    circle_order,
    clustered_words,
    cohesion_words,
    map_of,
)

EXAMPLES = json.loads(Path("service/routes/openapi.json").read_text("utf-8"))["operations"]
REPORT = Boundaries.model_validate(EXAMPLES["GET /boundaries"]["answer"])


def cluster(name: str, weight: float = 1.0) -> AxisCluster:
    return AxisCluster(cluster_id=name, name=name, members=[], count=3, weight=weight)


def pair(one: str, other: str, count: int = 1, weight: float = 1.0) -> CoOccurrence:
    return CoOccurrence(cluster_ids=(one, other), names=(one, other), count=count, weight=weight)


def boundaries(clusters: list[AxisCluster], pairs: list[CoOccurrence]) -> Boundaries:
    return Boundaries(clusters=clusters, co_occurrences=pairs, tools=[])


def test_the_same_data_in_any_order_lies_the_same() -> None:
    """So that the map does not jump when it is drawn again."""
    clusters = [cluster(name) for name in "abcd"]
    pairs = [pair("a", "c", 5), pair("b", "d", 2)]
    orders = {
        tuple(circle_order(list(shuffled), pairs)) for shuffled in itertools.permutations(clusters)
    }
    assert len(orders) == 1
    first = map_of(boundaries(clusters, pairs))
    assert map_of(boundaries(clusters[::-1], pairs[::-1])).nodes == first.nodes


def test_fading_weights_move_nothing() -> None:
    """They halve every week; only counts and ids say who lies where."""
    now = [cluster("a", 4), cluster("b", 2), cluster("c", 1)]
    later = [cluster("a", 0.1), cluster("b", 0.4), cluster("c", 1)]
    places = [
        {node.cluster_id: (node.x, node.y) for node in map_of(boundaries(each, [])).nodes}
        for each in (now, later)
    ]
    assert places[0] == places[1]


def test_what_co_occurs_most_lies_side_by_side() -> None:
    """Lines across the whole circle are hard to follow."""
    order = circle_order([cluster(name) for name in "abcd"], [pair("a", "c", 9), pair("b", "d", 7)])
    assert abs(order.index("a") - order.index("c")) == 1
    assert abs(order.index("b") - order.index("d")) == 1


def test_places_are_on_the_circle_and_one_alone_is_in_the_middle() -> None:
    """None outside, no two at one place."""
    [alone] = map_of(boundaries([cluster("a")], [])).nodes
    assert (alone.x, alone.y) == (0.0, 0.0)
    many = map_of(boundaries([cluster(f"c{place}") for place in range(MAX_NODES)], [])).nodes
    assert len({(round(each.x, 6), round(each.y, 6)) for each in many}) == MAX_NODES
    assert all(math.isclose(math.hypot(each.x, each.y), 1) for each in many)


def test_sizes_and_widths_grow_with_the_weights() -> None:
    """The area of a node is its weight, and the width of a line that of the pair."""
    drawn = map_of(
        boundaries(
            [cluster("a", 4), cluster("b", 1), cluster("c", 0)],
            [pair("a", "b", weight=2), pair("a", "c", weight=1)],
        )
    )
    sizes = {node.cluster_id: node.radius for node in drawn.nodes}
    assert sizes["a"] > sizes["b"] > sizes["c"] > 0
    widths = [width for _, _, width in drawn.edges]
    assert widths[0] > widths[1] > 0


def test_only_the_weightiest_are_drawn_and_lines_lead_to_none_that_is_not() -> None:
    """The table has the others."""
    many = [cluster(f"c{place:02}", 100 - place) for place in range(MAX_NODES + 5)]
    drawn = map_of(boundaries(many, [pair("c00", f"c{MAX_NODES + 1:02}"), pair("c00", "c01")]))
    assert len(drawn.nodes) == MAX_NODES
    assert [edge[:2] for edge in drawn.edges] == [("c00", "c01")]


def test_nothing_is_a_map_of_nothing() -> None:
    """No division by a weight of none."""
    assert map_of(boundaries([], [])).nodes == []
    assert map_of(boundaries([cluster("a", 0)], [])).nodes[0].radius > 0


def test_when_clusters_were_made_and_what_came_since_is_told() -> None:
    """Never, just now, and with some that wait."""
    assert "at 2026-02-20 14:30." in clustered_words(REPORT)
    assert "No wording has come since" in clustered_words(REPORT)
    waiting = REPORT.model_copy(update={"unclustered": 1})
    assert "each standing for itself: 1 wording." in clustered_words(waiting)
    never = REPORT.model_copy(update={"clustered_at": None})
    assert "not gathered into clusters yet" in clustered_words(never)


def test_a_warning_says_how_sure_it_is_and_of_what() -> None:
    words = cohesion_words(REPORT.tools[0].cohesion)
    assert "Cohesion 0.50" in words
    assert "6 boundary failures, 1 of them without evidence" in words
