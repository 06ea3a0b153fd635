"""What executions leave in the profile of their tool."""

from typing import Any

from aftercall.models import ExecutionError
from ingest.learner import learn_failure, learn_success
from retrieval.knowledge.profile import ToolProfile
from retrieval.knowledge.rules import ToolKnowledge
from retrieval.reading.reader import read_error
from tests.retrieval.cases import an_execution


def profile_after(*fields: dict[str, Any]) -> ToolProfile:
    """The profile of a tool after such executions."""
    knowledge = ToolKnowledge()
    for each in fields:
        execution = an_execution(**each)
        if execution.error is None:
            learn_success(knowledge, execution, None)
        else:
            reading = read_error(execution.error, execution.parameters)
            learn_failure(knowledge, execution, reading, None)
    profile = knowledge.profile(None)
    assert profile is not None
    return profile


def failure(message: str, **fields: Any) -> dict[str, Any]:
    """The fields of a failure."""
    return {"outcome": "failure", "error": ExecutionError(message=message)} | fields


def test_agents_and_times_are_those_of_the_executions() -> None:
    """Two sessions of one agent are not enough where another uses the tool; clocks are theirs."""
    call = {"parameters": {"city": "Rome"}, "timestamp": "2026-02-20T14:30:00.5Z"}
    ada = [call | {"session_id": f"s-{number}"} for number in range(5)]
    bob = {"agent": "bob", "parameters": {"query": "x"}, "session_id": "b-1"}
    assert profile_after(*ada).common_values("city")
    profile = profile_after(*ada, bob)
    assert profile.common_values("city") == []
    assert profile.parameters["city"].last_seen == 1_771_597_800_500


def test_the_error_says_which_value_was_refused() -> None:
    """And so the boundary can be read from what failed."""
    profile = profile_after(
        {"parameters": {"query": "x", "limit": 50}},
        failure("limit must be <= 50, got 80", parameters={"query": "x", "limit": 80}),
    )
    assert profile.parameters["limit"].boundary() == (None, 50, 50, 80)
    assert not profile.parameters["query"].is_refused("x")


def test_a_time_out_refuses_nothing() -> None:
    """Also when its text holds the value."""
    profile = profile_after(
        failure("Timed out after 80 seconds", parameters={"limit": 80}),
    )
    assert not profile.parameters["limit"].is_refused(80)
    assert profile.failed_calls == {}
