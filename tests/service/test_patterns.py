"""`GET /patterns` over HTTP: what the nightly run consolidated, without secrets."""

from typing import Any

from aftercall.models import FailurePatternList
from mongo.records import Row, ToolKey, encoded
from retrieval.memory import PATTERN
from retrieval.patterns import ConsolidatedPattern
from tests.service.fitness_client import fresh
from tests.service.running_service import RunningService, put_rows

SECRET = "AKIAIOSFODNN7EXAMPLE"  # noqa: S105  # it only looks like one
AT = "2026-03-01T12:00:00Z"


def put(service: RunningService, **fields: Any) -> ConsolidatedPattern:
    """A pattern as a nightly run leaves it."""
    pattern = ConsolidatedPattern.model_validate(
        {
            "pattern_id": fresh("pattern"), "server_name": None, "tool_name": fresh("tool"),
            "category": "timeout", "leader": "took <n> s", "signatures": ["took <n> s"],
            "count": 3, "last_seen": AT, **fields,
        }
    )  # fmt: skip
    assert pattern.last_seen is not None
    tool = ToolKey("default", pattern.server_name, pattern.tool_name)
    put_rows(service, Row(PATTERN, pattern.pattern_id, encoded(pattern), tool, rank=pattern.count))
    return pattern


def asked(service: RunningService, **query: Any) -> list[dict[str, Any]]:
    response = service.client.get("/patterns", params=query)
    assert response.status_code == 200, response.text
    FailurePatternList.model_validate_json(response.content)
    found: list[dict[str, Any]] = response.json()["patterns"]
    return found


def test_patterns_come_most_failures_first(service: RunningService) -> None:
    """Bounded by the limit."""
    rare, frequent = put(service, count=4_000), put(service, count=9_000)
    found = asked(service, limit=2)
    assert [each["patternId"] for each in found] == [frequent.pattern_id, rare.pattern_id]
    assert found[0]["count"] == 9_000
    assert found[0]["lastSeen"] == AT


def test_they_are_found_by_tool_server_and_category(service: RunningService) -> None:
    """Each narrows the others."""
    pattern = put(service, server_name="web", category="conflict")
    other = put(service, tool_name=pattern.tool_name, server_name="files")
    names = {pattern.pattern_id, other.pattern_id}
    assert {each["patternId"] for each in asked(service, toolName=pattern.tool_name)} == names
    by_server = asked(service, toolName=pattern.tool_name, serverName="web")
    assert [each["patternId"] for each in by_server] == [pattern.pattern_id]
    conflicts = asked(service, toolName=pattern.tool_name, category="conflict")
    assert [each["patternId"] for each in conflicts] == [pattern.pattern_id]
    assert asked(service, toolName=fresh("unknown")) == []


def test_what_tools_said_is_masked(service: RunningService) -> None:
    """In wordings and in the lesson: it may have been learned before it was a secret."""
    told = f"no such key {SECRET}"
    pattern = put(service, leader=told, signatures=[told], lesson=f"Use {SECRET}.")
    assert SECRET not in str(asked(service, toolName=pattern.tool_name))
