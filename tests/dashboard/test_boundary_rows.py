"""Boundaries in rows and sentences say what the service answers."""

import json
from pathlib import Path

from aftercall.models import Boundaries, Execution, Referral
from service.dashboard.shown.boundary_rows import (
    REFERRAL,
    cluster_rows,
    clustered_words,
    cohesion_words,
    pair_rows,
    shares_text,
    tool_rows,
    warned,
)

EXAMPLES = json.loads(Path("service/routes/openapi.json").read_text("utf-8"))["operations"]
REPORT = Boundaries.model_validate(EXAMPLES["GET /boundaries"]["answer"])


def test_clusters_are_told_with_members_and_tools() -> None:
    """Each wording with how often it was said."""
    rows = cluster_rows(REPORT.clusters)
    assert [row["name"] for row in rows] == ["extraction", "transport"]
    assert rows[1]["members"] == "transport (4), HTTP transport (2)"
    assert rows[1]["tools"] == "web/read_page"
    assert (rows[1]["count"], rows[1]["weight"]) == (6, 4.9)


def test_pairs_and_tools_are_told_with_their_counts() -> None:
    """By name, for nobody reads ids."""
    [row] = pair_rows(REPORT.co_occurrences)
    assert (row["one"], row["other"], row["count"]) == ("transport", "extraction", 6)
    [tool] = tool_rows(REPORT.tools)
    assert (tool["tool"], tool["warning"], tool["failures"]) == ("web/read_page", "warning", 6)
    assert warned(REPORT) == REPORT.tools


def test_axes_are_told_with_their_shares() -> None:
    """A failure that names several counts for each, so they may add up to more than all."""
    shares = shares_text(REPORT.tools[0].cohesion.axes)
    assert shares == "transport 100.0 %, extraction 100.0 %"
    told = cohesion_words(REPORT.tools[0].cohesion)
    assert "Cohesion 0.50" in told
    assert "6 boundary failures, 1 of them without evidence" in told


def test_when_clusters_were_made_and_what_came_since_is_told() -> None:
    """Never, just now, and with some that wait."""
    assert "at 2026-02-20 14:30." in clustered_words(REPORT)
    assert "No wording has come since" in clustered_words(REPORT)
    waiting = REPORT.model_copy(update={"unclustered": 1})
    assert "1 wording has come since" in clustered_words(waiting)
    waiting = REPORT.model_copy(update={"unclustered": 1_200})
    assert "1,200 wordings have come" in clustered_words(waiting)
    never = REPORT.model_copy(update={"clustered_at": None})
    assert "not gathered into clusters yet" in clustered_words(never)


def test_the_example_of_a_referral_is_one() -> None:
    """Whoever sends it as it stands is understood."""
    fields = json.loads(REFERRAL)
    sent = {
        "executionId": "0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d",
        "timestamp": "2026-02-20T14:30:00Z",
        "agent": "ada",
        "toolName": "page_reader",
        "parameters": {},
        **fields,
    }
    error = Execution.model_validate(sent).error
    assert error is not None
    assert error.type == "wrong_tool_boundary"
    assert Referral.model_validate(error.details).boundary_axes == ["transport", "extraction"]


def test_names_are_shown_without_invisible_characters() -> None:
    """A change of direction may make a name read as another."""
    cluster = REPORT.clusters[0].model_copy(update={"name": "a\u202eb"})
    assert cluster_rows([cluster])[0]["name"] == "a\\u202eb"
