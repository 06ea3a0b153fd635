"""The MCP servers behind the gateway: each started once, its session kept.

A server that has ended is started again at the next call. FastMCP's proxy opens and closes a
connection for every call, which starts a stdio server anew each time. Here one client per server
stays connected for all callers. What follows from sharing it:

- headers of a caller are never passed on (they would serve every later caller too);
- requests from a server to "its" client (sampling, elicitation, roots) have no client to go to, so
  these capabilities are not announced;
- progress goes to the call it belongs to.
"""

import asyncio
import contextvars
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TextIO, TypeVar, cast

import mcp_types
from fastmcp.client.client import Client
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports import ClientTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from fastmcp.server.providers.proxy import ProxyClient
from mcp import MCPError, StdioServerParameters
from mcp.shared.dispatcher import ProgressFnT

from aftercall.gateway.config import Server, StdioServer
from aftercall.gateway.stdio_transport import WatchedStdioTransport

CONNECT_TIMEOUT_S = 60.0
"""A first start through `npx` or `uvx` downloads the server."""

_CLOSE_TIMEOUT_S = (
    8.0  # MCP gives a stdio server 2 s to leave, 2 s after SIGTERM, 2 s after SIGKILL
)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0

# The words of the Python and the TypeScript SDK for a session id that they do not know (HTTP 404).
_FORGOTTEN_SESSION = ("session not found", "session terminated")

_logger = logging.getLogger(__name__)

T = TypeVar("T")
CallResult = mcp_types.CallToolResult | mcp_types.InputRequiredResult


class UpstreamUnavailableError(ToolError):
    """A server behind the gateway cannot be reached; the call did not get to it."""

    code = mcp_types.CONNECTION_CLOSED


class UpstreamLostError(ToolError):
    """The connection to a server ended during a call; the call may or may not have run."""

    code = mcp_types.CONNECTION_CLOSED


