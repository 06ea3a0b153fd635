"""Both clients' methods for statistics."""

from typing import Any

import pytest

from aftercall.models import (
    AgentStatistics,
    ConfidenceStatistics,
    Latency,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
    ToolStatisticsList,
    Totals,
    Trend,
    Usage,
    WireModel,
)
from tests.sdk.loopback import Scripted

WINDOW = {"window": "24h", "since": "2026-03-01T00:00:00Z", "until": "2026-03-01T12:00:00Z"}
PATTERN = {
    "patternId": "p-1", "tool": {"toolName": "t"}, "category": "timeout", "signature": "slow",
    "count": 3,
}  # fmt: skip
NONE = {"successes": 0, "failures": 0}
EFFECT = {"firstAttempts": NONE, "tasks": NONE, "retries": NONE, "suggested": NONE}
TREND = {**WINDOW, "step": "hour", "points": []}
AGENT = {**WINDOW, "agent": "a/b", "usage": {"agent": "a/b"}}
CONFIDENCE = {"judged": 0, "bins": []}
TOOL = {"tool_name": "a/b", "server_name": "s"}


@pytest.mark.parametrize(
    ("name", "arguments", "options", "line", "answer", "model"),
    [
        ("totals", (), {}, "totals", {"windows": []}, Totals),
        ("usage", (), {}, "usage?window=24h", {"window": "24h"}, Usage),
        ("usage", ("30d",), {"limit": 5}, "usage?window=30d&limit=5", {"window": "30d"}, Usage),
        ("trend", (), {}, "trend?window=24h", TREND, Trend),
        (
            "trend", ("7d",), TOOL, "trend?window=7d&toolName=a%2Fb&serverName=s", TREND, Trend,
        ),
        ("latency", (), {}, "latency?window=24h", TREND, Latency),
        (
            "latency", ("7d",), TOOL, "latency?window=7d&toolName=a%2Fb&serverName=s", TREND,
            Latency,
        ),
        (
            "tool_statistics", ("7d",), {"limit": 2}, "tools?window=7d&limit=2",
            {**WINDOW, "tools": []}, ToolStatisticsList,
        ),
        ("agent_statistics", ("a/b",), {}, "agents/a%2Fb?window=24h", AGENT, AgentStatistics),
        (
            "reflection", ("30d",), {}, "reflection?window=30d", {**WINDOW, **EFFECT},
            ReflectionStatistics,
        ),
        (
            "pattern_statistics", (), {"limit": 3}, "patterns?window=24h&limit=3",
            {**WINDOW, "patterns": []}, PatternStatistics,
        ),
        (
            "pattern_history", ("p-1",), {}, "patterns/p-1?window=30d",
            {**WINDOW, "pattern": PATTERN, "points": []}, PatternHistory,
        ),
        ("confidence", (), {}, "confidence", CONFIDENCE, ConfidenceStatistics),
    ],
)  # fmt: skip
async def test_statistics_are_asked_for_as_the_contract_says(
    call: Any,
    scripted: Scripted,
    name: str,
    arguments: tuple[str, ...],
    options: dict[str, Any],
    line: str,
    answer: dict[str, Any],
    model: type[WireModel],
) -> None:
    """The last day unless another window is named; names are percent-encoded."""
    scripted.answers(answer)
    assert isinstance(await call(name, *arguments, **options), model)
    assert scripted.request[0] == f"GET /stats/{line}"


@pytest.mark.parametrize("name", ["trend", "latency"])
async def test_a_server_alone_is_refused_before_it_is_sent(call: Any, name: str) -> None:
    """A tool on no server and all tools of a server are two things."""
    with pytest.raises(ValueError, match="server_name needs tool_name"):
        await call(name, server_name="web")


async def test_an_answer_of_a_later_service_is_read(call: Any, scripted: Scripted) -> None:
    """Further fields are no reason to fail."""
    scripted.answers({"window": "7d", "totals": {"successes": 4, "failures": 1}, "mood": "good"})
    found = await call("usage", "7d")
    assert (found.totals.successes, found.is_complete) == (4, True)


async def test_an_empty_name_is_no_question(call: Any) -> None:
    """It would go to another endpoint."""
    with pytest.raises(ValueError, match="empty"):
        await call("agent_statistics", "")
