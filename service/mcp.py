"""`/mcp`: the service's tools for MCP clients, over streamable HTTP.

Every request is answered by itself, with one JSON answer: nothing is kept between two of them, so
any service process can take any request, and there is no stream to hold open. The MCP SDK costs
some 24 MiB, so it is imported with the first request, and never where nobody speaks MCP.
"""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from starlette.types import Message, Receive, Scope, Send

from service.bodies import read_body
from service.middleware import hosts_to_answer, refuse_foreign_origin
from service.settings import Settings

if TYPE_CHECKING:
    from service.mcp_exchange import McpExchange

PATH = "/mcp"


def install_mcp(app: FastAPI, settings: Settings) -> None:
    """Answer MCP at `/mcp`, by the app's own routes."""
    # Not part of the contract that OpenAPI describes: MCP clients ask for the list of tools.
    endpoint = _McpEndpoint(app, settings)
    app.add_api_route(PATH, endpoint.post, methods=["POST"], include_in_schema=False)


class _McpEndpoint:
    def __init__(self, app: FastAPI, settings: Settings) -> None:
        self._app = app
        self._max_body_bytes = settings.limits.body_bytes
        hosts = hosts_to_answer(settings.server.host, settings.server.allowed_hosts)
        public = urlsplit(settings.server.public_url or "").hostname
        self._hosts = hosts if public is None else hosts | {public}
        self._exchange: McpExchange | None = None
        self._opening = asyncio.Lock()

    async def post(self, request: Request) -> Response:
        """One message of an MCP client."""
        refuse_foreign_origin(request.headers.get("origin"), self._hosts)
        # Read here, so that a body that is too large or of another kind is refused as anywhere.
        body = await read_body(request)
        return _Exchanged(await self._opened(), body)

    async def _opened(self) -> "McpExchange":
        async with self._opening:
            if self._exchange is None:
                # Half a second of importing, during which others are answered.
                self._exchange = await asyncio.to_thread(self._open)
            return self._exchange

    def _open(self) -> "McpExchange":
        from service.mcp_exchange import (  # noqa: PLC0415  # imports the MCP SDK
            McpExchange,
        )

        return McpExchange(self._app, max_body_bytes=self._max_body_bytes)


class _Exchanged(Response):
    """Whatever MCP answers to a body that was read already."""

    def __init__(self, exchange: "McpExchange", body: bytes) -> None:
        super().__init__()
        self._exchange = exchange
        self._read = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread = True

        async def read_again() -> Message:
            nonlocal unread
            if not unread:  # then it is asked whether the client has gone
                return await receive()
            unread = False
            return {"type": "http.request", "body": self._read, "more_body": False}

        await self._exchange.answer(scope, read_again, send)
