"""The queue of recommendations over HTTP, on a true store: listing, states, what is refused."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from mongo.records import ToolKey
from tests.retrieval.recommendations.health_samples import Story
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import (
    RunningService,
    hashing_settings,
    on_loop,
    put_health,
    running,
)
from tests.service.test_bad_input import error_of


def learn(service: RunningService, tool: str, story: Story, server: str | None = None) -> ToolKey:
    """Let this be what was counted of a tool."""
    key = ToolKey("default", server, tool)
    put_health(service, {key: story.known})
    return key


def story() -> Story:
    """Nothing has happened yet."""
    return Story(now=datetime.now(UTC))


def failing(times: int = 8, days_ago: float = 1.0) -> Story:
    """A tool whose implementation fails."""
    told = story().successes(10, days_ago)
    for _ in range(times):
        told.own_failure(days_ago=days_ago)
    return told


def listed(service: RunningService, **query: Any) -> list[dict[str, Any]]:
    """GET /recommendations."""
    answer = service.client.get("/recommendations", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["recommendations"]
    return found


def put(service: RunningService, recommendation_id: str, **body: Any) -> httpx2.Response:
    """PUT /recommendations/{id}."""
    return service.client.put(f"/recommendations/{recommendation_id}", json=body)


@pytest.fixture
def repair(service: RunningService) -> dict[str, Any]:
    """The repair of a new tool that fails."""
    tool = fresh("reader")
    learn(service, tool, failing())
    [found] = listed(service, toolId=tool)
    return found


def test_it_is_worked_off_as_a_queue(service: RunningService, repair: dict[str, Any]) -> None:
    """Open, taken, done: each with who, why and when; the open and the taken ones are listed."""
    tool = repair["tool"]["toolName"]
    assert (repair["kind"], repair["state"], repair["stateChangedAt"]) == ("repair", "open", None)
    taken = put(service, repair["recommendationId"], state="taken", changedBy="eve").json()
    assert (taken["state"], taken["stateChangedBy"]) == ("taken", "eve")
    assert [each["state"] for each in listed(service, toolId=tool)] == ["taken"]
    done = put(service, repair["recommendationId"], state="done", reason="fixed in 1.2").json()
    assert (done["state"], done["stateReason"]) == ("done", "fixed in 1.2")
    assert listed(service, toolId=tool) == []
    [kept] = listed(service, toolId=tool, state="all")
    assert {**kept, "priority": done["priority"]} == {**done, "evidence": kept["evidence"]}
    assert listed(service, toolId=tool, state="open") == []
    put(service, repair["recommendationId"], state="open")
    assert [each["state"] for each in listed(service, toolId=tool)] == ["open"]


def test_it_is_found_by_id_and_by_name(service: RunningService) -> None:
    """A registered tool by its id; another by the name of its calls; no third one."""
    tool = fresh("reader")
    learn(service, tool, failing())
    assert service.client.put(f"/tools/{tool}-id", json={"name": tool}).status_code == 200
    for name in (tool, f"{tool}-id"):
        [found] = listed(service, toolId=name)
        assert found["tool"] == {"toolId": f"{tool}-id", "serverName": None, "toolName": tool}
    elsewhere = fresh("lister")
    learn(service, elsewhere, failing(), server="web")
    for name in (elsewhere, f"web/{elsewhere}"):
        assert [each["tool"]["serverName"] for each in listed(service, toolId=name)] == ["web"]
    answer = service.client.get("/recommendations", params={"toolId": f"{tool}-ix"})
    assert f"{tool}-id" in error_of(answer, 404, "not_found")


def test_a_dismissal_needs_a_reason(service: RunningService, repair: dict[str, Any]) -> None:
    """It stays dismissed, and its reason with it."""
    for body in ({}, {"reason": None}, {"reason": "  "}):
        answer = put(service, repair["recommendationId"], state="dismissed", **body)
        assert "say in `reason` why" in error_of(answer, 422, "invalid_request")
    answer = put(service, repair["recommendationId"], state="dismissed", reason="it is a mock")
    assert answer.status_code == 200
    tool = repair["tool"]["toolName"]
    learn(service, tool, failing(60, days_ago=0))
    [kept] = listed(service, toolId=tool, state="dismissed")
    assert (kept["stateReason"], kept["reopened"]) == ("it is a mock", False)
    assert listed(service, toolId=tool) == []


def test_unknown_ids_and_wrong_bodies_are_refused(
    service: RunningService, repair: dict[str, Any]
) -> None:
    """With the cure."""
    answer = put(service, str(uuid4()), state="taken")
    assert "GET /recommendations?state=all lists all" in error_of(answer, 404, "not_found")
    error_of(put(service, "7", state="taken"), 422, "invalid_request")
    assert listed(service, toolId=repair["tool"]["toolName"])[0]["state"] == "open"


def test_what_was_touched_outlives_its_evidence_and_a_restart(tmp_path: Path) -> None:
    """From its snapshot; one that nobody touched is gone with its evidence."""
    settings = hashing_settings(tmp_path)
    with running(settings) as service:
        for tool in ("touched", "untouched"):
            learn(service, tool, failing())
        [found] = listed(service, toolId="touched")
        put(service, found["recommendationId"], state="done")
    with running(settings) as service:
        for tool in ("touched", "untouched"):
            learn(service, tool, story().successes(100))
        [kept] = listed(service, state="all")
        assert (kept["recommendationId"], kept["state"]) == (found["recommendationId"], "done")
        assert kept["message"] == found["message"]
        again = put(service, found["recommendationId"], state="dismissed", reason="not ours")
        assert again.status_code == 200
        assert put(service, found["recommendationId"], state="open").status_code == 200
        assert listed(service, state="all") == []


def test_of_two_changes_at_once_both_are_answered_and_one_holds(
    service: RunningService, repair: dict[str, Any]
) -> None:
    """Never a mixture of the two."""
    known = repair["recommendationId"]
    bodies = [
        {"state": "done", "reason": "by eve", "changed_by": "eve"},
        {"state": "dismissed", "reason": "by ada", "changed_by": "ada"},
    ] * 6
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda body: put(service, known, **body), bodies))
    assert {each.status_code for each in answers} == {200}
    [held] = listed(service, toolId=repair["tool"]["toolName"], state="all")
    assert (held["state"], held["stateReason"], held["stateChangedBy"]) in {
        ("done", "by eve", "eve"), ("dismissed", "by ada", "ada"),
    }  # fmt: skip


def test_nothing_is_changed_by_a_recommendation(own_fitness: Fitness) -> None:
    """Tools, promotions and health are the same after all were asked for and acted on."""
    service = own_fitness.service
    own_fitness.put("reader")
    own_fitness.promote("reader")
    told = failing()
    for _ in range(8):
        told.refuses(["transport", "extraction"], split=["fetcher", "lister"])
        told.correction()
    own_fitness.learned()
    key = learn(service, "reader", told)

    def everything() -> tuple[Any, ...]:
        paths = ("/tools", "/promotions", "/namespaces", "/namespaces/reader/promotion/history")
        answers = [service.client.get(path).text for path in paths]
        return (*answers, on_loop(service, service.context.memory.read_health([key])))

    before = everything()
    found = listed(service)
    assert {each["kind"] for each in found} == {"repair", "tighten_contract", "split"}
    assert on_loop(service, service.context.store.events.read_state("default", "review")) == []
    for each in found:
        put(service, each["recommendationId"], state="done")
    assert everything() == before
