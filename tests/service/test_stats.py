"""`/stats` over HTTP: what is refused, what is unknown, what is told of nothing; the examples."""

import pytest

from aftercall.models import (
    AgentStatistics,
    CallUsage,
    ConfidenceStatistics,
    Latency,
    PatternStatistics,
    ReflectionStatistics,
    RepairTimes,
    ToolStatisticsList,
    Totals,
    Trend,
)
from tests.service.fitness_client import fresh
from tests.service.running_service import RunningService, eventually, execution
from tests.service.statistics.asking import asked
from tests.service.statistics.test_failures import ago
from tests.service.test_bad_input import error_of

# Nothing yet


def test_an_empty_store_has_sensible_answers(own_service: RunningService) -> None:
    """Points of none, no rate out of nothing, no quantile that could be taken for fast."""
    assert [each.totals for each in asked(own_service, "totals", Totals).windows] == [
        CallUsage()
    ] * 3
    assert len(asked(own_service, "trend", Trend, window="30d").points) == 30
    assert asked(own_service, "latency", Latency).overall is None
    assert asked(own_service, "tools", ToolStatisticsList).tools == []
    patterns = asked(own_service, "patterns", PatternStatistics)
    assert (patterns.patterns, patterns.other_failures) == ([], 0)
    reflection = asked(own_service, "reflection", ReflectionStatistics)
    assert (reflection.answers.asked, reflection.with_suggestion) == (0, RepairTimes())
    confidence = asked(own_service, "confidence", ConfidenceStatistics)
    assert (confidence.judged, confidence.brier, len(confidence.bins)) == (0, None, 10)


# What is refused


@pytest.mark.parametrize("name", ["trend", "latency"])
def test_a_server_alone_is_no_tool(service: RunningService, name: str) -> None:
    """The message says what is missing."""
    message = error_of(service.client.get(f"/stats/{name}?serverName=web"), 404, "not_found")
    assert "serverName needs toolName" in message


def test_an_unknown_pattern_is_told_as_such(service: RunningService) -> None:
    """And where to find those there are."""
    message = error_of(service.client.get("/stats/patterns/none"), 404, "not_found")
    assert message == "there is no pattern 'none'; GET /patterns lists all"


def test_an_unknown_agent_is_told_with_the_nearest(service: RunningService) -> None:
    """A name that was misspelt is found again."""
    name = fresh("archivist")
    service.record(execution(agent=name, timestamp=ago()))
    eventually(lambda: service.client.get(f"/stats/agents/{name}").status_code == 200)
    response = service.client.get(f"/stats/agents/{name[:-1]}")
    assert f"did you mean {name!r}" in error_of(response, 404, "not_found")
    assert name in response.json()["error"]["details"]["nearest"]


def test_an_agent_that_rests_is_still_known(service: RunningService) -> None:
    """Without calls in a shorter window; no error there."""
    name = fresh("sleeper")
    service.record(execution(agent=name, timestamp=ago(days=5)))
    eventually(lambda: service.client.get(f"/stats/agents/{name}").status_code == 200)
    found = asked(service, f"agents/{name}", AgentStatistics)
    assert (found.usage.successes, found.tools) == (0, [])
    assert asked(service, f"agents/{name}", AgentStatistics, window="7d").usage.successes == 1
