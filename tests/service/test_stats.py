"""`/stats` over HTTP: what is refused, what is unknown, what is told of nothing; the examples."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

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
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    hashing_settings,
    running,
)
from tests.service.statistics.asking import asked
from tests.service.test_bad_input import error_of


def now(days_ago: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("empty"))) as started:
        yield started


# Nothing yet


def test_an_empty_store_has_sensible_answers(empty: RunningService) -> None:
    """Points of none, no rate out of nothing, no quantile that could be taken for fast."""
    assert [each.totals for each in asked(empty, "totals", Totals).windows] == [CallUsage()] * 3
    assert len(asked(empty, "trend", Trend, window="30d").points) == 30
    assert asked(empty, "latency", Latency).overall is None
    assert asked(empty, "tools", ToolStatisticsList).tools == []
    patterns = asked(empty, "patterns", PatternStatistics)
    assert (patterns.patterns, patterns.other_failures) == ([], 0)
    reflection = asked(empty, "reflection", ReflectionStatistics)
    assert (reflection.answers.asked, reflection.with_suggestion) == (0, RepairTimes())
    confidence = asked(empty, "confidence", ConfidenceStatistics)
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
    service.record(execution(agent=name, timestamp=now()))
    eventually(lambda: service.client.get(f"/stats/agents/{name}").status_code == 200)
    response = service.client.get(f"/stats/agents/{name[:-1]}")
    assert f"did you mean {name!r}" in error_of(response, 404, "not_found")
    assert name in response.json()["error"]["details"]["nearest"]


def test_an_agent_that_rests_is_still_known(service: RunningService) -> None:
    """Without calls in a shorter window; no error there."""
    name = fresh("sleeper")
    service.record(execution(agent=name, timestamp=now(days_ago=5)))
    eventually(lambda: service.client.get(f"/stats/agents/{name}").status_code == 200)
    found = asked(service, f"agents/{name}", AgentStatistics)
    assert (found.usage.successes, found.tools) == (0, [])
    assert asked(service, f"agents/{name}", AgentStatistics, window="7d").usage.successes == 1
