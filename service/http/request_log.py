"""One log line per request, its id, and the last resort for what nobody expected."""

import logging
import re
import time
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.problems import ProblemError, render
from service.logs import log_event

logger = logging.getLogger(__name__)

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_QUIET = frozenset({"/healthz", "/readyz"})
"""Asked every few seconds by machines; their lines are for debugging only."""

_COUNTS = "aftercall_counts"


def count(request: Request, **counts: int) -> None:
    """Add counts to the log line of a request."""
    request.scope.setdefault(_COUNTS, {}).update(counts)


class RequestLog:
    """Pure ASGI, outermost of ours: everything below is inside its time and its `try`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid4().hex
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
            _write(scope, status, request_id, (time.perf_counter() - started) * 1000)


def _unexpected(request_id: str) -> ProblemError:
    return ProblemError(
        500,
        "internal_error",
        f"something unexpected happened; the service's log has it under {request_id}",
        details={"requestId": request_id},
    )


def _write(scope: Scope, status: int, request_id: str, duration_ms: float) -> None:
    # The template, not the path: a path may carry what a caller put into it.
    route = getattr(scope.get("route"), "path_format", "unknown")
    fields: dict[str, Any] = {
        "method": scope["method"] if len(scope["method"]) <= 10 else "other",
        "route": route,
        "status": status,
        "duration_ms": round(duration_ms, 2),
        "request_id": request_id,
        **scope.get(_COUNTS, {}),
    }
    log_event(logger, "request", level="debug" if route in _QUIET else "info", **fields)
