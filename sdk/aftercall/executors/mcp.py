"""Tools of MCP servers, called through FastMCP (extra `gateway`)."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import mcp_types
from fastmcp import Client
from mcp import MCPError

from aftercall.executors import protocol
from aftercall.json_values import JsonValue, make_json_value
from aftercall.mcp_calls import McpResultReader
from aftercall.models.tools import Tool
from aftercall.outcomes import ToolFailedError
from aftercall.reflection.results import read_exception

_READER = McpResultReader()

# The server looked at the call and did not run it.
_NOT_RUN = (mcp_types.INVALID_PARAMS, mcp_types.METHOD_NOT_FOUND, mcp_types.INVALID_REQUEST)


class McpExecutor(AbstractAsyncContextManager["McpExecutor"]):
    """Calls tools of MCP servers; an async context manager that keeps the connections.

    Which servers there are is stated here alone: a tool of the registry names one of them by its
    `serverName` and can reach no other.

    By its name a server is a FastMCP `Client`, or whatever one is made of, such as a URL.
    """

    def __init__(self, servers: Mapping[str, Any]) -> None:
        self._clients: dict[str, Client[Any]] = {
            name: server if isinstance(server, Client) else Client(server)
            for name, server in servers.items()
        }
        self._connections = AsyncExitStack()
        self._connected: set[str] = set()
        self._connecting = asyncio.Lock()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        self._connected.clear()
        await self._connections.aclose()

    def fits(self, tool: Tool) -> bool:
        """Return whether the tool's server is named here and it is no command line."""
        is_command = (
            "command" in protocol.implementation_of(tool)
            or protocol.evolved_file_of(tool) is not None
        )
        return tool.server_name in self._clients and not is_command

    async def execute(
        self, tool: Tool, input_data: JsonValue, *, timeout_s: float = protocol.DEFAULT_TIMEOUT_S
    ) -> protocol.ExecutorResult:
        """Call the tool by its name; raises as `Executor.execute`."""
        if (client := self._clients.get(tool.server_name or "")) is None:
            raise protocol.ToolRefusedError(
                f"the tool {protocol.tool_title(tool)} is of the MCP server {tool.server_name!r}, "
                "which is not named here; add it to McpExecutor"
            )
        if input_data is not None and not isinstance(input_data, dict):
            raise protocol.rejected_input("a tool of an MCP server takes an object of parameters")
        async with protocol.failing_as_tool(timeout_s, "the server may work on"):
            await self._connect_client(tool.server_name or "", client)
            try:
                result = await client.call_tool(tool.name, input_data or {}, raise_on_error=False)
            except MCPError as error:
                raise ToolFailedError(
                    read_exception(error), ran=error.code not in _NOT_RUN
                ) from error
        outcome = _READER.read(result)
        assert outcome is not None  # noqa: S101  # this reader knows no others
        outcome.unwrap()
        return protocol.ExecutorResult(
            make_json_value(_READER.value_of(result)), status=outcome.status
        )

    async def _connect_client(self, name: str, client: "Client[Any]") -> None:
        async with self._connecting:
            if name in self._connected and client.is_connected():
                return
            try:
                await self._connections.enter_async_context(client)
            except Exception as error:
                raise protocol.ToolRefusedError(
                    f"MCP server {name!r} cannot be reached: {error}"
                ) from error
            self._connected.add(name)
