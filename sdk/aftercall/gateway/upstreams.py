"""The MCP servers behind the gateway: each started once, its session kept.

FastMCP's proxy opens and closes a connection for every call, which starts a stdio server again each
time. Here one client per server stays connected for all callers, and one that has ended is renewed
at the next call. Anything that follows from sharing it:

- headers of a caller are never passed on (they would serve every later caller too);
- requests from a server to "its" client (sampling, elicitation) go to the client whose calls run,
  where that is one (`CallerRelay`); roots have no client to go to, and are not announced;
- progress goes to the call it belongs to;
- the protocol is that of the first client (`FrontWire`).
"""

import asyncio
import contextvars
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TextIO, TypeVar

import mcp_types
from fastmcp.client.client import Client
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports import ClientTransport, StreamableHttpTransport
from fastmcp.client.transports.base import TransportOptions
from fastmcp.exceptions import ToolError
from fastmcp.server.providers.proxy import ProxyClient
from mcp import MCPError, StdioServerParameters
from pydantic import ValidationError

from aftercall.gateway.config import UpstreamServer
from aftercall.gateway.connection import (
    Breaker,
    Login,
    SeldomSaid,
    UpstreamUnavailableError,
    WatchedStdioTransport,
)
from aftercall.gateway.long_answers import install_reader
from aftercall.gateway.relay import CallerRelay, FrontWire, SharedSession, Wire
from aftercall.running import KEY_VARIABLE

CONNECT_TIMEOUT_S = 60.0
"""A first start through `npx` or `uvx` downloads the server."""
_CLOSE_TIMEOUT_S = 8.0
"""MCP gives a stdio server 2 s to leave, 2 s after SIGTERM, 2 s after SIGKILL."""
_NO_HANDSHAKE = (mcp_types.METHOD_NOT_FOUND, mcp_types.UNSUPPORTED_PROTOCOL_VERSION)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0

