"""Boundaries in sentences, and the map of the weightiest clusters."""

import json
from pathlib import Path

from aftercall.models import AxisCluster, Boundaries, CoOccurrence
from service.dashboard.boundaries import MAX_MAPPED, clustered_words, cohesion_words, map_axes

EXAMPLES = json.loads(Path("service/api/openapi.json").read_text("utf-8"))["operations"]
REPORT = Boundaries.model_validate(EXAMPLES["GET /boundaries"]["answer"])


def test_the_map_has_the_weightiest_clusters_with_what_they_are_named_with() -> None:
    """A weight of none divides nothing."""
    clusters = [
        AxisCluster(cluster_id=f"c{place}", name=f"n{place}", members=[], count=3, weight=weight)
        for place, weight in enumerate([4.0, *[0.0] * MAX_MAPPED])
    ]
    pair = CoOccurrence(cluster_ids=("c0", "c1"), names=("n0", "n1"), count=2, weight=1.0)
    found = map_axes(Boundaries(clusters=clusters, co_occurrences=[pair], tools=[]))
    assert len(found) == MAX_MAPPED
    assert found[:3] == [("n0, with n1", "3", 1.0), ("n1, with n0", "3", 0.0), ("n2", "3", 0.0)]
    assert map_axes(Boundaries(clusters=clusters[1:2], co_occurrences=[], tools=[]))[0][2] == 0


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
