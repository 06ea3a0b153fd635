"""The gateway, the real servers and the true service together: nothing is scripted here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftercall import AsyncClient, Recorder
from tests.gateway.conftest import TIME_SERVER, OpenGateway
from tests.gateway.waiting import until_answered
from tests.service.running_service import serving

pytestmark = pytest.mark.real

NOW = "get_current_time"


@pytest.fixture
def service_url(tmp_path: Path) -> Iterator[str]:
    """`aftercall serve` on an empty folder; takes the contract server's place."""
    with serving(tmp_path / "data") as running:
        yield running.url


async def test_mistakes_of_agents_are_mended_on_the_first_day(
    open_gateway: OpenGateway,
    service_url: str,
    recorder: Recorder,
    git_server: dict[str, Any],
    repository: Path,
) -> None:
    """A wrong parameter name and both a wrong name and a wrong value end in true results."""
    async with open_gateway({"time": TIME_SERVER, "git": git_server}) as client:
        named = await client.call_tool_mcp(f"time_{NOW}", {"tz": "Europe/Warsaw"})
        both = await client.call_tool_mcp(f"time_{NOW}", {"time_zone": "europe/warsaw"})
        log = await client.call_tool_mcp(
            "git_git_log", {"repo_path": str(repository), "max_counts": 1}
        )
    await asyncio.to_thread(recorder.flush)

    for result in (named, both):
        assert not result.is_error
        assert result.structured_content is not None
        assert result.structured_content["timezone"] == "Europe/Warsaw"
        assert result.meta is not None
        assert result.meta["aftercall"]["repaired"] is True
    assert not log.is_error
    async with AsyncClient(service_url) as api:
        status = await api.status()
    assert status.executions >= 6


async def test_every_call_and_every_tool_reaches_the_service(
    open_gateway: OpenGateway, service_url: str, recorder: Recorder
) -> None:
    """What the gateway hands over is stored, indexed, and found again."""
    async with open_gateway({"time": TIME_SERVER}) as client, AsyncClient(service_url) as api:
        for zone in ("UTC", "Europe/Warsaw", "Asia/Tokyo"):
            await client.call_tool(NOW, {"timezone": zone})
        await asyncio.to_thread(recorder.flush)

        async def is_indexed() -> bool:
            status = await api.status()
            return status.executions == 3 and status.tools == 2 and status.pending_indexing == 0

        await until_answered(is_indexed)
        found = await api.similar(
            NOW, server_name="time", parameters={"timezone": "Asia/Tokyo"}, limit=1
        )
        tool = await api.get_tool(f"time.{NOW}")

    assert found.executions[0].execution.parameters == {"timezone": "Asia/Tokyo"}
    assert tool.annotations.read_only_hint is True
