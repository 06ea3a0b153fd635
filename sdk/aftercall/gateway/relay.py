"""What passes between a client and a server next to calls and their answers.

A session with a server is shared by all clients, and a server does not say which call a question
or a log message of its own belongs to. So it goes to the client whose calls run, where that is one.
"""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeAlias, TypeVar

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.context import Context
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.proxy import PROXY_TRANSPORT_OPTIONS
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from aftercall.gateway.long_answers import PagedLists

Wire: TypeAlias = Literal["auto", "legacy"]
"""`legacy` is the handshake of up to 2025-11-25; `auto` is the newest that a server speaks."""
CLIENT_WITHIN_S = 5.0
"""Servers are started after this time also where no client has come."""
OF_ONE_CONNECTION = frozenset(
    {
        mcp_types.PROTOCOL_VERSION_META_KEY,
        mcp_types.CLIENT_INFO_META_KEY,
        mcp_types.CLIENT_CAPABILITIES_META_KEY,
        mcp_types.SERVER_INFO_META_KEY,
        "progressToken",  # the connection behind numbers its own
    }
)
"""Keys of `_meta` that describe a connection, and so never cross from one to the other."""
AnswerT = TypeVar("AnswerT", bound=BaseModel)


def crossing_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a request's or result's `_meta` is not about its connection."""
    return {key: value for key, value in meta.items() if key not in OF_ONE_CONNECTION}


class FrontWire:
    """Which protocol the first client speaks: servers are spoken to in the same one.

    A server's own questions exist up to 2025-11-25 alone, results that ask for input from
    2026-07-28 on alone: a server that speaks both uses those of the protocol it is asked in.
    """

    def __init__(self, wire: Wire | None = None) -> None:
        self._wire = wire
        self._known = asyncio.Event()

    def serve_clients(self, gateway: FastMCP[Any]) -> None:
        """Learn it from the first message to a gateway."""
        gateway._mcp_server.middleware.append(self._note_wire)  # noqa: SLF001  # no other way

    async def _note_wire(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if self._wire is None:
            is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            self._wire = "auto" if is_modern and ctx.method != "initialize" else "legacy"
            self._known.set()
        return await call_next(ctx)

    @property
    def known(self) -> Wire | None:
        """Return what the first client speaks; None before it has come."""
        return self._wire

    async def read(self) -> Wire:
        """Return it, or `auto` where no client comes within 5 s."""
        if self._wire is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._known.wait(), CLIENT_WITHIN_S)
        return self._wire or "auto"


# FastMCP's own class, which it keeps private.
class SharedSession(PROXY_TRANSPORT_OPTIONS.session_class):  # type: ignore[name-defined,misc]
    """A session with a server that several clients share.

    From 2026-07-28 on each request states what its client can do. A server must not ask a client
    for what it cannot do, so a request states what the client can do that it is made for.
    """

    def adopt(self, result: Any) -> None:
        """Take the negotiated protocol over, as the base class does."""
        super().adopt(result)
        stamp: Callable[[dict[str, Any], Any], None] = self._stamp  # type: ignore[has-type]

        def stamp_caller(data: dict[str, Any], options: Any) -> None:
            stamp(data, options)
            meta = data.get("params", {}).get("_meta", {})
            if mcp_types.CLIENT_CAPABILITIES_META_KEY in meta and data["method"] in _CALLED:
                meta[mcp_types.CLIENT_CAPABILITIES_META_KEY] = _abilities_of_caller()

        self._stamp = stamp_caller
        if not hasattr(self, "paged"):
            self.paged = PagedLists(self._dispatcher.send_raw_request)
            self._dispatcher.send_raw_request = self.paged.send


_CALLED = frozenset({"tools/call", "prompts/get", "resources/read"})


def _abilities_of_caller() -> dict[str, Any]:
    """Return the capabilities of the client that is served; none for one of the handshake.

    What a result asks for cannot be brought to such a client.
    """
    try:
        context = get_context()
    except RuntimeError:
        return {}
    request = context.request_context
    if request is None or request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return {}
    able = request.session.client_capabilities
    return able.model_dump(mode="json", by_alias=True, exclude_none=True) if able else {}


def progress_to(context: Context, token: str | int | None) -> ProgressFnT | None:
    """Return where a call's progress goes: to its client, where that asked for it with a token.

    The task that reads from the server has no current request: so the request's session is kept.
    """
    if token is None:
        return None
    session, request_id = context.session, context.request_id

    async def report_progress(progress: float, total: float | None, message: str | None) -> None:
        await session.send_progress_notification(
            progress_token=token,
            progress=progress,
            total=total,
            message=message,
            related_request_id=request_id,
        )

    return report_progress


class CallerRelay:
    """Passes a server's own questions (sampling, elicitation) on to the client that calls it.

    A server does not say which call a question belongs to. So it is passed on only where all calls
    that run at the moment are of one client; else the server hears that it cannot.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[ServerSession, str]] = {}

    @contextmanager
    def serve_call(self, context: Context) -> Iterator[None]:
        """Around a call of the server's tools."""
        key = id(context)
        self._running[key] = context.session, context.request_id
        try:
            yield
        finally:
            self._running.pop(key, None)

    async def ask_model(
        self, _messages: object, params: mcp_types.CreateMessageRequestParams, _context: object
    ) -> mcp_types.CreateMessageResult | mcp_types.CreateMessageResultWithTools:
        """Pass a question on to the client's model."""
        asked = mcp_types.CreateMessageRequest
        if params.tools:
            return await self._ask_client(asked, params, mcp_types.CreateMessageResultWithTools)
        return await self._ask_client(asked, params, mcp_types.CreateMessageResult)

    async def ask_user(
        self, _message: str, _kind: object, params: mcp_types.ElicitRequestParams, _context: object
    ) -> mcp_types.ElicitResult:
        """Pass a question on to the client's user; cancelled where the client cannot ask."""
        session, _ = self._calling_client()
        capabilities = session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return mcp_types.ElicitResult(action="cancel")
        return await self._ask_client(mcp_types.ElicitRequest, params, mcp_types.ElicitResult)

    async def pass_log(self, message: mcp_types.LoggingMessageNotificationParams) -> None:
        """Pass a log message on; dropped where it is not known whose call it belongs to.

        A client of 2026-07-28 gets it only if it asked for messages of its level.
        """
        try:
            session, request_id = self._calling_client()
        except LookupError:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await session.send_log_message(
                message.level, message.data, message.logger, related_request_id=request_id
            )

    def _calling_client(self) -> tuple[ServerSession, str]:
        if len({_connection_id(session) for session, _ in self._running.values()}) != 1:
            raise LookupError("it is not known which client to ask: none calls, or several do")
        return next(reversed(self._running.values()))

    async def _ask_client(
        self, asked: Callable[..., mcp_types.ServerRequest], params: BaseModel, kind: type[AnswerT]
    ) -> AnswerT:
        session, request_id = self._calling_client()
        return await session.send_request(
            # Without `_meta`, which is of the server's own connection.
            asked(params=params.model_copy(update={"meta": None})),
            kind,
            metadata=ServerMessageMetadata(related_request_id=request_id),
        )


def _connection_id(session: ServerSession) -> int:
    # A session is made for each request; what lasts is behind it.
    return id(session._connection)  # noqa: SLF001  # as FastMCP's own StatefulProxyClient
