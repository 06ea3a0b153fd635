"""Servers that `aftercall install` wrapped, started as their client starts them."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server.dependencies import get_http_headers

from aftercall.cli.entries import wrap_servers
from tests.gateway.conftest import BIN
from tests.gateway.contract_service import ContractService
from tests.gateway.http_server import HttpServer

pytestmark = pytest.mark.real

_ECHO = """
import os, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("echo")
@server.tool()
def tell() -> list[str]:
    said = [os.environ.get(name, "") for name in ("TOKEN", "FROM_CLIENT", "AFTERCALL_API_KEY")]
    return [*sys.argv[1:], *said, os.getcwd()]
server.run()
"""


def started(entry: dict[str, Any], environ: dict[str, str], folder: Path) -> Client[Any]:
    """A client of the entry's server, which is given what its client's own environment has."""
    env = environ | entry.get("env", {})
    log = folder / "stderr.log"
    words = (entry["command"], entry["args"])
    # Not kept alive: it must have ended when the block does.
    return Client(StdioTransport(*words, env=env, cwd=str(folder), log_file=log, keep_alive=False))


async def test_a_wrapped_server_works_as_before(service: ContractService, tmp_path: Path) -> None:
    """Same names of tools, arguments (also a `--` of their own), environment, folder; recorded."""
    script = tmp_path / "echo.py"
    script.write_text(_ECHO)
    echo = {"command": str(BIN / "python"), "args": [str(script), "--x", "--", "--server"]}
    headers: list[dict[str, str]] = []
    app: FastMCP[Any] = FastMCP("remote")

    @app.tool()
    def tell() -> str:
        headers.append(get_http_headers(include_all=True))
        return "told"

    far = HttpServer()
    await far.start(app.http_app())
    remote = {"type": "http", "url": far.url, "headers": {"X-Key": "of the client"}}
    content = {"mcpServers": {"echo": {**echo, "env": {"TOKEN": "t"}}, "far": remote}}
    entries, _ = wrap_servers(content, [sys.executable, "-m", "aftercall.cli"])
    environ = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    environ |= {"HOME": str(tmp_path), "AFTERCALL_URL": service.url, "FROM_CLIENT": "c"}
    environ |= {"AFTERCALL_API_KEY": "ac_" + "k" * 12 + "_" + "s" * 43}
    async with started(entries["mcpServers"]["echo"], environ, tmp_path) as client:
        assert [tool.name for tool in await client.list_tools()] == ["tell"]
        said = (await client.call_tool("tell")).structured_content
    assert said["result"] == ["--x", "--", "--server", "t", "c", "", str(tmp_path)]
    async with started(entries["mcpServers"]["far"], environ, tmp_path) as client:
        assert (await client.call_tool("tell")).data == "told"
    await far.stop()
    assert headers[0]["x-key"] == "of the client"
    called = {(each["serverName"], each["toolName"]) for each in service.recorded}
    assert called == {("echo", "tell"), ("far", "tell")}