_OF_MODERN_RESULTS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What each result holds from 2026-07-28 on."""
# The words of the Python and the TypeScript SDK for a session id that they do not know (HTTP 404).
_FORGOTTEN_SESSION = ("session not found", "session terminated")
_logger = logging.getLogger(__name__)
logging.getLogger("mcp.client.stdio").addFilter(SeldomSaid())
install_reader()
T = TypeVar("T")
CallResult = mcp_types.CallToolResult | mcp_types.InputRequiredResult


class UpstreamLostError(ToolError):
    """The connection to a server ended during a call; the call may or may not have run."""

    code = mcp_types.CONNECTION_CLOSED


class UpstreamLoginError(ToolError):
    """A server refused the login; it did not look at the call."""

    code = 401


class Upstream:
    """One MCP server, kept connected. Use `start` and `close`.

    `on_tools_changed` is called when the server states so. Without `errlog` a stdio server's
    standard error goes to this process's own. `front` states which protocol is spoken; without it,
    the newest that the server speaks.
    """

    def __init__(
        self,
        server: UpstreamServer,
        *,
        on_tools_changed: Callable[[], None] = lambda: None,
        errlog: TextIO | None = None,
        front: FrontWire | None = None,
    ) -> None:
        self.name = server.name
        self._front = front or FrontWire("auto")
        self._server = server
        self._on_tools_changed = on_tools_changed
        self._errlog = errlog
        self._client: Client[ClientTransport] | None = None
        self._mode: Wire | None = None
        self._is_guess = False
        self._forgotten: Client[ClientTransport] | None = None
        self._connecting: asyncio.Task[Client[ClientTransport]] | None = None
        self._context: contextvars.Context | None = None
        self._pause_s = 0.0
        self._paused_until = 0.0
        self._last_problem = ""
        self._closed = False
        self._breaker = Breaker(server.name)
        self._login = Login(server.name, server.headers_helper)
        self.relay = CallerRelay()
        """Where the server's own questions and log messages go."""
        self.on_resource_updated: Callable[[str, str], Awaitable[None]] = _ignore_update
        """Called with the server's name and the address of a resource that has changed."""

    @property
    def instructions(self) -> str | None:
        """Return what the server states about its use.

        None when it states nothing or is not connected.
        """
        return self._client.instructions if self._client is not None else None

    @property
    def tools_listed(self) -> int:
        """Return how many tools the server listed, also those that are not offered."""
        session = self._client.session if self._client is not None else None
        return session.paged.listed if isinstance(session, SharedSession) else 0

    @property
    def end_connecting(self) -> Client[ClientTransport] | None:
        """Client, where it is connected at the moment."""
        client = self._client
        return client if client is not None and client.is_connected() else None

    def start(self, *, now: bool = True) -> None:
        """Begin connecting, `now` or when it is first needed; returns at once. In the event loop.

        The context of this moment is the one that all connections live in: a connection made
        while serving a request must not keep that request's context (FastMCP's, a tracer's).
        """
        self._closed = False
        self._context = contextvars.copy_context()
        if now:
            self._connecting = self._begin_connecting()

    async def connected_client(self) -> Client[ClientTransport]:
        """Return the connected client; connect first where there is no connection.

        After a failure (`UpstreamUnavailableError`) it is not tried again for a moment (0.5 s,
        doubling to 30 s), and the last problem is raised at once.
        """
        client = self._client
        if self._is_guess and self._front.known == "legacy":
            self._is_guess, self._mode, self._forgotten = False, None, client
        if client is not None and client is not self._forgotten and client.is_connected():
            transport = client.transport
            if not (isinstance(transport, WatchedStdioTransport) and transport.has_ended):
                return client
        if self._connecting is None:
            if self._closed:
                raise UpstreamUnavailableError(f"MCP server {self.name!r} has been stopped")
            if time.monotonic() < self._paused_until:
                raise UpstreamUnavailableError(self._last_problem)
            self._connecting = self._begin_connecting()
        # Shielded: the next caller needs the connection even if this one has gone.
        return await asyncio.shield(self._connecting)

    async def call_tool(self, name: str, arguments: dict[str, Any], **options: Any) -> CallResult:
        """Call a tool of the server; `options` are those of `ClientSession.call_tool`.

        A connection that is known to have ended is renewed before the call is sent. One that ends
        during the call is not: whether the tool ran is unknown, so the one who knows if it may run
        twice has to decide. `MCPError` is what the server answered instead of a result.
        """

        async def call_client(client: Client[ClientTransport]) -> CallResult:
            self._is_guess = False  # a server may know by now what it must not lose
            try:
                result: CallResult = await client.session.call_tool(
                    name, arguments, allow_input_required=True, **options
                )
            except ValidationError as error:
                # The tool has run: what it answered is taken as it is, never asked for again.
                if (answered := _answered_result(error)) is None:
                    raise
                self._leave_modern(client, error)
                return answered
            return result

        try:
            with self._breaker.guard_call(name, _is_lost):
                return await self._send_request(call_client)
        except MCPError as error:
            if self._login.is_refused:
                raise UpstreamLoginError(self._login_refusal()) from error
            if error.code != mcp_types.CONNECTION_CLOSED:
                raise
            raise UpstreamLostError(
                f"the connection to MCP server {self.name!r} ended during the call; it may or may "
                "not have run. The next call connects again"
            ) from error

    async def list_tools(self) -> list[mcp_types.Tool]:
        """Return the tools of the server, or an `UpstreamUnavailableError`."""
        try:
            return await self._listed_tools()
        except UpstreamUnavailableError:
            raise
        except Exception as error:  # a malformed list, a transport's own error: no list either way
            if isinstance(error, MCPError) and error.code == mcp_types.METHOD_NOT_FOUND:
                return []
            raise UpstreamUnavailableError(
                f"MCP server {self.name!r}: {_error_reason(error)}"
            ) from error

    async def _listed_tools(self) -> list[mcp_types.Tool]:
        async def list_client(client: Client[ClientTransport]) -> list[mcp_types.Tool] | None:
            try:
                return await client.list_tools()
            except ValidationError as error:
                if not self._leave_modern(client, error):
                    raise
                return None

        listed = await self._send_request(list_client)
        if listed is None:
            listed = await self._send_request(list_client)
        return listed or []

    def _leave_modern(self, client: Client[ClientTransport], error: ValidationError) -> bool:
        """Speak the older protocol from now on, where a server offers a newer one and breaks it."""
        missing = {each["loc"][-1] for each in error.errors() if each["type"] == "missing"}
        if not missing & _OF_MODERN_RESULTS:
            return False
        if self._mode == "legacy":
            return client is self._forgotten  # another request has met it first
        self._mode, self._forgotten = "legacy", client
        _logger.warning(
            "MCP server %r offers protocol 2026-07-28 and leaves %s out of its results: its older "
            "protocol is used",
            self.name,
            ", ".join(sorted(map(str, missing & _OF_MODERN_RESULTS))),
        )
        return True

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
            await _close_client(client)

    async def _send_request(self, send: Callable[[Client[ClientTransport]], Awaitable[T]]) -> T:
        """Send over the kept connection; once more when the server has forgotten its session.

        A server that was started again refuses the old session before it looks at the request, so
        sending it again over a new one repeats nothing.
        """
        client = await self.connected_client()
        try:
            return await send(client)
        except MCPError as error:
            has_session = client.transport.get_session_id() is not None  # HTTP before 2026-07-28
            if not has_session or error.message.casefold() not in _FORGOTTEN_SESSION:
                raise
        self._forgotten = client
        return await send(await self.connected_client())

    def _login_refusal(self) -> str:
        return f"MCP server {self.name!r}: 401 Unauthorized; {self._login.refusal_hint()}"

    def _begin_connecting(self) -> "asyncio.Task[Client[ClientTransport]]":
        def end_connecting(task: "asyncio.Task[Client[ClientTransport]]") -> None:
            if self._connecting is task:
                self._connecting = None
            if not task.cancelled():
                task.exception()  # marks it as seen: at start no one may be waiting

        context = self._context.copy() if self._context is not None else None
        task = asyncio.get_running_loop().create_task(
            self._connect_client(), name=f"aftercall-connect-{self.name}", context=context
        )
        task.add_done_callback(end_connecting)
        return task

    async def _connect_client(self) -> Client[ClientTransport]:
        ended, self._client = self._client, None
        if ended is not None:
            _logger.warning("MCP server %r has ended; connecting again", self.name)
            await _close_client(ended)
        try:
            client = await self._enter_client()
        except Exception as error:
            self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            self._paused_until = time.monotonic() + self._pause_s
            self._last_problem = (
                f"MCP server {self.name!r} cannot be reached: {_error_reason(error)}"
            )
            if self._login.is_refused:
                self._last_problem = self._login_refusal()
            _logger.warning("%s", self._last_problem)
            raise UpstreamUnavailableError(self._last_problem) from error
        self._pause_s = 0.0
        self._client = client
        return client

    async def _enter_client(self) -> Client[ClientTransport]:
        """Connect, in the newest protocol also where the client's older one is not spoken."""
        wire, is_chosen = self._mode, self._mode is not None
        if wire is None:
            wire = await self._front.read()
            self._is_guess = self._front.known is None
        for each in (wire,) if is_chosen or wire == "auto" else (wire, "auto"):
            self._mode = each
            client = self._new_client()
            try:
                # Left by `close`, since it outlives every block.
                await client.__aenter__()  # type: ignore[no-untyped-call]  # FastMCP leaves it so
            except MCPError as error:
                if each == wire == "auto" or is_chosen or error.code not in _NO_HANDSHAKE:
                    raise
            else:
                return client
        raise UpstreamUnavailableError("it speaks no protocol that is known here")

    def _new_client(self) -> Client[ClientTransport]:
        server = self._server
        transport: ClientTransport
        if server.command is not None:
            env = server.env
            if server.gets_environment:
                env = {key: each for key, each in os.environ.items() if key != KEY_VARIABLE} | env
            transport = WatchedStdioTransport(
                StdioServerParameters(
                    command=server.command, args=server.args, env=env, cwd=server.cwd
                ),
                errlog=self._errlog or sys.__stderr__ or sys.stderr,
            )
        else:
            transport = StreamableHttpTransport(
                server.url, headers=server.headers, auth=self._login
            )
        # Up to 2025-11-25 a server may ask on its own, and a client of later has no ear for it.
        asks = self._front.known == "legacy"
        client = ProxyClient(
            transport,
            name=f"aftercall-{self.name}",
            forward_incoming_headers=False,
            mode=self._mode or "auto",
            roots=None,
            sampling_handler=self.relay.ask_model if asks else None,
            elicitation_handler=self.relay.ask_user if asks else None,
            progress_handler=None,
            log_handler=self._pass_log,
            message_handler=self._on_message,
            timeout=server.timeout and server.timeout / 1000,
            init_timeout=CONNECT_TIMEOUT_S,
        )
        options = client._transport_options or TransportOptions()  # noqa: SLF001  # no setting
        client._transport_options = replace(options, session_class=SharedSession)  # noqa: SLF001
        return client

    async def _pass_log(self, message: LogMessage) -> None:
        _logger.debug("%s: %s", self.name, message.data)
        await self.relay.pass_log(message)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._on_tools_changed()
        elif isinstance(message, mcp_types.ResourceUpdatedNotification):
            await self.on_resource_updated(self.name, str(message.params.uri))


