"""A value that one agent alone sent comes out to another by no door that is not for readers.

Who may read (the scope `read`, the owner) sees what the workspace recorded; who may only ask and
record sees of others what several sent.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.keys_helper import client_of, new_key
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
)

DOORS = (
    "/known-tools?maxTokens=100000", "/known-tools?maxTokens=100000&format=markdown", "/patterns",
    "/recommendations?state=all", "/boundaries", "/stats/totals", "/stats/usage", "/stats/tools",
    "/stats/patterns", "/stats/reflection", "/stats/criteria", "/metrics",
)  # fmt: skip
VALUES: dict[str, Any] = {
    "mail": "ann.zqx@acme-zqx.example",
    "customer": "cust-zqx-48213",
    "number": 48213077,
    "name": "Annzqx Mustermann",
    "path": "/home/annzqx/plans.txt",
    "words": "merge zqx secret project",
    "list": ["zqx-one", "zqx-two"],
    "object": {"id": "zqx-7"},
}  # fmt: skip
ERRORS = {
    "missing": ("'{name}' is a required property", True),
    "wrong": ("Invalid value for {name}: '{value}'", False),
    "not found": ("No item found with {name} {value}", False),
    "bare": ("Bad request", False),
}


def _marks(value: Any) -> list[str]:
    """What of a value may not come out."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [mark for item in items for mark in _marks(item)]
    return [str(value)]


