"""What to fix first: what a pattern is called, and what it costs."""

import pytest

from aftercall.models import ErrorCategory
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern, cost_of
from retrieval.knowledge.patterns.lessons import title_of
from retrieval.knowledge.reading.faults import FaultKind


@pytest.mark.parametrize(
    ("category", "leader", "places", "subjects", "title"),
    [
        ("invalid_parameters", "<n> validation errors for add", {"b": "missing", "a": "missing"},
         ["a", "b"], "add: a, b missing"),
        ("invalid_parameters", "bad", {"a": "wrong_type", "x[].y": "unexpected"}, ["a", "x.y"],
         "add: a of the wrong type; x[].y unknown"),
        ("invalid_parameters", "bad", dict.fromkeys("abcde", "missing"), list("abcde"),
         "add: a, b, c, 2 more missing"),
        ("not_found", "no <v>", {"revision": "not_found"}, ["revision"],
         "add: revision not found"),
        ("invalid_parameters", "pair <v> not recognised", {}, ["pair"], "add: pair refused"),
        ("invalid_parameters", "<n> Bad Request", {}, [], "add: parameters refused"),
        ("not_found", "Entity with name <v> not found", {}, [],
         "add: Entity with name … not found"),
        ("not_found", "add: <v>: No such file or directory", {}, [],
         "add: No such file or directory"),
        ("not_found", "<v> not found", {}, [], "add: not found"),
        ("timeout", "add timed out", {}, ["add"], "add: takes too long"),
        ("unknown", "cannot fetch\n<v>", {}, [], "add: cannot fetch …"),
        ("execution", "", {}, [], "add: fails"),
    ],
)  # fmt: skip
def test_a_title_says_tool_place_and_what_is_wrong(
    category: ErrorCategory, leader: str, places: dict[str, FaultKind], subjects: list[str],
    title: str,
) -> None:  # fmt: skip
    """And never how a validator puts it; the tool's own words where no place is known."""
    pattern = ConsolidatedPattern(
        pattern_id="p", server_name=None, tool_name="add", category=category, leader=leader,
        places=places, subjects=subjects,
    )  # fmt: skip
    assert title_of(pattern) == title


def test_a_cost_grows_with_what_nobody_mended_and_with_the_trend() -> None:
    """As often as before counts once; what comes up at most twice, what fades less; mended none."""
    assert cost_of(9, 9, 9) == cost_of(9, 9, None) == 9
    assert 9 < cost_of(9, 9, 0) < 18
    assert 0 < cost_of(9, 9, 90) < 9
    assert cost_of(0, 90, 0) == 0
