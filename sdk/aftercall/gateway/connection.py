"""What is around a connection to a server: its process, its login, and lost calls."""

import asyncio
import json
import logging
import shlex
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TextIO, Unpack

import anyio
import httpx2
import mcp_types
from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from fastmcp.exceptions import ToolError
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

from aftercall.errors import ConfigurationError
from aftercall.tables import keep_latest

LOST_IN_A_ROW = 3
"""Calls of a tool that are lost one after the other until the next ones are not sent."""
LOST_OF_SERVER = 6
"""The same of all tools of a server together."""
_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 120.0
LIST_WAIT_S = 2.8
"""Seconds from a client's first question on that its servers have: many clients ask once, and what
comes later is only announced. With what a list takes it is there in 3 s."""
_STILL_COMING_S = 1.0
"""... and after the last list that came: servers that start together come soon after one another,
on a machine where all of them take longer."""
_SAID_EVERY_S = 10.0
_MAX_TOOLS = 1_000
_HELPER_S = 10.0


class Login(httpx2.Auth):
    """The headers that a `headersHelper` prints, asked for again once where they are refused (401).

    A refused request was not looked at, so it is sent again.
    """

    def __init__(self, server: str, helper: str) -> None:
        self._what = f"the headersHelper of server {server!r}"
        self._helper = helper
        self._headers: dict[str, str] | None = None
        self._renewing = asyncio.Lock()
        self.is_refused = False
        """Whether the last answer was a 401."""

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield requests with the login's headers, as httpx asks for them."""
        if self._helper:
            request.headers.update(await self._current_headers(None))
        sent = self._headers
        response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED and self._helper:
            request.headers.update(await self._current_headers(sent))
            response = yield request
        self.is_refused = response.status_code == httpx2.codes.UNAUTHORIZED

    def refusal_hint(self) -> str:
        """Return what to do about a login that is refused."""
        if self._helper:
            return f"log in again: what `{self._helper}` prints is refused too"
        return (
            'log in again and renew its "headers" in the configuration, or name a command there '
            'that prints them as JSON ("headersHelper")'
        )

    async def _current_headers(self, refused: dict[str, str] | None) -> dict[str, str]:
        async with self._renewing:
            if self._headers is None or self._headers is refused:
                self._headers = await self._printed_headers()
            return self._headers

    async def _printed_headers(self) -> dict[str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(self._helper), stdout=asyncio.subprocess.PIPE
            )
        except OSError as error:
            raise ConfigurationError(f"{self._what} cannot be run: {error}") from error
        try:
            async with asyncio.timeout(_HELPER_S):
                output, _ = await process.communicate()
        except TimeoutError as error:
            process.kill()
            raise ConfigurationError(f"{self._what} took over {_HELPER_S:.0f} s") from error
        try:
            headers = json.loads(output)
        except ValueError:
            headers = None
        if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
            raise ConfigurationError(f"{self._what} must print a JSON object of texts")
        return headers


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

            async def watch_end() -> None:
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
                watching.start_soon(watch_end)
                yield session
                watching.cancel_scope.cancel()


class UpstreamUnavailableError(ToolError):
    """A server behind the gateway cannot be reached; the call did not get to it."""

    code = mcp_types.CONNECTION_CLOSED


@dataclass(slots=True)
class _Circuit:
    most: int
    lost: int = 0
    pause_s: float = 0.0
    closed_at: float = 0.0
    is_trying: bool = False


class Breaker:
    """Stops calls that would be lost on the way, by tool and by server.

    What counts is the transport alone: a connection that ends, a time-out. A tool that answers,
    whatever it states, closes it. After a pause (5 s, doubling to two minutes) one call is sent to
    see (half-open); its end decides for the next ones. `clock` gives seconds.
    """

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._server = _Circuit(LOST_OF_SERVER)
        self._tools: dict[str, _Circuit] = {}

    @contextmanager
    def guard_call(self, tool: str, is_lost: Callable[[BaseException], bool]) -> Iterator[None]:
        """Around a call; `is_lost` states of what it raises whether it was lost on the way."""
        own = self._tools.get(tool) or _Circuit(LOST_IN_A_ROW)
        circuits = (self._server, keep_latest(self._tools, tool, own, _MAX_TOOLS))
        now = self._clock()
        for circuit, what in zip(circuits, ("this server", f"{tool!r}"), strict=True):
            left = circuit.closed_at - now
            if circuit.lost >= circuit.most and (left > 0 or circuit.is_trying):
                raise UpstreamUnavailableError(
                    f"MCP server {self._name!r}: the last {circuit.lost} calls of {what} were lost "
                    f"on the way, so this one was not sent; one will be tried in "
                    f"{max(left, 1):.0f} s"
                )
        trying = [each for each in circuits if each.lost >= each.most]
        for circuit in trying:
            circuit.is_trying = True
        try:
            yield
        except Exception as error:
            self._count_lost(circuits, lost=is_lost(error))
            raise
        else:
            self._count_lost(circuits, lost=False)
        finally:
            for circuit in trying:
                circuit.is_trying = False

    def _count_lost(self, circuits: tuple[_Circuit, ...], *, lost: bool) -> None:
        for circuit in circuits:
            circuit.lost = circuit.lost + 1 if lost else 0
            if circuit.lost < circuit.most:
                circuit.pause_s = 0.0
                continue
            circuit.pause_s = min(max(2 * circuit.pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            circuit.closed_at = self._clock() + circuit.pause_s


class FirstAnswers:
    """How long a client waits for the first answers of several servers.

    Each has its time, also where all others are there: a server that is a second late is the rule,
    one that hangs the exception. One server alone is waited for, however long it takes: without it
    there is nothing to list. `clock` gives seconds.
    """

    def __init__(self, servers: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._are_several = servers > 1
        self._clock = clock
        self._deadline: float | None = None
        self._came_at: float | None = None

    def note_answer(self) -> None:
        """Note that a server has listed its tools."""
        self._came_at = self._clock()

    def left_s(self) -> float | None:
        """Seconds that are left, from the first question on; None for as long as it takes."""
        if not self._are_several:
            return None
        if self._deadline is None:
            self._deadline = self._clock() + LIST_WAIT_S
        return max(0.0, self._deadline - self._clock())

    @property
    def are_over(self) -> bool:
        """Return whether a client has waited long enough.

        For something, and no more seems to come.
        """
        if self.left_s() != 0 or self._came_at is None:
            return False
        return self._clock() - self._came_at >= _STILL_COMING_S


class SeldomSaid(logging.Filter):
    """Lets the same message through once in a while: a server may print garbage without end."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        now, words = time.monotonic(), str(record.msg)
        is_new = now - self._said.get(words, -_SAID_EVERY_S) >= _SAID_EVERY_S
        if is_new:
            keep_latest(self._said, words, now, 100)
        return is_new
