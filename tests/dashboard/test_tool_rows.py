"""Tools as rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

from aftercall.models import (
    DurationQuantiles,
    Recommendation,
    RecommendationEvidence,
    Tool,
    ToolName,
    ToolStatistics,
)
from mongo.records import StoredTool
from service.dashboard.shown.tool_rows import (
    ToolPlace,
    open_by_tool,
    tool_rows,
    totals_in_words,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def called(name: str, server: str | None = None, **fields: Any) -> ToolStatistics:
    """A tool with its calls."""
    return ToolStatistics(tool=ToolName(server_name=server, tool_name=name), **fields)


def registered(tool_id: str, name: str, server: str | None = None, days: int = 0) -> StoredTool:
    """A registered tool."""
    at = AT + timedelta(days=days)
    return StoredTool(
        "default", Tool(tool_id=tool_id, name=name, server_name=server, updated_at=at)
    )


def test_a_row_says_what_the_endpoint_says() -> None:
    """Counts, the share of successes, quantiles, quality, and the warning as a word."""
    [row] = tool_rows(
        [
            called(
                "fetch", "web", successes=3, failures=1, quality=0.8, cohesion=0.4,
                cohesion_warning=True, duration_ms=DurationQuantiles(p50=10, p95=90, p99=99),
            )
        ],
        [],
        {ToolPlace("web", "fetch"): 2},
    )  # fmt: skip
    assert (row["tool"], row["calls"], row["failures"], row["success"]) == ("fetch", 4, 1, 0.75)
    assert (row["server"], row["server_name"], row["tool_id"]) == ("web", "web", None)
    assert (row["p50"], row["p95"], row["quality"], row["cohesion"]) == (10, 90, 0.8, 0.4)
    assert (row["warning"], row["recommendations"], row["registered"]) == ("several jobs", 2, "no")


def test_what_is_not_known_is_none() -> None:
    """Never 0, which would be a finding."""
    [row] = tool_rows([called("fetch")], [], {})
    assert [row[key] for key in ("success", "p50", "p95", "quality", "cohesion")] == [None] * 5


def test_tools_that_were_never_called_come_last() -> None:
    """By id; those that were called are there once."""
    rows = tool_rows(
        [called("fetch", successes=1)],
        [registered("z", "never"), registered("f", "fetch"), registered("a", "other")],
        {},
    )
    assert [(row["tool"], row["calls"]) for row in rows] == [
        ("fetch", 1),
        ("other", 0),
        ("never", 0),
    ]
    assert totals_in_words(rows) == "3 tools, of which 2 without a call in this window."


def test_of_several_ids_of_one_name_the_latest_put_is_shown() -> None:
    """They are versions of it."""
    [row] = tool_rows([], [registered("new", "t", days=1), registered("old", "t")], {})
    assert row["tool_id"] == "new"


def test_names_cannot_pass_for_one_another() -> None:
    """A slash in a name makes no other tool of it."""
    tools = [called("b/c", "a"), called("c", "a/b"), called("a/b/c"), called("c", "1:a")]
    assert len({row["key"] for row in tool_rows(tools, [], {})}) == 4


def test_recommendations_are_counted_by_tool() -> None:
    """Those about a namespace are about no tool."""

    def about(tool: ToolName | None) -> Recommendation:
        return Recommendation(
            recommendation_id="0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d", kind="repair", tool=tool,
            message="m", confidence=1, priority=1, evidence=RecommendationEvidence(),
        )  # fmt: skip

    tool = ToolName(server_name="s", tool_name="t", tool_id="x")
    assert open_by_tool([about(tool), about(tool), about(None)]) == {ToolPlace("s", "t"): 2}


def test_tools_are_counted_in_words() -> None:
    """One, several and none."""
    assert totals_in_words([]) == "0 tools."
    assert totals_in_words(tool_rows([called("t", successes=1)], [], {})) == "1 tool."
