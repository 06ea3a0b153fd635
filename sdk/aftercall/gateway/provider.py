"""The components of one server, as FastMCP serves them through the gateway.

Resources and prompts go FastMCP's own way (over the kept client); tools have their own, because
each call matters here.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.context import Context
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.proxy import ProxyProvider, ProxyTool
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp import MCPError
from pydantic import PrivateAttr

from aftercall.gateway.upstreams import Upstream, UpstreamUnavailableError

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_OF_ONE_CONNECTION = frozenset(
    {
        mcp_types.PROTOCOL_VERSION_META_KEY,
        mcp_types.CLIENT_INFO_META_KEY,
        mcp_types.CLIENT_CAPABILITIES_META_KEY,
        mcp_types.SERVER_INFO_META_KEY,
        "progressToken",  # the connection behind numbers its own
    }
)
"""Keys of `_meta` that describe a connection, and so never cross from one to the other."""

_OURS = "aftercall/"


class UpstreamTool(ProxyTool):
    """A tool of a server behind the gateway."""

    _upstream: Upstream = PrivateAttr()

    def bind(self, upstream: Upstream) -> None:
        """Say which server the tool belongs to; copies under other names keep it."""
        self._upstream = upstream

    async def run(self, arguments: dict[str, Any], context: Context | None = None) -> ToolResult:
        """Call the tool at its server.

        Raises:
            ToolError: in the server's own words, or saying that the server cannot be reached.
        """
        context = context or get_context()
        request = context.request_context
        meta = dict(request.meta or {}) if request is not None else {}
        try:
            result = await self._upstream.call_tool(
                self._backend_name or self.name,
                arguments,
                meta={k: v for k, v in meta.items() if _crosses(k) and not k.startswith(_OURS)},
                progress=context.report_progress if "progressToken" in meta else None,
                input_responses=context.input_responses,
                request_state=context.request_state,
            )
        except MCPError as error:
            raise ToolError(error.message, log_level=logging.DEBUG) from error
        if isinstance(result, mcp_types.InputRequiredResult):
            return InputRequiredToolResult(result)
        kept = {k: v for k, v in (result.meta or {}).items() if _crosses(k)}
        return ToolResult(
            content=result.content,
            structured_content=result.structured_content,
            meta=kept or None,
            is_error=result.is_error,
        )


class UpstreamProvider(ProxyProvider):
    """What one server offers. Tools are looked up in the list last seen, without a question.

    Args:
        upstream: the server.
        on_tools: told the tools each time they were listed.
    """

    def __init__(
        self, upstream: Upstream, *, on_tools: Callable[[str, Sequence[mcp_types.Tool]], None]
    ) -> None:
        super().__init__(upstream.client)
        self._upstream = upstream
        self._on_tools = on_tools
        self._tools: dict[str, Tool] | None = None

    def known(self, tool_name: str) -> Tool | None:
        """The tool of this name in the list last seen."""
        return (self._tools or {}).get(tool_name)

    async def refresh(self) -> dict[str, Tool]:
        """Ask the server for its tools.

        Raises:
            UpstreamUnavailableError: it cannot be reached.
        """
        listed = await self._upstream.list_tools()
        self._tools = {tool.name: self._tool(tool) for tool in listed}
        self._on_tools(self._upstream.name, listed)
        return self._tools

    def _tool(self, listed: mcp_types.Tool) -> Tool:
        tool = UpstreamTool.from_mcp_tool(self._upstream.client, listed)
        if isinstance(tool, UpstreamTool):  # FastMCP types what it makes as the base class
            tool.bind(self._upstream)
        return tool

    async def _list_tools(self) -> Sequence[Tool]:
        """The list last seen; the server is asked only when it has never been.

        The gateway asks again in the background (`refresh`). Here it must not: over HTTP the MCP
        SDK lists the tools before every single call, to check the call's headers. A server that is
        away keeps its last list: a call will say that it is away.
        """
        tools = self._tools
        if tools is None:
            try:
                tools = await self.refresh()
            except UpstreamUnavailableError as error:
                _logger.warning("%s", error)
                tools = {}
        return list(tools.values())

    async def _list_resources(self) -> Sequence[Resource]:
        return await self._or_nothing("resources", super()._list_resources())

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return await self._or_nothing("resource templates", super()._list_resource_templates())

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._or_nothing("prompts", super()._list_prompts())

    async def _or_nothing(self, what: str, listing: Awaitable[Sequence[T]]) -> Sequence[T]:
        """One server that is away must not keep the lists of the others away."""
        try:
            return await listing
        except (MCPError, ToolError) as error:
            _logger.warning("no %s from %s: %s", what, self._upstream.name, error)
            return []

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        tool = self.known(name)
        if tool is None:
            # A new tool, a wrong name, or nothing was listed yet; a failure is told to the caller.
            tool = (await self.refresh()).get(name)
        return tool if tool is not None and (not version or version.matches(tool.version)) else None

    async def _get_tool_by_hash(self, tool_hash: str, tool_name: str) -> Tool | None:
        """Parts of a FastMCP app are not reached through the gateway."""
        del tool_hash, tool_name
        return None


def _crosses(key: str) -> bool:
    return key not in _OF_ONE_CONNECTION
