"""What the servers behind the gateway offer: tools of ours, resources and prompts of FastMCP."""

import asyncio
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

from aftercall.adapters import asked_user
from aftercall.gateway.connection import FirstAnswers, UpstreamUnavailableError
from aftercall.gateway.long_answers import PAGE, PAUSE_S
from aftercall.gateway.relay import crossing_meta, progress_to
from aftercall.gateway.upstreams import Upstream

_logger = logging.getLogger(__name__)
T = TypeVar("T")


class UpstreamTool(ProxyTool):
    """A tool of a server behind the gateway."""

    _upstream: Upstream = PrivateAttr()

    @classmethod
    def from_listed(cls, upstream: Upstream, listed: mcp_types.Tool) -> Tool:
        """Return a tool as it was listed; copies under other names keep their server."""
        tool = cls.from_mcp_tool(upstream.connected_client, listed)
        if isinstance(tool, UpstreamTool):  # FastMCP types what it makes as the base class
            tool._upstream = upstream  # noqa: SLF001  # of this class
        return tool

    async def run(self, arguments: dict[str, Any], context: Context | None = None) -> ToolResult:
        """Call the tool at its server; a `ToolError` is in its words, or states that it is away."""
        context = context or get_context()
        request = context.request_context
        meta = dict(request.meta or {}) if request is not None else {}
        sent = {key: value for key, value in meta.items() if not key.startswith("aftercall/")}
        # An answer to our own question does not answer the server's.
        is_own = asked_user.is_own_state(context.request_state)
        try:
            with self._upstream.relay.serve_call(context):
                result = await self._upstream.call_tool(
                    self._backend_name or self.name,
                    arguments,
                    meta=crossing_meta(sent) or None,
                    progress_callback=progress_to(context, meta.get("progressToken")),
                    input_responses=None if is_own else context.input_responses,
                    request_state=None if is_own else context.request_state,
                )
        except MCPError as error:
            if error.code == mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY:
                raise  # the client reads the code
            raise ToolError(error.message, log_level=logging.DEBUG) from error
        if isinstance(result, mcp_types.InputRequiredResult):
            return InputRequiredToolResult(result)
        return ToolResult(
            content=result.content,
            structured_content=result.structured_content,
            meta=crossing_meta(result.meta or {}) or None,
            is_error=result.is_error,
        )


class UpstreamProvider(ProxyProvider):
    """What one server offers. Tools are looked up in the list last seen, without a question.

    `on_tools` is called with the tools each time they were listed; `before` are those of the last
    run, which count until they are.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        on_tools: Callable[[str, Sequence[mcp_types.Tool]], None],
        before: Sequence[mcp_types.Tool] | None = None,
        first: FirstAnswers | None = None,
    ) -> None:
        super().__init__(upstream.connected_client)
        self._first = first or FirstAnswers(1)
        self._late: set[asyncio.Task[dict[str, Tool]]] = set()
        self._refreshing: asyncio.Task[dict[str, Tool]] | None = None
        self._upstream = upstream
        self._on_tools = on_tools
        self._tools = None if before is None else self._make_tools(before)
        self.is_missed = False
        """Whether a client saw none of its tools, because the server was away."""

    def _make_tools(self, listed: Sequence[mcp_types.Tool]) -> dict[str, Tool]:
        return {tool.name: UpstreamTool.from_listed(self._upstream, tool) for tool in listed}

    async def _made_in_steps(self, listed: Sequence[mcp_types.Tool]) -> dict[str, Tool]:
        made: dict[str, Tool] = {}
        for start in range(0, len(listed), PAGE):
            made |= self._make_tools(listed[start : start + PAGE])
            if len(listed) > PAGE:
                await asyncio.sleep(PAUSE_S)
        return made

    def known_tool(self, tool_name: str) -> Tool | None:
        """Return the tool of this name in the list last seen."""
        return (self._tools or {}).get(tool_name)

    async def refresh_tools(self) -> dict[str, Tool]:
        """Ask the server for its tools; an `UpstreamUnavailableError` where it is away.

        A caller during that time gets the same answer.
        """
        if self._refreshing is None:
            self._refreshing = task = asyncio.create_task(self._refresh_tools())
            task.add_done_callback(self._end_refresh)
        return await asyncio.shield(self._refreshing)

    def _end_refresh(self, task: "asyncio.Task[dict[str, Tool]]") -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # marks it as seen: who asked may have gone

    async def _refresh_tools(self) -> dict[str, Tool]:
        listed = await self._upstream.list_tools()
        if (count := self._upstream.tools_listed) > len(listed):
            what = "%s lists %d tools, of which the first %d are offered"
            _logger.warning(what, self._upstream.name, count, len(listed))
        self._tools = await self._made_in_steps(listed)
        self._first.note_answer()
        self._on_tools(self._upstream.name, listed)
        return self._tools

    async def _refresh_in_time(self) -> dict[str, Tool]:
        """Do as `refresh`; a server that takes longer than the others may wait is away for now."""
        task = asyncio.create_task(self.refresh_tools())
        self._late.add(task)  # goes on: its answer is announced
        task.add_done_callback(self._late.discard)
        while not task.done():
            if self._first.are_over:
                task.add_done_callback(lambda late: late.cancelled() or late.exception())
                what = f"MCP server {self._upstream.name!r} takes long to list its tools"
                raise UpstreamUnavailableError(f"{what}; they are announced when they are there")
            left_s = self._first.left_s()
            await asyncio.wait({task}, timeout=None if left_s is None else max(left_s, 0.05))
        return task.result()

    async def _list_tools(self) -> Sequence[Tool]:
        """Return the list last seen; the server is asked only when it has never been.

        The gateway asks again in the background (`refresh`). Here it must not: over HTTP the MCP
        SDK lists the tools before every single call, to check the call's headers. A server that is
        away keeps its last list: a call will say that it is away.
        """
        if (tools := self._tools) is None:
            try:
                tools = await self._refresh_in_time()
            except UpstreamUnavailableError as error:
                _logger.warning("%s", error)
                tools, self.is_missed = {}, True
        return list(tools.values())

    async def _list_resources(self) -> Sequence[Resource]:
        return await self._or_nothing("resources", super()._list_resources())

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return await self._or_nothing("resource templates", super()._list_resource_templates())

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._or_nothing("prompts", super()._list_prompts())

    async def _or_nothing(self, what: str, listing: Awaitable[Sequence[T]]) -> Sequence[T]:
        """Return what a server lists; nothing where it is away: the others' lists stay."""
        try:
            return await listing
        except (MCPError, ToolError) as error:
            _logger.warning("no %s from %s: %s", what, self._upstream.name, error)
            return []

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        if (tool := self.known_tool(name)) is None:
            # A new tool, a wrong name, or nothing was listed yet; the caller hears of a failure.
            tool = (await self.refresh_tools()).get(name)
        return tool if tool is not None and (not version or version.matches(tool.version)) else None

    async def _get_tool_by_hash(self, tool_hash: str, tool_name: str) -> Tool | None:
        """Parts of a FastMCP app are not reached through the gateway."""
        del tool_hash, tool_name
        return None
