"""Servers that are reached at an address, and the connection's life."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from fastmcp.client.client import Client
from fastmcp.client.transports import ClientTransport
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_headers

from aftercall.gateway.config import UpstreamServer
from aftercall.gateway.upstreams import Upstream, UpstreamUnavailableError
from tests.gateway.conftest import OpenGateway
from tests.gateway.http_server import HttpServer
from tests.gateway.waiting import until, until_answered

pytestmark = pytest.mark.real


class _Http(HttpServer):
    """A FastMCP server over HTTP that can be stopped and started on the same port."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.headers: list[dict[str, str]] = []

    async def start(self) -> None:
        app: FastMCP[Any] = FastMCP("adder", instructions="Adds.")

        @app.tool(annotations={"readOnlyHint": True})
        async def add(a: int, b: int, ctx: Context) -> int:
            self.calls += 1
            self.headers.append(get_http_headers(include_all=True))
            await ctx.report_progress(1, 2, "half")
            return a + b

        await super().start(app.http_app())


@pytest.fixture
async def http() -> AsyncIterator[_Http]:
    server = _Http()
    await server.start()
    yield server
    await server.stop()


class _HandshakeUpstream(Upstream):
    """Speaks the protocol of before 2026-07-28, in which HTTP servers keep sessions."""

    def _new_client(self) -> Client[ClientTransport]:
        client = super()._new_client()
        client.mode = "legacy"
        return client


@asynccontextmanager
async def opened(upstream: Upstream) -> AsyncIterator[Upstream]:
    upstream.start()
    yield upstream
    await upstream.close()


@pytest.fixture(params=[Upstream, _HandshakeUpstream], ids=["2026-07-28", "handshake"])
def upstream(request: pytest.FixtureRequest, http: _Http) -> Upstream:
    made: Upstream = request.param(UpstreamServer(name="adder", url=http.url))
    return made


async def test_an_http_server_works_through_the_gateway(
    open_gateway: OpenGateway, http: _Http
) -> None:
    """Tools, results, progress and the server's instructions come through."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    servers = {"adder": {"url": http.url, "headers": {"x-key": "k-1"}}}
    async with open_gateway(servers, progress_handler=progress) as client:
        instructions = client.instructions
        (tool,) = await client.list_tools()
        result = await client.call_tool("add", {"a": 1, "b": 2})
        await until(lambda: bool(heard))

    assert instructions == "Adds."
    assert tool.annotations.read_only_hint is True
    assert result.data == 3
    assert heard == [(1, 2, "half")]
    assert http.headers[0]["x-key"] == "k-1"


async def test_a_server_that_was_away_is_reached_again(upstream: Upstream, http: _Http) -> None:
    """While it is away calls say so; when it is back they work, without a new gateway."""
    async with opened(upstream):
        await upstream.call_tool("add", {"a": 1, "b": 2})
        await http.stop()
        with pytest.raises(ToolError):
            await upstream.call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(UpstreamUnavailableError, match="cannot be reached"):
            await upstream.call_tool("add", {"a": 1, "b": 2})
        await http.start()
        await until_answered(lambda: _answers(upstream))


async def _answers(upstream: Upstream) -> bool:
    try:
        await upstream.call_tool("add", {"a": 1, "b": 2})
    except UpstreamUnavailableError:
        return False
    return True


async def test_a_server_that_was_started_anew_meanwhile_is_called_once(
    upstream: Upstream, http: _Http
) -> None:
    """It has forgotten its sessions; the call is sent over a new one, and runs once."""
    async with opened(upstream):
        await upstream.call_tool("add", {"a": 1, "b": 2})
        await http.stop()
        await http.start()
        result = await upstream.call_tool("add", {"a": 2, "b": 2})

    assert getattr(result, "structured_content", None) == {"result": 4}
    assert http.calls == 2


async def test_after_a_failed_start_it_is_not_started_for_every_call(tmp_path: Path) -> None:
    """A server that cannot start is tried again after a pause; until then its problem is told."""
    started = tmp_path / "started"
    script = f"open({str(started)!r}, 'a').write('x'); raise SystemExit(1)"
    server = UpstreamServer(name="sick", command=sys.executable, args=["-c", script])
    async with opened(Upstream(server)) as upstream:
        for _ in range(5):
            with pytest.raises(UpstreamUnavailableError, match="'sick' cannot be reached"):
                await upstream.connected_client()

    assert started.read_text() == "x"


async def test_a_caller_that_leaves_does_not_break_the_connection_for_others(
    tmp_path: Path,
) -> None:
    """The connection that a cancelled call began is the one the next call uses."""
    started = tmp_path / "started"
    program = (
        f"open({str(started)!r}, 'a').write('x'); import time; time.sleep(0.3); "
        "from mcp_server_time import main; main()"
    )
    server = UpstreamServer(name="time", command=sys.executable, args=["-c", program])
    async with opened(Upstream(server)) as upstream:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstream.list_tools(), 0.05)
        tools = await upstream.list_tools()

    assert [tool.name for tool in tools] == ["get_current_time", "convert_time"]
    assert started.read_text() == "x"
