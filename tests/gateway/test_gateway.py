"""The gateway in front of the real `mcp-server-time` and `mcp-server-git`."""

import asyncio
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from aftercall import Recorder
from tests.gateway.conftest import TIME, TIME_ARGS, TIME_SERVER, OpenGateway
from tests.gateway.contract_service import ContractService, answer, suggestion
from tests.gateway.results import texts
from tests.gateway.waiting import children, until

pytestmark = pytest.mark.real

NOW = "get_current_time"
WARSAW = {"op": "replace", "path": "/timezone", "from": "Warsaw", "value": "Europe/Warsaw"}


async def test_one_servers_tools_keep_their_names_schemas_and_annotations(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """What an agent sees through the gateway is what the server itself lists."""
    with (tmp_path / "direct.log").open("w") as log:
        async with Client(StdioTransport(TIME, TIME_ARGS, log_file=log)) as direct:
            expected = {tool.name: tool for tool in await direct.list_tools()}
    async with open_gateway({"time": TIME_SERVER}) as client:
        listed = {tool.name: tool for tool in await client.list_tools()}

    assert set(listed) == {"get_current_time", "convert_time"}
    facts = attrgetter("description", "input_schema", "output_schema", "annotations")
    assert {name: facts(each) for name, each in listed.items()} == {
        name: facts(each) for name, each in expected.items()
    }


async def test_several_servers_tools_are_told_apart_by_prefix(
    open_gateway: OpenGateway,
    service: ContractService,
    git_server: dict[str, Any],
    repository: Path,
) -> None:
    """With several a tool is `<server>_<tool>`, reaches its own server, and is registered so."""
    async with open_gateway({"time": TIME_SERVER, "git": git_server}) as client:
        names = {tool.name for tool in await client.list_tools()}
        time = await client.call_tool(f"time_{NOW}", {"timezone": "UTC"})
        log = await client.call_tool("git_git_log", {"repo_path": str(repository)})
        await until(lambda: {"time.convert_time", "git.git_log"} <= set(service.tools))

    assert {"time_get_current_time", "git_git_log", "git_git_status"} <= names
    assert time.structured_content["timezone"] == "UTC"
    assert "First" in texts(log)[0]
    registered = service.tools["time.get_current_time"]
    assert (registered["name"], registered["serverName"]) == (NOW, "time")
    assert registered["annotations"]["readOnlyHint"] is True
    assert registered["inputSchema"]["required"] == ["timezone"]


async def test_a_repaired_call_gives_the_true_result_and_tells_of_the_repair(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """The agent gets the corrected call's own result; meta says what was changed and why."""
    offer = suggestion(WARSAW)
    service.suggest = lambda _: answer(offer)
    async with open_gateway({"time": TIME_SERVER}) as client:
        result = await client.call_tool_mcp(NOW, {"timezone": "Warsaw"})
    await asyncio.to_thread(recorder.flush)

    assert result.structured_content["timezone"] == "Europe/Warsaw"
    told = result.meta["aftercall"]
    assert "No time zone found with key Warsaw" in told.pop("firstError")
    assert told.pop("timeToRepairMs") > 0
    facts = {
        "repaired": True, "attempts": 2, "confidence": 0.95,
        "suggestionId": offer["suggestionId"],
        "changes": [WARSAW | {"reason": "the error says so"}],
    }  # fmt: skip
    assert {name: told[name] for name in facts} == facts
    failed, repaired = service.recorded
    assert repaired["repairOf"] == failed["executionId"]
    assert repaired["suggestionId"] == offer["suggestionId"]


async def test_concurrent_calls_share_one_server_process(open_gateway: OpenGateway) -> None:
    """It answers each call with its own; killed it comes back; it does not outlive the gateway."""
    zones = ["UTC", "Europe/Warsaw", "Asia/Tokyo", "America/New_York"] * 5
    async with open_gateway({"time": TIME_SERVER}) as client:
        results = await asyncio.gather(
            *(client.call_tool(NOW, {"timezone": zone}) for zone in zones)
        )
        (killed,) = children("mcp-server-time")
        killed.kill()
        await until(lambda: not children("mcp-server-time"))
        met = await client.call_tool_mcp(NOW, {"timezone": "UTC"})
        after = await client.call_tool_mcp(NOW, {"timezone": "UTC"})
        (running,) = children("mcp-server-time")

    assert [r.structured_content["timezone"] for r in results] == zones
    assert not met.is_error or "MCP server 'time' ended" in texts(met)[0]
    assert not after.is_error
    assert running.pid != killed.pid
    assert children("mcp-server-time") == []


async def test_a_server_that_does_not_start_leaves_the_others_working(
    open_gateway: OpenGateway, service: ContractService
) -> None:
    """Its tools' calls say what is wrong; the other servers' tools are listed and work."""
    broken = {"command": "/nowhere/mcp-server-broken"}
    async with open_gateway({"broken": broken, "time": TIME_SERVER}) as client:
        names = {tool.name for tool in await client.list_tools()}
        works = await client.call_tool_mcp(f"time_{NOW}", {"timezone": "UTC"})
        fails = await client.call_tool_mcp("broken_anything", {})
        others = [await client.list_resources(), await client.list_prompts()]

    assert names == {"time_get_current_time", "time_convert_time"}
    assert others == [[], []]
    assert service.questions[0]["execution"]["error"]["type"] == "UpstreamUnavailableError"
    assert not works.is_error
    assert fails.is_error
    assert "MCP server 'broken' cannot be reached: FileNotFoundError" in texts(fails)[0]


async def test_calls_go_through_while_the_service_is_away(
    open_gateway: OpenGateway, service: ContractService, recorder: Recorder
) -> None:
    """No service: successes and failures are the server's own, and are recorded for later."""
    service.__exit__(None, None, None)
    async with open_gateway({"time": TIME_SERVER}) as client:
        good = await client.call_tool_mcp(NOW, {"timezone": "UTC"})
        bad = await client.call_tool_mcp(NOW, {"timezone": "Warsaw"})
    await asyncio.to_thread(recorder.flush)

    assert not good.is_error
    assert texts(bad) == [
        "Error executing tool get_current_time: Invalid timezone: "
        "'No time zone found with key Warsaw'"
    ]
    assert recorder.stats().spooled == 2
