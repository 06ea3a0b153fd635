"""One request of an MCP client and its answer, by the MCP SDK; imported with the first of them.

The tools ask this very service, by its own routes and in this process: validation, redaction,
limits, errors and metrics are those of every other request. What a tool asks is logged under the
id of the MCP request that it was asked for.
"""

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from aftercall import AsyncClient
from aftercall.json_values import JsonObject
from aftercall.mcp_server.caller import Caller, name_or_none
from aftercall.mcp_server.server import build_server, client_name
from service.http.mcp_sessions import SESSION_HEADER, McpSession
from service.http.own_requests import OwnTransport, on_behalf_of
from service.http.request_log import request_id_of

_SESSION = "aftercall_mcp_session"

Context: TypeAlias = ServerRequestContext[JsonObject, Any]
"""Its `request` is Starlette's."""


class McpExchange:
    """Answers MCP requests; holds nothing of any of them.

    Args:
        app: the service, which the tools ask.
        max_body_bytes: of one request.
    """

    def __init__(self, app: FastAPI, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        # The app masks secrets itself, and a host name takes the place of this one.
        client = AsyncClient(
            "http://127.0.0.1", retries=0, redactor=None, transport=OwnTransport(app)
        )
        self._server = build_server(client, who_calls=_who_calls)
        self._server.middleware.append(_within_its_request)
        # The one tells that it begins and ends each request, the other what each one asks.
        for library in ("mcp", "httpx2"):
            logging.getLogger(library).setLevel(logging.WARNING)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with JSON."""

        async def send_with_session(message: Message) -> None:
            if message["type"] == "http.response.start" and _SESSION in scope:
                MutableHeaders(scope=message)[SESSION_HEADER] = scope[_SESSION]
            await send(message)

        # One for each request: so there is no task to keep running and to stop.
        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._max_body_bytes,
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send_with_session)


async def _within_its_request(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Give what a tool asks the headers of its request, and a new client its session."""
    request = ctx.request
    if request is None:
        return await call_next(ctx)
    if ctx.method == "initialize":
        name = _name_in(ctx.params or {})
        request.scope[_SESSION] = str(McpSession.begin(name))
    headers = {"x-request-id": request_id_of(request.scope)}
    if "host" in request.headers:  # the name that this service's guard has let pass
        headers["host"] = request.headers["host"]
    with on_behalf_of(headers):
        return await call_next(ctx)


def _who_calls(context: Context) -> Caller:
    headers = Headers() if context.request is None else context.request.headers
    session = McpSession.read(headers.get(SESSION_HEADER))
    if session is not None:
        return Caller(session.client_name or "unknown", session.session_id)
    return Caller(client_name(context) or "unknown")


def _name_in(params: Mapping[str, object]) -> str | None:
    """The client's name in an `initialize` that nobody has validated yet."""
    info = params.get("clientInfo")
    return name_or_none(info.get("name")) if isinstance(info, Mapping) else None