class Upstream:
    """One MCP server, kept connected. Use `start` and `close`, or `async with`.

    Args:
        server: how to reach it.
        on_tools_changed: called when the server says that its list of tools changed.
        errlog: where a stdio server's standard error goes; this process's own when None.
    """

    def __init__(
        self,
        server: Server,
        *,
        on_tools_changed: Callable[[], None] | None = None,
        errlog: TextIO | None = None,
    ) -> None:
        self.name = server.name
        self._server = server
        self._on_tools_changed = on_tools_changed
        self._errlog = errlog
        self._client: Client[ClientTransport] | None = None
        self._forgotten: Client[ClientTransport] | None = None
        self._connecting: asyncio.Task[Client[ClientTransport]] | None = None
        self._context: contextvars.Context | None = None
        self._pause_s = 0.0
        self._paused_until = 0.0
        self._last_problem = ""
        self._closed = False

    async def __aenter__(self) -> "Upstream":
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def instructions(self) -> str | None:
        """What the server says about its use; None when it says nothing or is not connected."""
        return self._client.instructions if self._client is not None else None

    def start(self) -> None:
        """Begin connecting; returns at once. Must run in the event loop.

        The context of this moment is the one that all connections live in: a connection made
        while serving a request must not keep that request's context (FastMCP's, a tracer's).
        """
        self._closed = False
        self._context = contextvars.copy_context()
        self._connecting = self._begin_connecting()

    async def client(self) -> Client[ClientTransport]:
        """The connected client; connects first when there is none or its connection has ended.

        Raises:
            UpstreamUnavailableError: it cannot be reached. After a failure it is not tried again
                for a moment (0.5 s, doubling to 30 s), and the last problem is told at once.
        """
        client = self._client
        if client is not None and client is not self._forgotten and _is_alive(client):
            return client
        if self._connecting is None:
            if self._closed:
                raise UpstreamUnavailableError(f"MCP server {self.name!r} has been stopped")
            if time.monotonic() < self._paused_until:
                raise UpstreamUnavailableError(self._last_problem)
            self._connecting = self._begin_connecting()
        # Shielded: the next caller needs the connection even if this one has gone.
        return await asyncio.shield(self._connecting)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
        input_responses: mcp_types.InputResponses | None = None,
        request_state: str | None = None,
    ) -> CallResult:
        """Call a tool of the server.

        A connection that is known to have ended is renewed before the call is sent. One that ends
        during the call is not: whether the tool ran is unknown, so whoever knows if it may run
        twice has to decide.

        Raises:
            UpstreamUnavailableError: the server cannot be reached.
            UpstreamLostError: the connection ended during the call.
            MCPError: what the server answered instead of a result.
        """

        async def call(client: Client[ClientTransport]) -> CallResult:
            return await client.session.call_tool(
                name,
                arguments,
                progress_callback=progress,
                input_responses=input_responses,
                request_state=request_state,
                meta=cast("mcp_types.RequestParamsMeta | None", dict(meta) if meta else None),
                allow_input_required=True,
            )

        try:
            return await self._request(call)
        except MCPError as error:
            if error.code != mcp_types.CONNECTION_CLOSED:
                raise
            raise UpstreamLostError(
                f"the connection to MCP server {self.name!r} ended during the call; it may or may "
                "not have run. The next call connects again"
            ) from error

    async def list_tools(self) -> list[mcp_types.Tool]:
        """The tools of the server.

        Raises:
            UpstreamUnavailableError: the server cannot be reached.
        """
        try:
            return await self._request(lambda client: client.list_tools())
        except MCPError as error:
            if error.code == mcp_types.METHOD_NOT_FOUND:
                return []
            raise UpstreamUnavailableError(f"MCP server {self.name!r}: {error}") from error
        except UpstreamUnavailableError:
            raise
        except Exception as error:  # a malformed list, a transport's own error: no list either way
            raise UpstreamUnavailableError(f"MCP server {self.name!r}: {_told(error)}") from error

    async def close(self) -> None:
        """End the connection, and the server with it when the gateway started it."""
        self._closed = True
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            with suppress(asyncio.CancelledError, ToolError):
                await connecting
        client, self._client = self._client, None
        if client is not None:
            await _close(client)

    async def _request(self, send: Callable[[Client[ClientTransport]], Awaitable[T]]) -> T:
        """Send over the kept connection; once more when the server has forgotten its session.

        A server that was started anew refuses the old session before it looks at the request, so
        sending it again over a new one repeats nothing.
        """
        client = await self.client()
        try:
            return await send(client)
        except MCPError as error:
            if not _has_forgotten_session(client, error):
                raise
        self._forgotten = client
        return await send(await self.client())

    def _begin_connecting(self) -> "asyncio.Task[Client[ClientTransport]]":
        context = self._context.copy() if self._context is not None else None
        task = asyncio.get_running_loop().create_task(
            self._connect(), name=f"aftercall-connect-{self.name}", context=context
        )
        task.add_done_callback(self._connected)
        return task

    def _connected(self, task: "asyncio.Task[Client[ClientTransport]]") -> None:
        if self._connecting is task:
            self._connecting = None
        if not task.cancelled():
            task.exception()  # marks it as seen: at start nobody may be waiting

    async def _connect(self) -> Client[ClientTransport]:
        ended, self._client = self._client, None
        if ended is not None:
            _logger.warning("MCP server %r has ended; connecting again", self.name)
            await _close(ended)
        client = self._new_client()
        try:
            # Left by `close`, since it outlives every block.
            await client.__aenter__()  # type: ignore[no-untyped-call]  # FastMCP leaves it untyped
        except Exception as error:
            self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            self._paused_until = time.monotonic() + self._pause_s
            self._last_problem = f"MCP server {self.name!r} cannot be reached: {_told(error)}"
            _logger.warning("%s", self._last_problem)
            raise UpstreamUnavailableError(self._last_problem) from error
        self._pause_s = 0.0
        self._client = client
        return client

    def _new_client(self) -> Client[ClientTransport]:
        return ProxyClient(
            self._transport(),
            name=f"aftercall-{self.name}",
            forward_incoming_headers=False,
            mode="auto",
            roots=None,
            sampling_handler=None,
            elicitation_handler=None,
            progress_handler=None,
            log_handler=self._log,
            message_handler=self._on_message,
            timeout=self._server.timeout_s,
            init_timeout=CONNECT_TIMEOUT_S,
        )

    def _transport(self) -> ClientTransport:
        server = self._server
        if isinstance(server, StdioServer):
            return WatchedStdioTransport(
                StdioServerParameters(
                    command=server.command, args=server.args, env=server.env, cwd=server.cwd
                ),
                errlog=self._errlog or sys.__stderr__ or sys.stderr,
            )
        return StreamableHttpTransport(server.url, headers=server.headers)

    async def _log(self, message: LogMessage) -> None:
        _logger.debug("%s: %s", self.name, message.data)

    async def _on_message(self, message: object) -> None:
        is_change = isinstance(message, mcp_types.ToolListChangedNotification)
        if is_change and self._on_tools_changed is not None:
            self._on_tools_changed()


def _is_alive(client: Client[ClientTransport]) -> bool:
    transport = client.transport
    if isinstance(transport, WatchedStdioTransport) and transport.has_ended:
        return False
    return client.is_connected()


def _has_forgotten_session(client: Client[ClientTransport], error: MCPError) -> bool:
    has_session = client.transport.get_session_id() is not None  # HTTP before 2026-07-28 only
    return has_session and error.message.casefold() in _FORGOTTEN_SESSION


async def _close(client: Client[ClientTransport]) -> None:
    """Closing tells again why a connection had ended; that was told to the call it ended."""
    try:
        closing = client.close()  # type: ignore[no-untyped-call]  # FastMCP leaves it untyped
        await asyncio.wait_for(closing, _CLOSE_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001  # whatever it is, there is nothing left to close
        _logger.debug("closing %s: %s", client.name, _told(error))


def _told(error: BaseException) -> str:
    """An error in one line, with the cause where the error itself only wraps it."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"
