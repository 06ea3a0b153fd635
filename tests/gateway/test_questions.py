"""What servers ask: the client's model and user, through the gateway; and a login."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.client import Client
from fastmcp.client.transports import ClientTransport

from aftercall.gateway.config import GatewayConfig
from aftercall.gateway.upstreams import Upstream, UpstreamLoginError, UpstreamUnavailableError
from tests.gateway.conftest import OpenGateway
from tests.gateway.http_server import HttpServer
from tests.gateway.results import texts

pytestmark = pytest.mark.real
_ASKING = """
import asyncio
from fastmcp import Context, FastMCP
from mcp_types import SamplingMessage, TextContent
server = FastMCP("asking")
@server.tool
async def ask_model(ctx: Context) -> str:
    text = TextContent(type="text", text="2 and 2?")
    said = await ctx.session.create_message(
        [SamplingMessage(role="user", content=text)], max_tokens=9,
        related_request_id=ctx.request_id)
    return said.content.text
@server.tool
async def ask_user(ctx: Context) -> str:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    said = await ctx.session.elicit("Who?", schema, related_request_id=ctx.request_id)
    return f"{said.action} {said.content}"
server.run(show_banner=False)
"""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A server of before 2026-07-28, which asks by itself."""
    made = Upstream._new_client

    def before(self: Upstream) -> Client[ClientTransport]:
        client = made(self)
        client.mode = "legacy"
        return client

    monkeypatch.setattr(Upstream, "_new_client", before)
    return {"asking": {"command": sys.executable, "args": ["-c", _ASKING]}}


async def sampled(*_: object) -> str:
    return "4"


async def answered(*_: object) -> dict[str, str]:
    return {"name": "Ada"}


async def test_a_servers_questions_reach_the_client_that_calls(
    open_gateway: OpenGateway, asking: dict[str, Any]
) -> None:
    """The model's and the user's words come back."""
    async with open_gateway(
        asking, mode="legacy", sampling_handler=sampled, elicitation_handler=answered
    ) as client:
        model = await client.call_tool_mcp("ask_model", {})
        user = await client.call_tool_mcp("ask_user", {})
    assert texts(model) == ["4"]
    assert texts(user) == ["accept {'name': 'Ada'}"]


async def test_a_client_that_cannot_be_asked_is_not_waited_for(
    open_gateway: OpenGateway, asking: dict[str, Any]
) -> None:
    """The server hears so, as the protocol says it."""
    async with open_gateway(asking, mode="legacy") as client:
        model = await client.call_tool_mcp("ask_model", {})
        user = await client.call_tool_mcp("ask_user", {})
    assert model.is_error
    assert texts(user) == ["cancel None"]


class _Guarded:
    """A server over HTTP that takes one token, and refuses others with 401."""

    def __init__(self) -> None:
        app: FastMCP[Any] = FastMCP("guarded")
        self.wanted, self.calls = "one", 0

        @app.tool
        def add(a: int, b: int) -> int:
            self.calls += 1
            return a + b

        self._app = app.http_app()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or headers.get(b"x-token") == self.wanted.encode():
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def test_a_login_that_ended_is_renewed_once_and_else_named(tmp_path: Path) -> None:
    """By the command that the configuration names; the refused call is sent again and runs once."""
    guarded, server, printed = _Guarded(), HttpServer(), tmp_path / "headers.json"
    await server.start(guarded)

    def upstream(**entry: Any) -> Upstream:
        config = GatewayConfig.from_dict({"mcpServers": {"guarded": {"url": server.url, **entry}}})
        made = Upstream(config.servers[0])
        made.start()
        return made

    printed.write_text(json.dumps({"x-token": "one"}))
    renews, fixed = upstream(headersHelper=f"cat {printed}"), upstream(headers={"x-token": "one"})
    for each in (renews, fixed):
        await each.call_tool("add", {"a": 1, "b": 2})
    guarded.wanted = "two"
    printed.write_text(json.dumps({"x-token": "two"}))
    found = await renews.call_tool("add", {"a": 1, "b": 2})
    assert texts(found) == ["3"]
    assert guarded.calls == 3
    with pytest.raises(UpstreamLoginError, match='renew its "headers" in the configuration'):
        await fixed.call_tool("add", {"a": 1, "b": 2})
    guarded.wanted = "three"
    with pytest.raises(UpstreamLoginError, match="log in again: what `cat"):
        await renews.call_tool("add", {"a": 1, "b": 2})
    refused = upstream(headers={"x-token": "never"})
    with pytest.raises(UpstreamUnavailableError, match="401 Unauthorized; log in again"):
        await refused.call_tool("add", {"a": 1, "b": 2})
    for each in (renews, fixed, refused):
        await each.close()
    await server.stop()
