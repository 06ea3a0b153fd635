"""Confidence follows what became of suggestions, by itself and in its own workspace only."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall.models import SuggestRequest
from retrieval.knowledge.memory import JudgedSuggestion
from service.nightly import run_nightly
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    hashing_settings,
    on_loop,
    running,
)

JUDGED = [
    JudgedSuggestion(outcome="failure", confidence=0.9, estimate=0.9, agent=f"agent-{number % 9}")
    for number in range(90)
]


def question(tool: str) -> dict[str, Any]:
    """A value that the error itself puts right, so that no history is needed."""
    return {
        "execution": {
            "agent": "newcomer",
            "toolName": tool,
            "parameters": {"query": "x", "topK": 50},
            "error": {"message": "Invalid parameter: topK must be <= 10"},
        },
        "annotations": {"readOnlyHint": True},
    }


def best(service: RunningService, tool: str) -> dict[str, Any]:
    """The best suggestion for the question about a tool."""
    suggestion: dict[str, Any] = service.client.post("/suggest", json=question(tool)).json()[
        "suggestions"
    ][0]
    return suggestion


def elsewhere(service: RunningService, tool: str) -> float:
    """The confidence that another workspace gets for the same question."""
    asked = SuggestRequest.model_validate(question(tool))
    answer = on_loop(service, service.context.suggester.suggest("elsewhere", asked))
    return answer.suggestions[0].confidence


def follow(service: RunningService, outcome: str, times: int) -> None:
    """Follow suggestions; half the outcomes are reported, half come with executions."""
    for number in range(times):
        suggestion = best(service, f"followed_{uuid4().hex[:8]}")
        if number % 2:
            report = {"outcome": outcome, "executionId": str(uuid4())}
            path = f"/suggestions/{suggestion['suggestionId']}/outcome"
            assert service.client.post(path, json=report).status_code == 204
        else:
            failed = {"error": {"message": "no"}} if outcome == "failure" else {}
            service.record(
                execution(
                    outcome=outcome, suggestionId=suggestion["suggestionId"],
                    agent=f"agent-{number}", **failed,
                )
            )  # fmt: skip
    service.learned()


def recalibrated(service: RunningService) -> int:
    """In how many workspaces the nightly run changes the calibration."""
    run = run_nightly(service.context.settings, lambda _: None, lambda *_: None)
    [step] = [each for each in asyncio.run(run).steps if each.name == "calibration"]
    assert step.problem is None
    return step.counts["workspaces"]


@pytest.mark.parametrize(("outcome", "least", "most"), [("failure", 0, 0.8), ("success", 0.95, 1)])
def test_outcomes_move_the_confidence_of_their_workspace_and_of_no_other(
    tmp_path: Path, outcome: str, least: float, most: float
) -> None:
    """Not sure where suggestions failed, sure where they held, for tools not asked about yet.

    Of the calls that succeeded 96 of 100 count as right, so confidences above that fall to it.
    """
    with running(hashing_settings(tmp_path)) as service:
        follow(service, outcome, 60)
        before, other = best(service, "unseen"), elsewhere(service, "unseen")
        status = service.client.get("/status").json()["calibration"]
        assert status["source"] == "shipped"
        assert (status["outcomes"], status["shift"], status["slope"]) == (0, 0, 1)
        assert recalibrated(service) == 1
        eventually(lambda: best(service, "unseen")["confidence"] != before["confidence"])
        after = best(service, "unseen")
        assert least <= after["confidence"] <= most
        assert elsewhere(service, "unseen") == other
        status = service.client.get("/status").json()["calibration"]
        assert (status["source"], status["outcomes"]) == ("own", 60)
        assert (status["shift"], status["slope"]) != (0, 1)
        assert datetime.fromisoformat(status["fittedAt"]) <= datetime.now(UTC)
        assert recalibrated(service) == 0


def test_a_confidence_comes_with_its_interval(service: RunningService) -> None:
    """Around it, of probabilities, and not of a single point; none where nothing is calibrated."""
    suggestion = best(service, "interval")
    low, high = suggestion["confidenceInterval"]
    assert 0 <= low < suggestion["confidence"] < high <= 1
    asked = question("interval")
    asked["execution"] |= {"error": {"message": "503 Service Unavailable", "code": 503}}
    waits = service.client.post("/suggest", json=asked).json()["suggestions"]
    assert [each["action"] for each in waits] == ["retry_unchanged"]
    assert [each["confidenceInterval"] for each in waits] == [None]
