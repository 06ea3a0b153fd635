"""The contract over HTTP, on real stores: record, read back, ask, report, register."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from tests.service.running_service import (
    DAY,
    RunningService,
    execution,
    failure,
    hashing_settings,
    running,
)


def test_an_execution_is_read_back_as_it_was_sent(service: RunningService) -> None:
    """With every field, in camelCase, times in UTC."""
    sent = failure(
        timestamp=f"{DAY}T15:30:00.250+01:00", context="look it up", durationMs=12.5,
        toolVersion="2", sessionId="s-1", sequence=3, attempt=2, repairOf=str(uuid4()),
        suggestionId=str(uuid4()), inputSchema={"type": "object"},
        result={"ünïcode": ["✓", 1.5, None, True, {"a": []}]}, resultStatus="partial",
    )  # fmt: skip
    service.record(sent)
    stored = service.client.get(f"/executions/{sent['executionId']}").json()
    assert stored.pop("timestamp") == f"{DAY}T14:30:00.250000Z"
    sent.pop("timestamp")
    error = {"code": None, "stack": None, "details": {}} | sent.pop("error")
    assert stored == sent | {"error": error}


def test_both_cases_of_names_are_taken(service: RunningService) -> None:
    """Python names in snake_case are accepted on input."""
    record = execution()
    record["tool_name"] = record.pop("toolName")
    record["execution_id"] = record.pop("executionId")
    assert service.record(record).json()["accepted"] == 1
    stored = service.client.get(f"/executions/{record['execution_id']}").json()
    assert stored["toolName"] == "rag_query"


def test_configured_names_and_allowlists_are_masked_too(tmp_path: Any) -> None:
    """The privacy settings reach the intake."""
    settings = hashing_settings(
        tmp_path, privacy={"secret_names": ["badge"], "allowlists": {"mail": ["subject"]}}
    )
    with running(settings) as service:
        one = execution(parameters={"badge": "B-12345", "query": "x"})
        two = execution(toolName="mail", parameters={"subject": "hello", "body": "dear all"})
        service.record([one, two])
        first = service.client.get(f"/executions/{one['executionId']}").json()["parameters"]
        second = service.client.get(f"/executions/{two['executionId']}").json()["parameters"]
        assert first["badge"].startswith("[redacted:")
        assert first["query"] == "x"
        assert second["subject"] == "hello"
        assert second["body"].startswith("[hashed:")


def test_status_counts_what_there_is_and_says_what_calls_leave_out(
    own_service: RunningService,
) -> None:
    """It names the parts that keep it all, and tells that nobody said what a call was for."""
    service = own_service
    service.record([execution(), execution(context=None), failure()])
    service.client.put("/tools/t", json={"name": "rag_query"})
    service.learned()
    status = service.client.get("/status").json()
    assert status["executions"] == 3
    assert status["tools"] == 1
    assert status["documents"] >= 1
    assert status["seedPatterns"] > 0
    assert status["ready"] is True
    assert (status["embedder"], status["logStore"]) == ("hashing", "sqlite")
    assert status["vectorIndex"] == "qdrant-edge"
    assert "do not say what for" in " ".join(status["missing"])


def test_a_failed_call_is_asked_about_in_short(service: RunningService) -> None:
    """Its fields at the top, the error a text; answered as in full, and refused as clearly."""
    call = {"toolName": "half", "parameters": {"n": 50}, "agent": "ann"}
    said = "Invalid parameter: n must be <= 10"
    full = {"execution": {**call, "error": {"message": said}}}
    answers = [
        service.client.post("/suggest", json=each).json()["suggestions"][0]
        for each in (full, {**call, "error": said}, {**call, "error": {"message": said}})
    ]
    assert [each["correctedParameters"] for each in answers] == [{"n": 10}] * 3
    assert len({each["confidence"] for each in answers}) == 1
    refused = service.client.post("/suggest", json={"toolName": "half", "error": said})
    assert refused.status_code == 422
    assert "parameters" in refused.json()["error"]["message"]


@pytest.mark.parametrize("tool_id", ["git.git_log", "git/log", "a b", "..", "100%", "ünï"])
def test_tools_are_put_read_listed_and_deleted(service: RunningService, tool_id: str) -> None:
    """Under any id, also one that holds what a URL has to escape."""
    path = "/tools/" + quote(tool_id, safe="").replace(".", "%2E")
    spec = {"name": "git_log", "serverName": "git", "inputSchema": {"type": "object"}}
    put = service.client.put(path, json=spec)
    assert put.status_code == 200, put.text
    tool = put.json()
    assert tool["toolId"] == tool_id
    assert len(tool["schemaHash"]) == 64
    assert service.client.get(path).json() == tool
    assert tool in service.client.get("/tools").json()["tools"]
    assert service.client.delete(path).status_code == 204
    assert service.client.delete(path).status_code == 404
    assert service.client.get(path).status_code == 404


@pytest.mark.parametrize("tool_id", ["x/failures", "a/b/health"])
def test_ids_that_would_hide_a_path_of_the_contract_are_refused(
    service: RunningService, tool_id: str
) -> None:
    """`POST /tools/{toolId}/failures` and `GET /tools/{toolId}/health` are not ambiguous."""
    response = service.client.put(f"/tools/{quote(tool_id, safe='')}", json={"name": "t"})
    assert response.status_code in (404, 405)
    for neighbour in ("health", "x-failures"):
        assert service.client.put(f"/tools/{neighbour}", json={"name": "t"}).status_code == 200


def test_a_registered_schema_counts_at_once(service: RunningService) -> None:
    """Putting a tool changes the next suggestion, whatever was cached before."""
    tool = f"schema_{uuid4().hex[:8]}"
    question = {
        "execution": {
            "agent": "a",
            "toolName": tool,
            "parameters": {"qurey": "x"},
            "error": {"message": "'query' is a required property"},
        }
    }
    service.client.post("/suggest", json=question)  # what is not known is cached too
    schema = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    service.client.put(f"/tools/{tool}", json={"name": tool, "inputSchema": schema})
    answer = service.client.post("/suggest", json=question).json()
    assert answer["suggestions"][0]["correctedParameters"] == {"query": "x"}
    service.client.delete(f"/tools/{tool}")


def test_a_request_id_comes_back(service: RunningService) -> None:
    """The caller's own when it is harmless, a new one otherwise."""
    given = service.client.get("/status", headers={"x-request-id": "trace-1"})
    assert given.headers["x-request-id"] == "trace-1"
    made = service.client.get("/status", headers={"x-request-id": "bad id {}"})
    assert len(made.headers["x-request-id"]) == 32
