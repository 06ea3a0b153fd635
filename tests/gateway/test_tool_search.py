"""`--tools search`: three tools in the place of all, with the true service and real servers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aftercall.gateway.tool_search import NAMES, tools_named_in
from tests.gateway.conftest import TIME_SERVER, OpenGateway
from tests.gateway.results import texts
from tests.gateway.waiting import until_answered
from tests.service.running_service import hashing_settings, running


@pytest.fixture
def service_url(tmp_path: Path) -> Iterator[str]:
    """A service on an empty folder; takes the contract server's place."""
    with running(hashing_settings(tmp_path)) as started:
        yield started.url


@pytest.mark.real
async def test_a_client_finds_and_calls_tools_that_it_does_not_see(
    open_gateway: OpenGateway,
    service_url: str,
    git_server: dict[str, Any],
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what is to be done, and by name; a call by `call_tool` is mended as any other.

    While the service is away they are found by their words.
    """
    servers = {"time": TIME_SERVER, "git": git_server}
    async with open_gateway(servers, searches=True) as client:
        assert {tool.name for tool in await client.list_tools()} == NAMES
        async with httpx2.AsyncClient(base_url=service_url) as api:

            async def is_indexed() -> bool:
                status = (await api.get("/status")).json()
                return bool(status["tools"] >= 14 and not status["pendingIndexing"])

            await until_answered(is_indexed, 60)
        task = {"task": "what have the last commits changed", "limit": 3}
        found = await client.call_tool("find_tools", task)
        named = await client.call_tool("find_tools", {"task": "convert time", "limit": 2})
        arguments = {"repoPath": str(repository), "max_count": 1}
        called = await client.call_tool_mcp(
            "call_tool", {"name": "git_git_log", "arguments": arguments}
        )
        as_text = {"name": "git_git_log", "arguments": repr(arguments | {"max_count": 1})}
        loose = await client.call_tool_mcp("call_tool", as_text)
        as_text["arguments"] = as_text["arguments"][:-1]
        cut_off = await client.call_tool_mcp("call_tool", as_text)
        wrong = await client.call_tool_mcp("call_tool", {"name": "git_logs"})
        known = await client.call_tool("known_tools", {"tools": ["git_git_log"]})
        monkeypatch.setattr("aftercall.gateway.tool_search._SERVICE_S", 0)
        alone = await client.call_tool("find_tools", {"task": "the current time in a zone"})
    assert texts(loose)[0] == texts(called)[0]
    assert cut_off.is_error
    assert "Invalid JSON in the arguments" in str(texts(cut_off))
    names = [tool["name"] for tool in found.structured_content["tools"]]
    assert "git_git_log" in names
    assert found.structured_content["tools"][0]["inputSchema"]["properties"]
    assert "<known_tools>" in found.structured_content["known"]
    assert json.loads(texts(named)[0])["tools"][0]["name"] == "time_convert_time"
    assert not called.is_error, texts(called)
    assert "First" in texts(called)[0]
    assert "Aftercall repaired this call" in texts(called)[-1]
    assert wrong.is_error
    assert "git_git_log" in texts(wrong)[0]
    assert "git_log" in texts(known)[0]
    assert alone.structured_content["tools"][0]["name"] == "time_get_current_time"


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("git_log", ["git_git_log"]), ("gitLog please", ["git_git_log"]),
        ("read", ["files_read"]), ("read the file", []), ("files read", ["files_read"]),
    ],
)  # fmt: skip
def test_tools_that_are_named_come_first(task: str, found: list[str]) -> None:
    """In whatever writing; one word within a sentence names nothing."""
    names = ["git_git_log", "files_read"]
    assert tools_named_in(task, names, lambda name: name.partition("_")[2]) == found
