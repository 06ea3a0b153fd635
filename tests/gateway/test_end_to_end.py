"""The gateway, the real servers and the true service together: nothing is scripted here."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftercall import AsyncClient, Recorder
from tests.gateway.conftest import TIME_SERVER, OpenGateway
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
    assert status.executions >= 4