def _history(value: Any, message: str, *, missing: bool) -> list[dict[str, Any]]:
    """One agent: in three sessions a failure, what mended it, and two further successes."""
    shown = {"serverName": "s", "toolName": "book", "agent": "owner"}
    calls = []
    for session in range(3):
        at = datetime.now(UTC) - timedelta(minutes=30 - 5 * session)
        of = shown | {"sessionId": f"owner-{session}", "context": f"book for {_marks(value)[0]}"}
        sent = {"mode": "fast"} if missing else {"mode": "fast", "target": value}
        error = {"type": "ValidationError"}
        error["message"] = message.format(name="target", value=_marks(value)[0])
        made = [failure(parameters=sent, error=error, **of)]
        made += [
            execution(parameters={"mode": "fast", "target": value}, result={"of": value}, **of)
            for _ in range(3)
        ]
        for number, call in enumerate(made):
            call["timestamp"] = (at + timedelta(seconds=number)).isoformat()
        calls += made
    return calls


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", VALUES)
def test_what_one_agent_sent_stays_its_own(service: RunningService, kind: str, error: str) -> None:
    """32 scenarios: eight kinds of values, four errors; the other agent asks of the same tool."""
    value, (message, missing) = VALUES[kind], ERRORS[error]
    tool = f"book_{kind}_{error.replace(' ', '_')}"
    calls = [call | {"toolName": tool} for call in _history(value, message, missing=missing)]
    assert service.record(calls).json()["accepted"] == len(calls)
    service.learned()
    stranger = {"agent": "other", "sessionId": f"other-{tool}", "serverName": "s", "toolName": tool}
    sent = {"mode": "fast"} if missing else {"mode": "fast", "target": "mine-1"}
    said = message.format(name="target", value="mine-1")
    asked = stranger | {
        "parameters": sent, "error": {"type": "ValidationError", "message": said},
        "context": "book it",
    }  # fmt: skip
    hints = {"readOnlyHint": True}
    answers = {"/suggest": service.client.post(
        "/suggest", json={"execution": asked, "limit": 5, "annotations": hints}
    )}  # fmt: skip
    call = stranger | {"parameters": sent, "context": "book it"}
    answers["/check"] = service.client.post("/check", json={"call": call, "annotations": hints})
    answers |= {door: service.client.get(door) for door in DOORS}
    for door, answer in answers.items():
        assert answer.status_code == 200, (door, answer.text)
        leaked = [mark for mark in _marks(value) if mark in answer.text]
        assert not leaked, (door, leaked, answer.text[:2000])


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service with two keys of one workspace that record and ask, and do not read."""
    with running(hashing_settings(tmp_path_factory.mktemp("team"))) as made:
        clients = [client_of(made, new_key(made, "w", ["record", "suggest"])) for _ in range(2)]
        with clients[0], clients[1], client_of(made, new_key(made, "w")) as admin:
            yield *clients, admin


_private = st.integers(10**9, 10**10).flatmap(
    lambda number: st.sampled_from(
        [f"zq{number}", number, [f"zq{number}"], {"id": f"zq{number}"}, f"zq{number}@acme.example",
         f"/home/zq{number}/a.txt", f"plan of zq{number}"]
    )
)  # fmt: skip
_said = st.sampled_from(
    ["Bad request", "{name} is not valid", "No item found with {name} {value}",
     "'{name}' is a required property", "{name} must be one of 'a', '{value}'",
     "call `open_{tool}` first, with {value}", "Rate limited for {value}"]
)  # fmt: skip


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_private_value_leaves_by_any_door(team: Any, data: st.DataObject) -> None:
    """For any calls, marks, corrections and tools of one key: every operation that another may ask.

    MCP's tools among them; of the doors for readers each is closed.
    """
    own, other, admin = team
    tool = f"send_{uuid4().hex}"
    values = data.draw(st.lists(_private, min_size=1, max_size=3))
    message = data.draw(_said).format(name="target", value=_marks(values[0])[0], tool=tool)
    of = {"serverName": "s", "toolName": tool, "agent": "ann", "context": f"for {values[0]}"}
    ids = []
    shape = data.draw(st.integers(0, 3))
    for number, value in enumerate(values * 2):
        of["sessionId"] = f"{tool}-{number}"
        sent = [{}, {"target": "x"}, {"aim": value}, {"target": value}][shape]
        error = {"type": "ValidationError", "message": message}
        first = execution(**of | {"toolName": f"open_{tool}"}, parameters={"target": value})
        last = execution(**of, parameters={"target": value}, result={"of": value})
        calls = [failure(**of, parameters=sent, error=error), first, last]
        for place, call in enumerate(calls):
            call |= {"sequence": place}
        ids += [calls[0]["executionId"]]
        assert own.post("/executions", json=calls).json()["accepted"] == 3
    words = _marks(values[0])[0]
    spec = {"name": tool, "serverName": "s", "namespace": tool}
    assert own.put(f"/tools/{tool}", json=spec).is_success
    mark = {"scenario": f"for {words}", "errorMessage": words, "severity": "high"}
    assert own.post(f"/tools/{tool}/failures", json=mark).is_success
    said = {"executionId": ids[0], "text": f"not {words}", "kind": "low_utility"}
    assert own.post("/corrections", json=said).is_success
    eventually(lambda: admin.get("/status").json()["pendingIndexing"] == 0)
    call = {**of, "agent": "bob", "sessionId": f"bob-{tool}", "context": "send it"}
    failed = call | {"parameters": {"target": "mine"}, "error": {"message": "Bad request"}}
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/suggest", {"execution": failed, "annotations": {"readOnlyHint": True}}),
        ("POST", "/suggest", {"execution": failed | {"error": {"message": "call it first"}}}),
        ("POST", "/check", {"call": call | {"parameters": {}}}),
        *(
            ("POST", "/similar", {"serverName": "s", "toolName": tool, **more})
            for more in ({}, {"agent": "bob"}, {"agent": "ann"}, {"outcome": "failure"})
        ),
        ("POST", "/tools/find", {"scenario": "send it"}),
        ("GET", f"/namespaces/{tool}/best?scenario=for%20it", None),
        *(("GET", door, None) for door in DOORS),
        *(
            ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                              "params": {"name": name, "arguments": arguments}})
            for name, arguments in (
                ("suggest_fix", {k: v for k, v in failed.items() if k != "sessionId"}),
                ("best_tool", {"namespace": tool, "scenario": "for it"}),
                ("known_tools", {"maxTokens": 20_000}),
                ("tool_health", {"tool": tool}),
            )
        ),
        *(
            ("GET", path, None)
            for path in (f"/executions/{ids[0]}", "/export", "/rules", "/tools", f"/tools/{tool}",
                         f"/tools/{tool}/failures", f"/tools/{tool}/health", "/corrections",
                         "/dashboard", f"/dashboard/tools/{tool}", "/audit")
        ),
    ]  # fmt: skip
    accept = {"accept": "application/json, text/event-stream"}
    answered = 0
    for method, path, body in asked:
        answer = other.request(method, path, json=body, headers=accept)
        answered += answer.is_success
        leaked = [m for value in values for m in _marks(value) if m in answer.text]
        assert not leaked, (method, path, body, leaked, answer.text[-1500:])
    assert answered >= 15
    for path in (f"/executions/{ids[0]}", f"/tools/{tool}/failures"):
        assert words in admin.get(path).text
