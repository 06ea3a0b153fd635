"""The list of the last run stands in for servers that start; what changes is announced."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client.subscriptions import listen

from aftercall.gateway.listing import LastLists
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService
from tests.gateway.results import texts
from tests.gateway.waiting import until

pytestmark = pytest.mark.real

_SLOW_SERVER = """
import os, sys
from mcp.server.mcpserver import MCPServer
os.mkfifo(sys.argv[1]) if not os.path.exists(sys.argv[1]) else None
words = open(sys.argv[1]).read().split()
server = MCPServer("slow", instructions="Be patient.")
for word in words:
    server.add_tool(lambda: "said", name=word, description=word)
server.run()
"""


class Slow:
    """A server that starts when it is told which tools it has."""

    def __init__(self, folder: Path) -> None:
        self._gate = folder / "gate"
        self.config = {
            "slow": {"command": sys.executable, "args": ["-c", _SLOW_SERVER, str(self._gate)]}
        }

    async def start(self, tools: str) -> None:
        await until(self._gate.exists)
        await asyncio.to_thread(self._gate.write_text, tools)


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_slow_server_keeps_no_client_waiting(
    open_gateway: OpenGateway, service: ContractService, tmp_path: Path, era: str
) -> None:
    """Tools and instructions come from the last run, a call waits, a change is announced.

    The service is told of it too; what it says of a change is its own (`test_contract_drift.py`).
    """
    slow, lists = Slow(tmp_path), LastLists(tmp_path / "listed")
    async with open_gateway(slow.config, lists=lists) as client:
        listing = asyncio.create_task(client.list_tools())
        await slow.start("one")
        assert [tool.name for tool in await listing] == ["one"]

    heard = asyncio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            heard.set()

    async with open_gateway(slow.config, lists=lists, mode=era, message_handler=hear) as client:
        assert client.instructions == "Be patient."
        assert [tool.name for tool in await client.list_tools()] == ["one"]
        calling = asyncio.create_task(client.call_tool("one"))
        async with asyncio.timeout(30):
            if era == "legacy":
                await slow.start("one two")
                await heard.wait()
            else:
                async with listen(client.session, tools_list_changed=True) as changes:
                    await slow.start("one two")
                    await anext(aiter(changes))
            assert texts(await calling) == ["said"]
        assert [tool.name for tool in await client.list_tools()] == ["one", "two"]
        await until(lambda: "slow.two" in service.tools)


async def test_a_list_belongs_to_an_entry_and_its_secrets_are_not_in_it(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Another entry has no list yet; a broken file counts as none."""
    slow, lists = Slow(tmp_path), LastLists(tmp_path / "listed")
    slow.config["slow"]["env"] = {"TOKEN": "ghp_" + "a1" * 18}
    async with open_gateway(slow.config, lists=lists) as client:
        await slow.start("one")
        await client.list_tools()
    [file] = (tmp_path / "listed").iterdir()
    assert "ghp_" not in file.name + file.read_text()
    file.write_text(file.read_text()[:40])
    async with open_gateway(slow.config, lists=lists) as client:
        await slow.start("two")
        assert [tool.name for tool in await client.list_tools()] == ["two"]
