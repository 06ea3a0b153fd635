"""The MCP servers behind the gateway: each started once, its session kept; and what they offer.

FastMCP's proxy opens and closes a connection for every call, which starts a stdio server anew each
time. Here one client per server stays connected for all callers, and one that has ended is renewed
at the next call. What follows from sharing it:

- headers of a caller are never passed on (they would serve every later caller too);
- requests from a server to "its" client (sampling, elicitation) go to the client whose calls run,
  where that is one (`CallerRelay`); roots have no client to go to, and are not announced;
- progress goes to the call it belongs to.

Resources and prompts go FastMCP's own way (over the kept client); tools have one of ours.
"""

import asyncio
import contextvars
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, TextIO, TypeVar, Unpack

import anyio
import mcp_types
from fastmcp.client.client import Client
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports import ClientTransport, StreamableHttpTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.context import Context
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.proxy import ProxyClient, ProxyProvider, ProxyTool
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage
from pydantic import PrivateAttr, ValidationError

from aftercall.gateway.config import UpstreamServer
from aftercall.gateway.connection import (
    Breaker,
    CallerRelay,
    FirstAnswers,
    Login,
    SeldomSaid,
    UpstreamUnavailableError,
    progress_to,
)
from aftercall.running import KEY_VARIABLE

CONNECT_TIMEOUT_S = 60.0
"""A first start through `npx` or `uvx` downloads the server."""
MOST_TOOLS = 2_000
"""Tools of one server that are offered: no client shows more, and 20,000 take 10 s to make."""
_CLOSE_TIMEOUT_S = 8.0
"""MCP gives a stdio server 2 s to leave, 2 s after SIGTERM, 2 s after SIGKILL."""
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0