async def _ignore_update(_server: str, _uri: str) -> None:
    """Do nothing: no client wants to know."""


def _answered_result(error: ValidationError) -> mcp_types.CallToolResult | None:
    """Return the result that lacks only what the newest protocol asks for; None for another."""
    for each in error.errors():
        raw = each["input"]
        if each["type"] == "missing" and each["loc"][-1] == "resultType" and isinstance(raw, dict):
            try:
                whole = {**raw, "resultType": "complete"}
                return mcp_types.CallToolResult.model_validate(whole, by_name=False)
            except ValidationError:
                return None
    return None


def _is_lost(error: BaseException) -> bool:
    """Return whether a call was lost on the way: what a server answers, whatever it is, was not."""
    if isinstance(error, MCPError):
        return error.code in (mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT)
    # Connecting has a pause of its own.
    return not isinstance(error, UpstreamUnavailableError)


async def _close_client(client: Client[ClientTransport]) -> None:
    """Closing raises again why a connection had ended; the call that it ended has received it."""
    try:
        closing = client.close()  # type: ignore[no-untyped-call]  # FastMCP leaves it untyped
        await asyncio.wait_for(closing, _CLOSE_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001  # whatever it is, there is nothing left to close
        _logger.debug("closing %s: %s", client.name, _error_reason(error))


def _error_reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"
