"""`GET /tools/{toolId}/health` over HTTP, of a running service."""

from datetime import UTC, datetime
from typing import Any

import pytest

from aftercall.models import ToolHealth
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import execution
from tests.service.test_bad_input import error_of


def health_of(fitness: Fitness, name: str) -> dict[str, Any]:
    """The health of a tool, once all is learned."""
    fitness.learned()
    response = fitness.client.get(f"/tools/{name}/health")
    assert response.status_code == 200, response.text
    ToolHealth.model_validate_json(response.content)
    found: dict[str, Any] = response.json()
    return found


def a_call(**fields: Any) -> dict[str, Any]:
    """A call of now, for old failures weigh nothing."""
    return execution(timestamp=datetime.now(UTC).isoformat(), **fields)


def test_a_tool_need_not_be_registered(fitness: Fitness) -> None:
    """Its name alone will do while one server has it; else the server must be named."""
    name = fresh("lookup")
    fitness.service.record(a_call(toolName=name, serverName="one"))
    assert health_of(fitness, name)["tool"]["serverName"] == "one"
    fitness.service.record(a_call(toolName=name, serverName="two"))
    fitness.learned()
    response = fitness.client.get(f"/tools/{name}/health")
    assert response.status_code == 404
    assert response.json()["error"]["details"]["nearest"] == [f"one/{name}", f"two/{name}"]
    assert health_of(fitness, f"two/{name}")["tool"]["serverName"] == "two"


def test_a_registered_tool_that_was_never_called_is_healthy(fitness: Fitness) -> None:
    """Its health is that of no calls, under an id with slashes too."""
    name = fresh("acme/translator")
    fitness.put(name)
    health = health_of(fitness, name)
    assert (health["successes"]["count"], health["utility"]["score"]) == (0, 1.0)


@pytest.mark.parametrize("unknown", ["nothing-like-it-zzz", "a/b/c", "%F0%9F%98%80", "x" * 256])
def test_an_unknown_tool_is_told_with_the_cure(fitness: Fitness, unknown: str) -> None:
    """404, with the nearest names or where all are listed."""
    response = fitness.client.get(f"/tools/{unknown}/health")
    assert "there is no tool" in error_of(response, 404, "not_found")