# The words of the Python and the TypeScript SDK for a session id that they do not know (HTTP 404).
_OF_MODERN_RESULTS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What each result holds from 2026-07-28 on."""
_FORGOTTEN_SESSION = ("session not found", "session terminated")
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
_logger = logging.getLogger(__name__)
logging.getLogger("mcp.client.stdio").addFilter(SeldomSaid())
T = TypeVar("T")
CallResult = mcp_types.CallToolResult | mcp_types.InputRequiredResult


class UpstreamLostError(ToolError):
    """The connection to a server ended during a call; the call may or may not have run."""

    code = mcp_types.CONNECTION_CLOSED


class UpstreamLoginError(ToolError):
    """A server refused the login; it did not look at the call."""

    code = 401


class WatchedStdioTransport(ClientTransport):
    """Starts a server for each connection, stops it with the connection, and notices its end.

    FastMCP's own transport can only be asked about its end through private attributes, and a call
    on a connection that ended fails like a call that was lost on the way. The difference matters:
    the first never reached the tool and can simply be sent again. `errlog`, where the server's
    standard error goes, must have a file descriptor.
    """

    def __init__(self, parameters: StdioServerParameters, *, errlog: TextIO) -> None:
        self._parameters = parameters
        self._errlog = errlog
        self.has_ended = False
        """Whether the server closed its output: it has ended, or will not answer any more."""

    @asynccontextmanager
    async def connect_session(
        self,
        *,
        transport_options: TransportOptions | None = None,
        **session_kwargs: Unpack[SessionKwargs],
    ) -> AsyncIterator[ClientSession]:
        """Start the server and yield a session that is not initialised yet."""
        options = transport_options or TransportOptions()
        self.has_ended = False
        async with stdio_client(self._parameters, errlog=self._errlog) as (read, write):
            sink, source = anyio.create_memory_object_stream[SessionMessage | Exception]()

            async def watch() -> None:
                async with sink:
                    async for message in read:
                        await sink.send(message)
                self.has_ended = True

            async with (
                sink,
                source,
                anyio.create_task_group() as watching,
                options.session_class(source, write, **session_kwargs) as session,
            ):
                watching.start_soon(watch)
                yield session
                watching.cancel_scope.cancel()


class Upstream:
    """One MCP server, kept connected. Use `start` and `close`.

    `on_tools_changed` is called when the server says so. Without `errlog` a stdio server's standard
    error goes to this process's own.
    """

    def __init__(
        self,
        server: UpstreamServer,
        *,
        on_tools_changed: Callable[[], None] = lambda: None,
        errlog: TextIO | None = None,
    ) -> None:
        self.name = server.name
        self._server = server
        self._on_tools_changed = on_tools_changed
        self._errlog = errlog
        self._client: Client[ClientTransport] | None = None
        self._mode: Literal["auto", "legacy"] = "auto"
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
        """Where the server's own questions go."""

    @property
    def instructions(self) -> str | None:
        """What the server says about its use; None when it says nothing or is not connected."""
        return self._client.instructions if self._client is not None else None

    def start(self, *, now: bool = True) -> None:
        """Begin connecting, `now` or when it is first needed; returns at once. In the event loop.

        The context of this moment is the one that all connections live in: a connection made
        while serving a request must not keep that request's context (FastMCP's, a tracer's).
        """
        self._closed = False
        self._context = contextvars.copy_context()
        if now:
            self._connecting = self._begin_connecting()

    async def client(self) -> Client[ClientTransport]:
        """The connected client; connects first when there is none or its connection has ended.

        After a failure (`UpstreamUnavailableError`) it is not tried again for a moment (0.5 s,
        doubling to 30 s), and the last problem is raised at once.
        """
        client = self._client
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

        async def call(client: Client[ClientTransport]) -> CallResult:
            try:
                result: CallResult = await client.session.call_tool(
                    name, arguments, allow_input_required=True, **options
                )
            except ValidationError as error:
                # The tool has run: what it answered is taken as it is, never asked for again.
                if (answered := _answered(error)) is None:
                    raise
                self._leave_modern(client, error)
                return answered
            return result

        try:
            with self._breaker.guarding(name, _is_lost):
                return await self._request(call)
        except MCPError as error:
            if self._login.is_refused:
                raise UpstreamLoginError(self._refusal()) from error
            if error.code != mcp_types.CONNECTION_CLOSED:
                raise
            raise UpstreamLostError(
                f"the connection to MCP server {self.name!r} ended during the call; it may or may "
                "not have run. The next call connects again"
            ) from error

    async def list_tools(self) -> list[mcp_types.Tool]:
        """The tools of the server, or an `UpstreamUnavailableError`."""
        try:
            return await self._listed_tools()
        except UpstreamUnavailableError:
            raise
        except Exception as error:  # a malformed list, a transport's own error: no list either way
            if isinstance(error, MCPError) and error.code == mcp_types.METHOD_NOT_FOUND:
                return []
            raise UpstreamUnavailableError(f"MCP server {self.name!r}: {_reason(error)}") from error

    async def _listed_tools(self) -> list[mcp_types.Tool]:
        async def ask(client: Client[ClientTransport]) -> list[mcp_types.Tool] | None:
            try:
                return await client.list_tools()
            except ValidationError as error:
                if not self._leave_modern(client, error):
                    raise
                return None

        listed = await self._request(ask)
        if listed is None:
            listed = await self._request(ask)
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
            has_session = client.transport.get_session_id() is not None  # HTTP before 2026-07-28
            if not has_session or error.message.casefold() not in _FORGOTTEN_SESSION:
                raise
        self._forgotten = client
        return await send(await self.client())

    def _refusal(self) -> str:
        return f"MCP server {self.name!r}: 401 Unauthorized; {self._login.hint()}"

    def _begin_connecting(self) -> "asyncio.Task[Client[ClientTransport]]":
        def connected(task: "asyncio.Task[Client[ClientTransport]]") -> None:
            if self._connecting is task:
                self._connecting = None
            if not task.cancelled():
                task.exception()  # marks it as seen: at start nobody may be waiting

        context = self._context.copy() if self._context is not None else None
        task = asyncio.get_running_loop().create_task(
            self._connect(), name=f"aftercall-connect-{self.name}", context=context
        )
        task.add_done_callback(connected)
        return task

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
            self._last_problem = f"MCP server {self.name!r} cannot be reached: {_reason(error)}"
            if self._login.is_refused:
                self._last_problem = self._refusal()
            _logger.warning("%s", self._last_problem)
            raise UpstreamUnavailableError(self._last_problem) from error
        self._pause_s = 0.0
        self._client = client
        return client

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
        return ProxyClient(
            transport,
            name=f"aftercall-{self.name}",
            forward_incoming_headers=False,
            mode=self._mode,
            roots=None,
            sampling_handler=self.relay.sample,
            elicitation_handler=self.relay.elicit,
            progress_handler=None,
            log_handler=self._log,
            message_handler=self._on_message,
            timeout=server.timeout and server.timeout / 1000,
            init_timeout=CONNECT_TIMEOUT_S,
        )

    async def _log(self, message: LogMessage) -> None:
        _logger.debug("%s: %s", self.name, message.data)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._on_tools_changed()


