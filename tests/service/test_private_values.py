"""A value that one agent alone sent comes out to another by none of the doors that sum up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.service.running_service import (
    RunningService,
    execution,
    failure,
    hashing_settings,
    running,
)

DOORS = (
    "/known-tools?maxTokens=100000",
    "/known-tools?maxTokens=100000&format=markdown",
    "/patterns",
    "/recommendations?state=all",
    "/boundaries",
    "/stats/totals",
    "/stats/usage",
    "/stats/tools",
    "/stats/patterns",
    "/stats/reflection",
    "/metrics",
)
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


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("private")
    with running(hashing_settings(folder)) as made:
        yield made


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
