"""Both clients' methods for statistics against a running service."""

import inspect
from typing import Any
from uuid import uuid4

import pytest

from aftercall import AsyncClient, Client
from aftercall.errors import InvalidRequestError, NotFoundError
from tests.service.running_service import RunningService, eventually, execution
from tests.service.statistics.test_failures import ago


@pytest.mark.parametrize("kind", [Client, AsyncClient], ids=["sync", "async"])
async def test_every_method_works(service: RunningService, kind: Any) -> None:
    """One method per endpoint, each against the endpoint."""
    client = kind(service.url)

    async def call(name: str, *args: Any, **options: Any) -> Any:
        answer = getattr(client, name)(*args, **options)
        return await answer if inspect.isawaitable(answer) else answer

    agent, tool = f"team/{uuid4().hex}", f"tool {uuid4().hex}"
    sent = execution(
        agent=agent, serverName="a/b", toolName=tool, durationMs=20.0, timestamp=ago(minutes=1)
    )
    assert service.record(sent).status_code == 202
    path = f"/stats/agents/{agent.replace('/', '%2F')}"
    eventually(lambda: service.client.get(path).status_code == 200)

    of_tool = {"tool_name": tool, "server_name": "a/b"}
    assert [each.window for each in (await call("totals")).windows] == ["24h", "7d", "30d"]
    assert agent in {each.agent for each in (await call("usage", "7d", limit=500)).by_agent}
    assert sum(each.successes for each in (await call("trend", **of_tool)).points) == 1
    latency = await call("latency", "30d", **of_tool)
    assert latency.overall.p50 == pytest.approx(20, rel=0.05)
    listed = (await call("tool_statistics")).tools
    assert tool in {each.tool.tool_name for each in listed}
    found = await call("agent_statistics", agent)
    assert (found.usage.successes, found.tools[0].tool.tool_name) == (1, tool)
    assert (await call("reflection")).first_attempts.successes >= 1
    assert (await call("pattern_statistics", limit=3)).patterns == []
    assert len((await call("confidence")).bins) == 10
    with pytest.raises(NotFoundError, match="GET /patterns lists all"):
        await call("pattern_history", str(uuid4()))
    with pytest.raises(NotFoundError, match="no agent"):
        await call("agent_statistics", "q" * 200)
    with pytest.raises(InvalidRequestError, match="limit"):
        await call("usage", limit=501)
    await call("close")