def _answered(error: ValidationError) -> mcp_types.CallToolResult | None:
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
    """Whether a call was lost on the way: what a server answers, whatever it is, was not."""
    if isinstance(error, MCPError):
        return error.code in (mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT)
    # Connecting has a pause of its own.
    return not isinstance(error, UpstreamUnavailableError)


async def _close(client: Client[ClientTransport]) -> None:
    """Closing raises again why a connection had ended; the call that it ended has heard it."""
    try:
        closing = client.close()  # type: ignore[no-untyped-call]  # FastMCP leaves it untyped
        await asyncio.wait_for(closing, _CLOSE_TIMEOUT_S)
    except Exception as error:  # noqa: BLE001  # whatever it is, there is nothing left to close
        _logger.debug("closing %s: %s", client.name, _reason(error))


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"


def _crossing(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in _OF_ONE_CONNECTION}


class UpstreamTool(ProxyTool):
    """A tool of a server behind the gateway."""

    _upstream: Upstream = PrivateAttr()

    @classmethod
    def of(cls, upstream: Upstream, listed: mcp_types.Tool) -> Tool:
        """A tool as it was listed; copies under other names keep their server."""
        tool = cls.from_mcp_tool(upstream.client, listed)
        if isinstance(tool, UpstreamTool):  # FastMCP types what it makes as the base class
            tool._upstream = upstream  # noqa: SLF001  # of this class
        return tool

    async def run(self, arguments: dict[str, Any], context: Context | None = None) -> ToolResult:
        """Call the tool at its server; a `ToolError` is in its words, or says that it is away."""
        context = context or get_context()
        request = context.request_context
        meta = dict(request.meta or {}) if request is not None else {}
        sent = {key: value for key, value in meta.items() if not key.startswith("aftercall/")}
        try:
            with self._upstream.relay.serving(context):
                result = await self._upstream.call_tool(
                    self._backend_name or self.name,
                    arguments,
                    meta=_crossing(sent) or None,
                    progress_callback=progress_to(context, meta.get("progressToken")),
                    input_responses=context.input_responses,
                    request_state=context.request_state,
                )
        except MCPError as error:
            raise ToolError(error.message, log_level=logging.DEBUG) from error
        if isinstance(result, mcp_types.InputRequiredResult):
            return InputRequiredToolResult(result)
        return ToolResult(
            content=result.content,
            structured_content=result.structured_content,
            meta=_crossing(result.meta or {}) or None,
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
        super().__init__(upstream.client)
        self._first = first or FirstAnswers(1)
        self._late: set[asyncio.Task[dict[str, Tool]]] = set()
        self._upstream = upstream
        self._on_tools = on_tools
        self._tools = None if before is None else self._made(before)
        self.is_missed = False
        """Whether a client saw none of its tools, because the server was away."""

    def _made(self, listed: Sequence[mcp_types.Tool]) -> dict[str, Tool]:
        return {tool.name: UpstreamTool.of(self._upstream, tool) for tool in listed}

    def known(self, tool_name: str) -> Tool | None:
        """The tool of this name in the list last seen."""
        return (self._tools or {}).get(tool_name)

    async def refresh(self) -> dict[str, Tool]:
        """Ask the server for its tools; an `UpstreamUnavailableError` where it is away."""
        listed = await self._upstream.list_tools()
        if len(listed) > MOST_TOOLS:
            what = "%s lists %d tools, of which the first %d are offered"
            _logger.warning(what, self._upstream.name, len(listed), MOST_TOOLS)
            listed = listed[:MOST_TOOLS]
        self._tools = self._made(listed)
        self._first.came()
        self._on_tools(self._upstream.name, listed)
        return self._tools

    async def _refresh_in_time(self) -> dict[str, Tool]:
        """As `refresh`; a server that takes longer than the others may wait is away for now."""
        task = asyncio.create_task(self.refresh())
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
        """The list last seen; the server is asked only when it has never been.

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
        """One server that is away must not keep the lists of the others away."""
        try:
            return await listing
        except (MCPError, ToolError) as error:
            _logger.warning("no %s from %s: %s", what, self._upstream.name, error)
            return []

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        if (tool := self.known(name)) is None:
            # A new tool, a wrong name, or nothing was listed yet; the caller hears of a failure.
            tool = (await self.refresh()).get(name)
        return tool if tool is not None and (not version or version.matches(tool.version)) else None

    async def _get_tool_by_hash(self, tool_hash: str, tool_name: str) -> Tool | None:
        """Parts of a FastMCP app are not reached through the gateway."""
        del tool_hash, tool_name
        return None
