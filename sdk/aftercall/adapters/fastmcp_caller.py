"""Who makes a call, read from the MCP request.

| | first | else |
|---|---|---|
| agent | `_meta["aftercall/agent"]` | the given name, the MCP client's name, `unknown` |
| session | `_meta["aftercall/session"]` | see `_session_of` |
| context | `_meta["aftercall/context"]` | nothing |
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from fastmcp.server.context import Context
from fastmcp.server.dependencies import FastMCPRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

AGENT_KEY = "aftercall/agent"
SESSION_KEY = "aftercall/session"
CONTEXT_KEY = "aftercall/context"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, in which session, and what for."""

    agent: str
    session_id: str | None = None
    context: str | None = None


def caller_of(context: Context | None, *, agent: str | None, process_session: str) -> Caller:
    """The caller of the request that `context` belongs to.

    Args:
        context: FastMCP's context of the request; None outside one.
        agent: name to use when the request gives none.
        process_session: session of a client that owns this process (stdio and in-memory).
    """
    request = context.request_context if context is not None else None
    if context is None or request is None:
        return Caller(agent or "unknown")
    meta = request.meta or {}
    return Caller(
        agent=_text(meta, AGENT_KEY) or agent or _client_name(request) or "unknown",
        session_id=_text(meta, SESSION_KEY) or _session_of(context, request, process_session),
        context=_text(meta, CONTEXT_KEY),
    )


def _client_name(request: FastMCPRequestContext) -> str | None:
    params = request.session.client_params
    return params.client_info.name if params is not None else None


def _session_of(
    context: Context, request: FastMCPRequestContext, process_session: str
) -> str | None:
    """An id that stays the same for one client, or None.

    Over HTTP only a negotiated MCP session tells clients apart (hashed, since whoever knows the id
    can speak in the session); a 2026-07-28 connection has none. An id made up per request would be
    worse than none: it would make one client look like many.
    """
    if request.request is not None:
        negotiated = request.request.headers.get("mcp-session-id")
        return hashlib.sha256(negotiated.encode()).hexdigest()[:32] if negotiated else None
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return process_session
    return context.session_id


def _text(meta: Mapping[str, object], key: str) -> str | None:
    value = meta.get(key)
    return value if isinstance(value, str) and value else None
