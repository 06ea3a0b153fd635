"""Boundaries in sentences, and a map whose places follow from the data alone."""

import itertools
import json
import re
from pathlib import Path

from aftercall.models import AxisCluster, Boundaries, CoOccurrence
from service.dashboard.boundaries import (
    MAX_NODES,
    circle_order,
    clustered_words,
    cohesion_words,
    drawn_map,
)

EXAMPLES = json.loads(Path("service/routes/openapi.json").read_text("utf-8"))["operations"]
REPORT = Boundaries.model_validate(EXAMPLES["GET /boundaries"]["answer"])


def cluster(name: str, weight: float = 1.0) -> AxisCluster:
    return AxisCluster(cluster_id=name, name=name, members=[], count=3, weight=weight)


def pair(one: str, other: str, count: int = 1, weight: float = 1.0) -> CoOccurrence:
    return CoOccurrence(cluster_ids=(one, other), names=(one, other), count=count, weight=weight)


def boundaries(clusters: list[AxisCluster], pairs: list[CoOccurrence]) -> Boundaries:
    return Boundaries(clusters=clusters, co_occurrences=pairs, tools=[])


def places(drawn: str) -> dict[str, str]:
    """Where each name of a map stands."""
    found = re.findall(r'style="(left:[^;]*;top:[^;]*);[^>]*><span class="name">(\w+)', drawn)
    return {name: place for place, name in found}


def test_the_same_data_in_any_order_lies_the_same_also_when_weights_fade() -> None:
    """So that the map does not jump when it is drawn again."""
    now = [cluster(name, weight) for name, weight in zip("abcd", (4, 2, 1, 0), strict=True)]
    later = [cluster(name, 1 / (1 + place)) for place, name in enumerate("dcba")]
    pairs = [pair("a", "c", 9), pair("b", "d", 7)]
    order = circle_order(now, pairs)
    assert abs(order.index("a") - order.index("c")) == 1, "what co-occurs lies side by side"
    assert len(set(places(drawn_map(boundaries(now, pairs))).values())) == 4
    for shuffled in itertools.permutations(later):
        again = drawn_map(boundaries(list(shuffled), pairs[::-1]))
        assert places(again) == places(drawn_map(boundaries(now, pairs)))


def test_only_the_weightiest_are_drawn_and_lines_lead_to_none_that_is_not() -> None:
    """The table has the others."""
    many = [cluster(f"c{place:02}", 100 - place) for place in range(MAX_NODES + 5)]
    drawn = drawn_map(boundaries(many, [pair("c00", f"c{MAX_NODES + 1:02}"), pair("c00", "c01")]))
    assert len(places(drawn)) == MAX_NODES
    assert drawn.count('class="tie"') == 1
    sizes = [float(each) for each in re.findall(r'r="([\d.]+)" class="disc"', drawn)]
    assert max(sizes) > min(sizes) > 0


def test_nothing_is_a_map_of_nothing_and_one_alone_is_in_the_middle() -> None:
    """No division by a weight of none."""
    assert places(drawn_map(boundaries([], []))) == {}
    assert places(drawn_map(boundaries([cluster("a", 0)], []))) == {"a": "left:50.00%;top:50.00%"}


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
