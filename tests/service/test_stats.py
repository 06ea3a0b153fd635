"""`GET /stats/usage` over HTTP: windows up to the latest nightly run."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aftercall.wire import ToolName, ToolUsage, Usage, UsageWindow
from retrieval.usage.windows import UsageWindows, usage_fact
from service.http import nightly_examples as examples
from tests.service.running_service import RunningService, hashing_settings, on_loop, running
from tests.service.test_bad_input import error_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def put(service: RunningService, window: UsageWindow, **fields: Any) -> None:
    """A window as a nightly run leaves it."""
    usage = Usage(window=window, computed_at=NOON, since=NOON, until=NOON, **fields)
    text = UsageWindows(windows={window: usage}).model_dump_json()
    on_loop(service, service.services.store.put_fact(usage_fact("default"), text))


def asked(service: RunningService, **query: Any) -> dict[str, Any]:
    response = service.client.get("/stats/usage", params=query)
    assert response.status_code == 200, response.text
    Usage.model_validate_json(response.content)
    found: dict[str, Any] = response.json()
    return found


def test_the_example_is_what_is_answered() -> None:
    """OpenAPI shows usage that the contract takes."""
    Usage.model_validate(examples.USAGE)


def test_before_the_first_night_there_is_none(tmp_path: Path) -> None:
    """And the answer says so."""
    with running(hashing_settings(tmp_path)) as service:
        found = asked(service)
    assert (found["window"], found["computedAt"], found["byTool"]) == ("24h", None, [])


def test_a_window_is_told_with_the_ids_of_registered_tools(service: RunningService) -> None:
    """Of other windows, none is told as this one."""
    spec = {"name": "counted", "description": "counts"}
    assert service.client.put("/tools/the-counted", json=spec).status_code in (200, 201)
    tool = ToolUsage(tool=ToolName(tool_name="counted"), successes=7, failures=2)
    put(service, "7d", by_tool=[tool])
    [told] = asked(service, window="7d")["byTool"]
    assert told["tool"] == {"toolId": "the-counted", "serverName": None, "toolName": "counted"}
    assert (told["successes"], told["failures"]) == (7, 2)
    assert asked(service, window="30d")["byTool"] == []


def test_what_the_limit_cuts_off_is_counted_with_the_others(service: RunningService) -> None:
    """Sums stay whole."""
    tools = [
        ToolUsage(tool=ToolName(tool_name=f"t{number}"), successes=10 - number)
        for number in range(3)
    ]
    put(service, "24h", by_tool=tools)
    found = asked(service, limit=1)
    assert [each["tool"]["toolName"] for each in found["byTool"]] == ["t0"]
    assert found["otherTools"] == {"successes": 17, "failures": 0}


@pytest.mark.parametrize("query", ["window=1h", "window=", "limit=0", "limit=501", "tool=x"])
def test_other_questions_are_refused(service: RunningService, query: str) -> None:
    error_of(service.client.get(f"/stats/usage?{query}"), 422, "invalid_request")
