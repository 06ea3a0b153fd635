"""One log line per request, its id, and the last resort for what nobody expected."""

import logging
import re
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.dashboard.prefix import QUIET_TEMPLATES
from service.http.problems import ProblemError, render
from service.logs import log_event

logger = logging.getLogger(__name__)

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_QUIET = frozenset({"/healthz", "/readyz", "/metrics", *QUIET_TEMPLATES})
"""Asked every few seconds by machines, or many times by one page; their lines are for debugging
only."""

OnRequest = Callable[[str, str | None, int, float], None]
"""Told the method, the route's template, the status (0 for none) and the seconds of a request."""

_COUNTS = "aftercall_counts"
_REQUEST_ID = "aftercall_request_id"
_TRACE_ID = "aftercall_trace_id"


def count(request: Request, **counts: int) -> None:
    """Add counts to the log line of a request."""
    request.scope.setdefault(_COUNTS, {}).update(counts)


def counts_of(scope: Scope) -> dict[str, int]:
    """What was counted for a request so far."""
    counts: dict[str, int] = scope.get(_COUNTS, {})
    return counts


def route_of(scope: Scope) -> str | None:
    """The template of the route that a request took, once it has been found."""
    # Not the path: a path may carry what a caller put into it.
    route: str | None = getattr(scope.get("route"), "path_format", None)
    return route


def set_trace_id(scope: Scope, trace_id: str) -> None:
    """Say which trace a request belongs to."""
    scope[_TRACE_ID] = trace_id


def request_id_of(scope: Scope) -> str:
    """The id under which a request is logged."""
    request_id: str = scope[_REQUEST_ID]
    return request_id


class RequestLog:
    """Pure ASGI, outermost of ours: everything below is inside its time and its `try`."""

    def __init__(self, app: ASGIApp, on_request: OnRequest = lambda *_: None) -> None:
        self._app = app
        self._on_request = on_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid4().hex
        scope[_REQUEST_ID] = request_id
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            log_event(logger, "request failed", level="error", error=error, request_id=request_id)
            if status:  # half an answer is out; only cutting the connection says so
                raise
            await render(_unexpected(request_id))(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            self._on_request(scope["method"], route_of(scope), status, seconds)
            _write(scope, status, request_id, seconds * 1000)


def _unexpected(request_id: str) -> ProblemError:
    return ProblemError(
        500,
        "internal_error",
        f"something unexpected happened; the service's log has it under {request_id}",
        details={"requestId": request_id},
    )


def _write(scope: Scope, status: int, request_id: str, duration_ms: float) -> None:
    route = route_of(scope) or "unknown"
    fields: dict[str, Any] = {
        "method": scope["method"] if len(scope["method"]) <= 10 else "other",
        "route": route,
        "status": status,
        "duration_ms": round(duration_ms, 2),
        "request_id": request_id,
        **counts_of(scope),
    }
    if _TRACE_ID in scope:
        fields["trace_id"] = scope[_TRACE_ID]
    log_event(logger, "request", level="debug" if route in _QUIET else "info", **fields)
