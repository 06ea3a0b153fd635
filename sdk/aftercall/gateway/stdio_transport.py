"""A stdio connection to an MCP server that notices when the server ends.

FastMCP's own transport can only be asked about its end through private attributes, and a call on a
connection that ended fails like a call that was lost on the way. The difference matters: the first
never reached the tool and can simply be sent again.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol, Self, TextIO, Unpack

import anyio
from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

Message = SessionMessage | Exception
"""What arrives: a message, or what could not be parsed as one."""


class WatchedStdioTransport(ClientTransport):
    """Starts a server for each connection and stops it with the connection.

    Args:
        parameters: the command, its arguments, environment and folder.
        errlog: where the server's standard error goes; must have a file descriptor.
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
            watched = _WatchedStream(read, self._note_end)
            async with options.session_class(watched, write, **session_kwargs) as session:
                yield session

    def _note_end(self) -> None:
        self.has_ended = True


class _Readable(Protocol):
    """What a session reads from; MCP's own protocol for it is not public."""

    async def receive(self) -> Message: ...
    async def aclose(self) -> None: ...
    async def __anext__(self) -> Message: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...


class _WatchedStream:
    """A read stream that tells when it ends; otherwise as the one within."""

    def __init__(self, inner: _Readable, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    async def receive(self) -> Message:
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self._inner.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)
