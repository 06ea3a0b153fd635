"""`GET /patterns` over HTTP: what the nightly run consolidated, without secrets."""

from typing import Any

from aftercall.models import FailurePatternList
from embeddings.protocol import Embedder
from ingest.nightly import NightlyJob
from ingest.nightly_steps import consolidate_patterns
from mongo.records import Row, ToolKey, encode_json
from retrieval.knowledge.memory import PATTERN
from retrieval.knowledge.patterns.consolidation import ConsolidatedPattern
from tests.service.fitness_client import fresh
from tests.service.running_service import RunningService, execution, failure, on_loop, put_rows

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
    put_rows(
        service, Row(PATTERN, pattern.pattern_id, encode_json(pattern), tool, rank=pattern.count)
    )
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


def consolidated(service: RunningService) -> None:
    """Do what the nightly job does for patterns."""
    context = service.context

    async def open_model() -> Embedder:
        return context.embedder

    job = NightlyJob(
        store=context.store, memory=context.memory, open_model=open_model, keeper=None,
        knowledge=context.store.knowledge,
    )  # fmt: skip
    on_loop(service, consolidate_patterns(job))


def test_a_pattern_that_a_suggestion_repaired_says_how(service: RunningService) -> None:
    """With all that seed 004 asks of a reflection; values of one caller are only their types."""
    tool = fresh("rag")
    properties = {"query": {"type": "string"}, "topK": {"type": "integer", "maximum": 10}}
    schema = {"type": "object", "properties": properties}
    spec = {"name": tool, "serverName": "rag-server", "namespace": tool, "inputSchema": schema}
    assert service.client.put(f"/tools/{tool}", json=spec).is_success
    failed = failure(toolName=tool, sessionId=tool, inputSchema=schema)
    said = service.client.post("/suggest", json={"execution": failed}).json()
    [first, *_] = said["suggestions"]
    worked = execution(
        toolName=tool, sessionId=tool, parameters=first["correctedParameters"],
        suggestionId=first["suggestionId"], repairOf=failed["executionId"],
        timestamp=failed["timestamp"].replace(":00Z", ":05Z"),
    )  # fmt: skip
    assert service.record([failed, worked]).json()["accepted"] == 2
    service.learned()
    consolidated(service)
    [pattern] = asked(service, toolName=tool)
    assert (pattern["mended"], pattern["mendedBySuggestion"]) == (1, 1)
    assert pattern["errorType"] == "ValidationError"
    assert pattern["commonMistake"] == "topK out of range"
    assert pattern["correction"] == pattern["lesson"] == "`topK` must be at most 10."
    assert pattern["example"] == {"failed": {"topK": "<integer>"}, "successful": {"topK": 10}}
    assert (pattern["frequency"], pattern["agentsAffected"]) == (1, ["librarian"])


def test_four_wordings_of_one_cause_are_one_pattern(service: RunningService) -> None:
    """Which agents repaired alike, whatever the tool said."""
    tool = fresh("export")
    calls = []
    wordings = ("Bad request", "Something went wrong", "Invalid input", "Request failed")
    for number, wording in enumerate(wordings * 2):
        common = {"toolName": tool, "sessionId": f"{tool}/{number}", "agent": f"a{number % 3}"}
        sent = {"report": f"r{number}"}
        calls += [
            failure(**common, parameters={**sent, "region": "eu"}, error={"message": wording}),
            execution(**common, parameters={**sent, "region": "eu-west-1"}),
        ]
        for place, call in enumerate(calls[-2:]):
            call |= {"sequence": place}
    assert service.record(calls).json()["accepted"] == len(calls)
    service.learned()
    consolidated(service)
    [pattern] = asked(service, toolName=tool)
    assert (pattern["count"], pattern["mended"], len(pattern["wordings"])) == (8, 8, 4)
    assert "eu-west-1" in pattern["lesson"]
