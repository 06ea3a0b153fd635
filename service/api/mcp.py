"""`/mcp`: the service's tools for MCP clients, over streamable HTTP.

Every request is answered by itself, with one JSON answer: nothing is kept between two of them, so
any service process can take any request, and there is no stream to hold open. The MCP SDK costs
some 24 MiB, so it is imported with the first request, and never where no one speaks MCP.
"""

import asyncio
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from starlette.types import Message, Receive, Scope, Send

from service.requests import read_body
from service.settings import Settings

if TYPE_CHECKING:
    from service.mcp_exchange import McpExchange


def install_mcp(app: FastAPI, settings: Settings) -> None:
    """Answer MCP at `/mcp`, by the app's own routes."""
    opening = asyncio.Lock()
    exchange: McpExchange | None = None

    def open_exchange() -> "McpExchange":
        from service.mcp_exchange import McpExchange  # noqa: PLC0415  # imports the MCP SDK

        return McpExchange(app, max_body_bytes=settings.limits.body_bytes)

    async def answer_post(request: Request) -> Response:
        nonlocal exchange
        # Read here, so that a body that is too large or of another kind is refused as anywhere.
        body = await read_body(request)
        async with opening:
            if exchange is None:
                # The import takes half a second; other requests are answered meanwhile.
                exchange = await asyncio.to_thread(open_exchange)
        return _Exchanged(exchange, body)

    # OpenAPI leaves it out: MCP clients ask for the list of tools.
    app.add_api_route("/mcp", answer_post, methods=["POST"], include_in_schema=False)


class _Exchanged(Response):
    """The answer of MCP to a body that was read already."""

    def __init__(self, exchange: "McpExchange", body: bytes) -> None:
        super().__init__()
        self._exchange = exchange
        self._unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def read_again() -> Message:
            # After the body, a read only shows whether the client has gone.
            return self._unread.pop() if self._unread else await receive()

        await self._exchange.answer_request(scope, read_again, send)
