"""Failures of the moment, through the SDK and a true service with the product's defaults.

What only reads is called again once, after the wait; what writes never is: it is looked at first.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aftercall import AsyncClient, Recorder
from aftercall.json_values import JsonObject
from aftercall.models import ToolAnnotations, ToolSpec
from aftercall.reflection import ReflectedResult, ReflectionPolicy, call_with_reflection
from tests.service.running_service import RunningService

FAST = ReflectionPolicy(base_backoff_s=0, suggest_timeout_s=60)
TIMEOUT = "Request timed out; retry after 200 ms"
BUSY = "HTTP 503: Service Unavailable"
LIMITED = "429 Too Many Requests"


@dataclass
class Tool:
    """A tool that fails so often before it works."""

    error: str
    failures: int = 1
    sent: list[JsonObject] = field(default_factory=list)

    async def call(self, parameters: JsonObject) -> str:
        """The tool."""
        self.sent.append(parameters)
        if len(self.sent) <= self.failures:
            raise RuntimeError(self.error)
        return "done"


async def reflected(
    service: RunningService,
    folder: Path,
    name: str,
    tool: Tool,
    annotations: ToolAnnotations | None = None,
    parameters: JsonObject | None = None,
) -> ReflectedResult[str]:
    with Recorder(base_url=service.url, spool_dir=folder) as recorder:
        async with AsyncClient(service.url, timeout_s=60) as client:
            result = await call_with_reflection(
                tool.call, tool_name=name, parameters=parameters or {"id": 7}, agent="ada",
                server_name="calendar", client=client, recorder=recorder, policy=FAST,
                annotations=annotations,
            )  # fmt: skip
        await asyncio.to_thread(recorder.flush)
    return result


@pytest.mark.parametrize("error", [TIMEOUT, BUSY, LIMITED, "connect ECONNREFUSED 10.0.0.1:443"])
@pytest.mark.parametrize(
    ("name", "annotations"),
    [("list_events", None), ("events", ToolAnnotations(read_only_hint=True))],
)
async def test_what_reads_is_called_again_once_after_the_wait(
    own_service: RunningService,
    tmp_path: Path,
    error: str,
    name: str,
    annotations: ToolAnnotations | None,
) -> None:
    """Unchanged, however sure the advice is; both outcomes are recorded."""
    tool = Tool(error)
    result = await reflected(own_service, tmp_path, name, tool, annotations)
    assert result.repaired, result.note
    assert tool.sent == [{"id": 7}] * 2
    assert result.time_to_repair_ms is not None
    assert result.time_to_repair_ms >= 200
    own_service.learned()
    windows = own_service.client.get("/stats/totals").json()["windows"]
    totals = windows[0]["totals"]
    assert (totals["successes"], totals["failures"]) == (1, 1)


async def test_an_outage_is_not_called_into_again_and_again(
    own_service: RunningService, tmp_path: Path
) -> None:
    """One more call, and then the tool's own error with advice."""
    tool = Tool(BUSY, failures=9)
    result = await reflected(own_service, tmp_path, "list_events", tool)
    assert not result.succeeded
    assert len(tool.sent) == 2


@pytest.mark.parametrize("error", [TIMEOUT, BUSY, "Request timed out"])
async def test_what_writes_is_looked_at_first(
    own_service: RunningService, tmp_path: Path, error: str
) -> None:
    """It is never called again; the tool that shows its effect is named, and the key to send."""
    schema = {"type": "object", "properties": {"id": {}, "idempotencyKey": {"type": "string"}}}
    async with AsyncClient(own_service.url) as client:
        for name in ("create_event", "list_events", "list_rooms", "delete_event"):
            spec = ToolSpec(name=name, server_name="calendar", input_schema=schema)
            await client.put_tool(f"calendar.{name}", spec)
    tool = Tool(error)
    result = await reflected(own_service, tmp_path, "create_event", tool)
    assert len(tool.sent) == 1
    [first] = result.suggestions
    assert (first.action, first.tool) == ("call_first", "list_events")
    assert "may have had its effect" in first.lesson
    assert "idempotencyKey" in first.lesson


@pytest.mark.parametrize(
    ("name", "annotations", "parameters"),
    [
        ("create_event", None, {"id": 7}),
        ("list_events", ToolAnnotations(destructive_hint=True), {"id": 7}),
        ("list_events", ToolAnnotations(read_only_hint=False), {"id": 7}),
        ("get_page", None, {"url": "x", "overwrite": True}),
    ],
)
@pytest.mark.parametrize("error", [TIMEOUT, BUSY, LIMITED])
async def test_what_may_write_is_never_called_again(
    own_service: RunningService,
    tmp_path: Path,
    name: str,
    annotations: ToolAnnotations | None,
    parameters: JsonObject,
    error: str,
) -> None:
    """By its name, its hints or its parameters."""
    tool = Tool(error)
    result = await reflected(own_service, tmp_path, name, tool, annotations, parameters)
    assert len(tool.sent) == 1
    retries = [each for each in result.suggestions if each.action == "retry_unchanged"]
    assert not any(each.safe for each in retries)
