"""One request of an MCP client and its answer, by the MCP SDK; imported with the first of them.

The tools call this very service, by its own routes and in this process: validation, redaction,
limits, errors and metrics are those of every other request. The log names the request of a tool by
the id of the MCP request that caused it.

The client keeps the session: clients of the handshake era send their name once, and then the id of
their session with every request. An id that holds the name works with any service process and takes
no memory here. It gives no right to anything, so it needs no secret.
"""

import base64
import binascii
import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias
from uuid import uuid4

import httpx2
from fastapi import FastAPI
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from aftercall import AsyncClient
from aftercall.error_texts import name_or_none
from aftercall.json_values import JsonObject
from aftercall.mcp_calls import Caller
from aftercall.mcp_server.server import build_server, client_name
from aftercall.models import WORKSPACE_HEADER
from service.middleware import IS_COUNTED, request_id_of

_within: ContextVar[Mapping[str, str]] = ContextVar("aftercall_within_request")
"""Headers that the service's own requests have from the request that they are made for."""


class OwnTransport(httpx2.ASGITransport):
    """Hands requests to an app of this process; one client serves all callers."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        # As bytes: a host name may have come in Latin-1, as which the server reads headers.
        within = _within.get({}).items()
        request.headers.update({name.encode(): text.encode("latin-1") for name, text in within})
        return await super().handle_async_request(request)


SESSION_HEADER = "mcp-session-id"
_MAX_NAME_BYTES = 192
"""Most bytes of a client's name in UTF-8; with these an id has at most 289 characters."""
_ID = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{0,256})", re.ASCII)


def new_session(client_name: str | None) -> str:
    """Return the id of a new session, which holds the client's name, if it gave one."""
    encoded = (client_name or "").encode()[:_MAX_NAME_BYTES]
    whole = encoded.decode(errors="ignore").encode()  # a character may have been cut in two
    return f"{uuid4().hex}.{base64.urlsafe_b64encode(whole).decode().rstrip('=')}"


def read_session(text: str | None) -> tuple[str, str | None] | None:
    """Return the session and the client's name in an id.

    Both are None without an id, and for an id that is not ours.
    """
    if (found := _ID.fullmatch(text or "")) is None:
        return None
    session_id, packed = found.groups()
    try:
        name = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return session_id, name_or_none(name)


_SESSION = "aftercall_mcp_session"
Context: TypeAlias = ServerRequestContext[JsonObject, Any]
"""Its `request` is Starlette's."""


class McpExchange:
    """Answers MCP requests, and keeps nothing of any of them."""

    def __init__(self, app: FastAPI, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        # The app masks secrets itself, and the request's host name replaces this one.
        client = AsyncClient(
            "http://127.0.0.1", api_key="", retries=0, redactor=None, transport=OwnTransport(app)
        )
        self._server = build_server(client, who_calls=_who_calls)
        self._server.middleware.append(_within_its_request)
        # One logs the begin and end of each request, the other its contents.
        for library in ("mcp", "httpx2"):
            logging.getLogger(library).setLevel(logging.WARNING)

    async def answer_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with JSON."""
        # Blanks around a value are not part of it (RFC 9110, 5.5); the MCP SDK compares them.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope = {**scope, "headers": headers}

        async def send_with_session(message: Message) -> None:
            if message["type"] == "http.response.start" and _SESSION in scope:
                MutableHeaders(scope=message)[SESSION_HEADER] = scope[_SESSION]
            await send(message)

        # Each request has its own, so that no task has to be kept running.
        manager = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            max_request_body_size=self._max_body_bytes,
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send_with_session)


async def _within_its_request(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Give the requests of a tool the headers of theirs, and a new client its session."""
    if (request := ctx.request) is None:
        return await call_next(ctx)
    if ctx.method == "initialize":
        info = (ctx.params or {}).get("clientInfo")  # no one has validated it yet
        name = name_or_none(info.get("name")) if isinstance(info, Mapping) else None
        request.scope[_SESSION] = new_session(name)
    given = ("host", "authorization", WORKSPACE_HEADER)  # this service's own guards have checked it
    headers = {name: request.headers[name] for name in given if name in request.headers}
    headers["x-request-id"] = request_id_of(request.scope)
    token, counted = _within.set(headers), IS_COUNTED.set(True)
    try:
        return await call_next(ctx)
    finally:
        _within.reset(token)
        IS_COUNTED.reset(counted)


def _who_calls(context: Context) -> Caller:
    headers = context.request.headers if context.request else {}
    session_id, name = read_session(headers.get(SESSION_HEADER)) or (None, client_name(context))
    return Caller(name or "unknown", session_id)
