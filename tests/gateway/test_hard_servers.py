"""Servers that hang or flood, and clients that vanish: the others go on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from fastmcp import Client

from aftercall.gateway import connection
from tests.gateway.conftest import OpenGateway
from tests.gateway.results import texts

pytestmark = pytest.mark.real
_SERVER = """
import asyncio, sys
from fastmcp import Context, FastMCP
server = FastMCP("hard")
@server.tool
async def hang() -> str:
    await asyncio.sleep(3600)
@server.tool
async def flood(ctx: Context) -> str:
    for number in range(2000):
        print("noise " * 100, file=sys.stderr)
        await ctx.report_progress(number, 2000, "x" * 1000)
    return "z" * 4_000_000
@server.tool
def search(q: str = "") -> str:
    return q
server.run(show_banner=False)
"""
Hard = Callable[..., AbstractAsyncContextManager[Client[Any]]]


@pytest.fixture
def hard(open_gateway: OpenGateway) -> Hard:
    """A gateway in front of the hard server."""

    @asynccontextmanager
    async def opened(**own: Any) -> AsyncIterator[Client[Any]]:
        server = {"command": sys.executable, "args": ["-c", _SERVER], **own}
        async with open_gateway({"hard": server}) as client:
            yield client

    return opened


async def test_a_call_that_hangs_ends_at_its_time_and_the_next_one_works(hard: Hard) -> None:
    """The server is not given up for it."""
    async with hard(timeout=2_000) as client:
        await client.call_tool_mcp("search", {"q": "a"})
        hung = await client.call_tool_mcp("hang", {})
        works = await client.call_tool_mcp("search", {"q": "b"})
    assert hung.is_error
    assert "timed out" in texts(hung)[0]
    assert texts(works) == ["b"]


async def test_neither_a_client_that_leaves_nor_a_flood_holds_up_the_next_call(hard: Hard) -> None:
    """A cancellation goes on to the server; noise, progress and text come through whole."""
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async with hard() as client:
        waiting = asyncio.create_task(client.call_tool_mcp("hang", {}))
        await client.call_tool_mcp("search", {"q": "a"})
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        flooded = await client.call_tool("flood", {}, progress_handler=progress)
        works = await client.call_tool_mcp("search", {"q": "b"})
    assert len(texts(flooded)[0]) == 4_000_000
    assert len(heard) == 2000
    assert texts(works) == ["b"]


_KINDS = {
    "hangs": "import time; time.sleep(3600)",
    "garbage": "import time\nwhile True: print('no JSON', flush=True); time.sleep(0.005)",
    "ends": "raise SystemExit(3)",
    "lists_never": """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "tools/list": time.sleep(3600)
    if "id" not in asked: continue
    version = (asked.get("params") or {}).get("protocolVersion", "2025-06-18")
    info = {"serverInfo": {"name": "x", "version": "1"}, "capabilities": {"tools": {}}}
    is_first = asked["method"] == "initialize"
    answer = {"result": info | {"protocolVersion": version}} if is_first else {
        "error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | answer), flush=True)
""",
}


@pytest.mark.parametrize("kind", _KINDS)
async def test_a_server_that_gives_no_list_keeps_the_others_lists_from_nobody(
    open_gateway: OpenGateway, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has the tools of those that answer, and calls them."""
    monkeypatch.setattr(connection, "LIST_WAIT_S", 0.5)
    monkeypatch.setattr(connection, "_STILL_COMING_S", 15.0)  # however busy the machine is
    fine = {"command": sys.executable, "args": ["-c", _SERVER]}
    servers = {f"fine{number}": fine for number in range(2)}
    servers["bad"] = {"command": sys.executable, "args": ["-c", _KINDS[kind]]}
    async with open_gateway(servers) as client:
        names = {tool.name for tool in await client.list_tools()}
        works = await client.call_tool_mcp("fine1_search", {"q": "b"})
    assert {"fine0_search", "fine1_search"} <= names
    assert not any(name.startswith("bad_") for name in names)
    assert texts(works) == ["b"]


async def test_a_server_that_comes_late_is_announced(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client did not wait for is in the next list."""
    monkeypatch.setattr(connection, "LIST_WAIT_S", 0.2)
    monkeypatch.setattr(connection, "_STILL_COMING_S", 0.2)
    fine = {"command": sys.executable, "args": ["-c", _SERVER]}
    late = fine | {"args": ["-c", f"import time; time.sleep(6)\n{_SERVER}"]}
    async with open_gateway({"fine": fine, "late": late}) as client:
        first = {tool.name for tool in await client.list_tools()}
        while not any(name.startswith("late_") for name in first):
            await asyncio.sleep(0.1)
            first = {tool.name for tool in await client.list_tools()}
    assert "late_search" in first


_HALF_MODERN = """
import json, sys
TOOL = {"name": "count", "inputSchema": {"type": "object"}}
INFO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "half", "version": "1"}}
NEW = {"supportedVersions": ["2026-07-28", "2025-11-25"], "resultType": "complete"}
CACHED = {"ttlMs": 0, "cacheScope": "private"}
lists, calls = sys.argv[1] == "right", 0
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    method, result = asked["method"], {}
    if method == "server/discover": result = INFO | NEW | CACHED
    elif method == "initialize": result = INFO | {"protocolVersion": "2025-11-25"}
    elif method == "tools/list":
        result = {"tools": [TOOL]} | (CACHED | {"resultType": "complete"} if lists else {})
    elif method == "tools/call":
        calls += 1
        result = {"content": [{"type": "text", "text": str(calls)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("lists", ["right", "wrong"])
async def test_a_server_that_breaks_the_newest_protocol_is_spoken_to_in_its_older_one(
    open_gateway: OpenGateway, lists: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What lacks `resultType` is taken as it is: no call is made twice; it is said once."""
    server = {"command": sys.executable, "args": ["-c", _HALF_MODERN, lists]}
    async with open_gateway({"half": server}) as client:
        listed = await client.list_tools()
        while not listed:  # a busy machine starts it after the list had to be given
            await asyncio.sleep(0.1)
            listed = await client.list_tools()
        assert [tool.name for tool in listed] == ["count"]
        said = [texts(await client.call_tool_mcp("count", {}))[0] for _ in range(3)]
    # The older protocol is another connection, to another process.
    assert said == (["1", "1", "2"] if lists == "right" else ["1", "2", "3"])
    warned = [each for each in caplog.messages if "older protocol is used" in each]
    assert len(warned) == 1
