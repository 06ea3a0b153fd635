"""Statistics of failures: answers, repairs, patterns and confidence are those of what happened."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall.models import (
    AnswerCounts,
    ConfidenceStatistics,
    FixFirst,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
    SuggestResponse,
)
from service.nightly import run_nightly
from service.settings import Settings
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    running,
)
from tests.service.statistics.asking import asked, counted
from tests.service.test_boundaries import a_referral

SECRET = "AKIAIOSFODNN7EXAMPLE"  # noqa: S105  # it only looks like one


def ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def suggested(service: RunningService, **fields: Any) -> SuggestResponse:
    """What is answered about a failed call."""
    call = failure(**{"timestamp": ago(), **fields})
    question = {"execution": {key: call[key] for key in call if key != "executionId"}}
    response = service.client.post("/suggest", json=question)
    assert response.status_code == 200, response.text
    return SuggestResponse.model_validate_json(response.content)


def consolidated(settings: Settings, service: RunningService) -> None:
    """Run the nightly ingest beside the service."""
    service.learned()
    report = asyncio.run(run_nightly(settings, lambda _: None, lambda *_: None))
    assert [each.problem for each in report.steps] == [None] * len(report.steps)


# Answers


def test_answers_are_counted_by_what_was_answered_and_survive_a_restart(tmp_path: Path) -> None:
    """All of them at once, also those that came over MCP, and again after a restart."""
    settings = hashing_settings(tmp_path)
    strange = {"message": "qwzx", "type": "E"}
    with running(settings) as service:
        answers = [suggested(service) for _ in range(3)]
        answers.append(suggested(service, error=strange, toolName="odd", parameters={}))
        over_mcp(service)
        found = eventually(lambda: counted_answers(service, len(answers) + 1))
    sure = [each for each in answers if each.suggestions and each.suggestions[0].confidence > 0.8]
    assert found.abstained == 1 + sum(each.abstained for each in answers)
    assert found.confident == len(sure)
    by_action = {each.action: each.answers for each in found.by_action}
    best = [each.suggestions[0].action for each in answers if each.suggestions]
    assert by_action == {action: best.count(action) for action in set(best)}
    assert sum(each.answers for each in found.abstentions) == found.abstained
    with running(settings) as service:
        assert asked(service, "reflection", ReflectionStatistics).answers == found


def counted_answers(service: RunningService, asked_for: int) -> AnswerCounts | None:
    """What is counted of answers, once that is of so many."""
    found = asked(service, "reflection", ReflectionStatistics).answers
    return found if found.asked == asked_for else None


def over_mcp(service: RunningService) -> None:
    """Ask about something unheard-of as an MCP client does."""
    call = {
        "name": "suggest_fix",
        "arguments": {"toolName": "odd", "parameters": {}, "error": {"message": "qwzx"}},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"accept": "application/json, text/event-stream"}
    response = service.client.post("/mcp", json=message, headers=accept)
    assert response.status_code == 200, response.text
    assert "qwzx" not in response.text or "error" not in response.json(), response.text


# Repairs


def test_times_to_repair_are_those_between_the_calls(tmp_path: Path) -> None:
    """Of repairs that followed a suggestion, and of the others; in the window of the success."""
    with running(hashing_settings(tmp_path)) as service:
        records = []
        followed = [suggested(service).suggestions[0].suggestion_id for _ in range(2)]
        for waited_s, suggestion_id in ((2, followed[0]), (4, followed[1]), (60, None)):
            session = fresh("session")
            failed = failure(sessionId=session, timestamp=ago(minutes=30))
            at = datetime.fromisoformat(failed["timestamp"]) + timedelta(seconds=waited_s)
            records += [
                failed,
                execution(
                    sessionId=session, timestamp=at.isoformat(), attempt=2,
                    repairOf=failed["executionId"], suggestionId=suggestion_id,
                    parameters={**failed["parameters"], "topK": 10},
                ),
            ]  # fmt: skip
        assert service.record(records).json()["accepted"] == 6
        service.learned()
        counted(service, 6)

        def found() -> ReflectionStatistics | None:
            told = asked(service, "reflection", ReflectionStatistics)
            return told if told.without_suggestion.repairs else None

        told = eventually(found)
    assert (told.with_suggestion.repairs, told.with_suggestion.p50_ms) == (2, 3000)
    assert (told.without_suggestion.repairs, told.without_suggestion.p95_ms) == (1, 60_000)
    assert (told.first_attempts.failures, told.tasks.failures, told.tasks.successes) == (3, 0, 3)


# Confidence


def test_promises_are_held_against_outcomes(tmp_path: Path) -> None:
    """What was told, in its tenth, with the share of successes; both ways to say an outcome."""
    with running(hashing_settings(tmp_path)) as service:
        outcomes = ["success", "success", "failure", "success"]
        told = [suggested(service).suggestions[0] for _ in outcomes]
        for number, (each, outcome) in enumerate(zip(told, outcomes, strict=True)):
            if number == 0:
                service.record(execution(suggestionId=each.suggestion_id, timestamp=ago(hours=1)))
                continue
            body = {"outcome": outcome, "executionId": str(uuid4())}
            path = f"/suggestions/{each.suggestion_id}/outcome"
            assert service.client.post(path, json=body).status_code == 204
        service.learned()

        def found() -> ConfidenceStatistics | None:
            said = asked(service, "confidence", ConfidenceStatistics)
            return said if said.judged == len(outcomes) else None

        said = eventually(found)
    [confidence] = {each.confidence for each in told}
    [inside] = [each for each in said.bins if each.judged]
    assert inside.at_least <= confidence <= inside.below
    assert (inside.judged, inside.succeeded) == (4, 0.75)
    assert said.expected_calibration_error == pytest.approx(abs(confidence - 0.75), abs=1e-5)
    brier = (3 * (1 - confidence) ** 2 + confidence**2) / 4
    assert said.brier == pytest.approx(brier, abs=1e-5)


# Patterns


def test_failures_are_told_by_pattern_once_there_are_patterns(tmp_path: Path) -> None:
    """Before the first night all are others; then each is of one, and later ones are live."""
    settings = hashing_settings(tmp_path)
    slow = {"message": "timed out after 30 s", "type": "Timeout"}
    old = {"message": "no such page: 17", "type": "NotFound"}
    with running(settings) as service:
        service.record([failure(timestamp=ago(minutes=each)) for each in range(5)])
        service.record([failure(error=slow, timestamp=ago(minutes=each)) for each in range(3)])
        service.record([failure(error=old, timestamp=ago(days=3)) for _ in range(4)])
        counted(service, 12)
        before = asked(service, "patterns", PatternStatistics)
        assert (before.patterns, before.other_failures) == ([], 8)
        consolidated(settings, service)
        day = asked(service, "patterns", PatternStatistics)
        assert [each.failures for each in day.patterns] == [5, 3]
        assert [each.before for each in day.patterns] == [0, 0]
        assert day.other_failures == 0
        week = asked(service, "patterns", PatternStatistics, window="7d", limit=2)
        assert [each.failures for each in week.patterns] == [5, 4]
        assert week.other_failures == 3
        [of_old] = [each.pattern for each in week.patterns if each.pattern.category == "not_found"]
        history = asked(service, f"patterns/{of_old.pattern_id}", PatternHistory, window="30d")
        assert history.pattern == of_old
        assert [each.failures for each in history.points[-4:]] == [4, 0, 0, 0]
        # What arrives now belongs to its pattern at once; what says something new does not yet.
        new = {"message": "quota exceeded for project", "type": "Quota"}
        service.record([failure(error=slow, timestamp=ago(minutes=1)) for _ in range(4)])
        service.record(failure(error=new, timestamp=ago(minutes=1)))
        counted(service, 17)
        now = asked(service, "patterns", PatternStatistics)
        assert sorted(each.failures for each in now.patterns) == [5, 7]
        assert now.other_failures == 1


def test_what_costs_most_comes_first_until_it_is_resolved_and_again_when_it_returns(
    tmp_path: Path,
) -> None:
    """With the versions of the tool; it says what is left out, also after learning all anew."""
    settings = hashing_settings(tmp_path)
    slow = {"message": "timed out after 30 s", "type": "Timeout"}
    with running(settings) as service:
        service.record([failure(timestamp=ago(minutes=each)) for each in range(5)])
        again = {"error": slow, "toolVersion": "1.0"}
        service.record([failure(timestamp=ago(hours=1 + each), **again) for each in range(8)])
        counted(service, 13)
        consolidated(settings, service)
        first, second = asked(service, "fix-first", FixFirst).patterns
        assert (first.failures, first.unmended, first.pattern.title) == (
            8, 8, f"{first.pattern.tool.tool_name}: takes too long",
        )  # fmt: skip
        assert (second.failures, second.pattern.state) == (5, "open")
        assert first.cost > second.cost > 0
        path = f"/patterns/{first.pattern.pattern_id}"
        body = {"state": "resolved", "reason": f"by {SECRET}", "changedBy": "eve"}
        answer = service.client.put(path, json=body)
        assert answer.json()["state"] == "resolved"
        assert SECRET not in answer.text
        left = asked(service, "fix-first", FixFirst)
        assert [each.pattern for each in left.patterns] == [second.pattern]
        assert (left.ignored, left.resolved) == (0, 1)
        service.record(failure(timestamp=ago(), error=slow, toolVersion="1.1"))
        counted(service, 14)
        [back] = [each.pattern for each in asked(service, "fix-first", FixFirst).patterns][:1]
        assert back.review is not None
        review = back.review
        assert (review.reopened, review.version, review.version_now) == (True, "1.0", "1.1")
        assert service.client.put(path, json={"state": "ignored"}).json()["state"] == "ignored"
        assert asked(service, "fix-first", FixFirst).ignored == 1
        assert service.client.put("/patterns/none", json=body).status_code == 404


# Tools


def test_quality_and_cohesion_are_those_of_their_own_endpoints(service: RunningService) -> None:
    """Fitness says how good a tool is, health how far its boundary failures stay on one axis."""
    fitness = Fitness(service)
    tool, plain = fresh("reader"), fresh("plain")
    fitness.put(tool)
    for number in range(4):
        fitness.record(tool, ok=number % 2 == 0)
        fitness.record(plain, ok=number % 2 == 0)
    fitness.mark(tool, "high")
    for axis in ("tables", "tables", "tables", "transport", "transport"):
        service.record(a_referral(tool, axis))
    service.learned()
    expected = fitness.best(tool)["factors"]["quality"]
    health = service.client.get(f"/tools/{tool}/health").json()["cohesion"]

    def found() -> dict[str, dict[str, Any]]:
        listed = service.client.get("/stats/tools").json()["tools"]
        by_name = {each["tool"]["toolName"]: each for each in listed}
        return by_name if {tool, plain} <= by_name.keys() else {}

    told = eventually(found)
    assert told[tool]["quality"] == pytest.approx(expected, abs=1e-6)
    assert 0 < expected < 0.95
    assert told[tool]["cohesion"] == pytest.approx(health["score"], abs=1e-3)
    assert told[tool]["cohesionWarning"] == health["warning"]
    assert 0 < told[plain]["quality"] < 1
    assert told[plain]["cohesion"] is None


# Secrets
