"""Layers around the routes: host names, origins, sizes of bodies, the log, errors in protobuf.

All are pure ASGI, because Starlette's `BaseHTTPMiddleware` costs a task and a queue per request,
and see requests of HTTP only: there are no WebSockets, and no lifespan of the app.
"""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from functools import partial
from secrets import token_hex
from typing import Any, cast
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.context import Lifecycle
from service.errors import ProblemError, TooLargeProblemError, UnavailableError, render_problem
from service.keys import ANYBODY, Access, InvalidTokenError, Keyring
from service.logs import log_event
from service.settings import LimitSettings, ServerSettings, is_loopback

ANY_HOST = "*"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def hosts_to_answer(host: str, configured: Sequence[str]) -> frozenset[str]:
    """Return the host names to answer when listening on `host`, lower case and without port.

    The names of an address that others can reach are not known: without a setting all are answered.
    """
    if configured:
        return frozenset(name.lower() for name in configured)
    return frozenset((*_LOOPBACK_NAMES, host.lower()) if is_loopback(host) else (ANY_HOST,))


class HostGuard:
    """Pure ASGI: 403 for a request whose Host header names another host.

    The same goes for a request that may change something and comes from a page of another host: a
    browser sends a form across sites without asking its user.
    """

    def __init__(self, app: ASGIApp, server: ServerSettings) -> None:
        self._app = app
        self._hosts = hosts_to_answer(server.host, server.allowed_hosts)
        public = urlsplit(server.public_url or "").hostname
        self._own = self._hosts if public is None else self._hosts | {public}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            self._check_request(Headers(scope=scope), scope["method"])
        except ProblemError as problem:
            await render_problem(problem, scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_request(self, headers: Headers, method: str) -> None:
        parts = _HOST.fullmatch(headers.get("host", ""))
        # None if it is not a name, such as `127.0.0.1:80@example.org`.
        name = (parts[1] or parts[2]).lower() if parts else ""
        if ANY_HOST not in self._hosts and name not in self._hosts:
            raise ProblemError(
                403,
                "host_not_allowed",
                "this service does not answer under that host name; "
                "name it in AFTERCALL_SERVER_ALLOWED_HOSTS",
            )
        if method not in ("GET", "HEAD", "OPTIONS", "TRACE"):
            refuse_foreign_origin(headers.get("origin"), self._own | {name})


_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@/\s]+))(?::[0-9]{1,5})?")


def refuse_foreign_origin(origin: str | None, hosts: Collection[str]) -> None:
    """Accept a request from no page, or from a page under one of `hosts`, on any port.

    `hosts` are in lower case. `*` accepts no page at all, for any page could be under it.
    """
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:  # half an IPv6 address
        host = ""
    if not host or host == ANY_HOST or host not in hosts:
        raise ProblemError(
            403,
            "origin_not_allowed",
            "this endpoint does not answer to that web page; name the page's host in "
            "AFTERCALL_SERVER_ALLOWED_HOSTS, or send no Origin header from a program",
        )


_OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
"""Paths that need no key: their answers hold nothing of what is stored."""
_ACCESS = "aftercall_access"
SESSION_COOKIE = "aftercall_session"
DASHBOARD = "/dashboard"


def access_of(scope: Scope) -> Access | None:
    """Return the rights of a request; None if keys are not read yet, or no reader has signed in."""
    return cast("Access | None", scope.get(_ACCESS))


class KeyGuard:
    """Pure ASGI: 401 for a request without a valid key, 429 beyond its rate.

    It works before the body is read and for every path, so that a new route is closed by default.
    Each route decides which scope a key needs. Pages of the dashboard are requested with a session.
    """

    def __init__(self, app: ASGIApp, lifecycle: Lifecycle) -> None:
        self._app = app
        self._lifecycle = lifecycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        context, path = self._lifecycle.context, scope["path"]
        if context is not None and path not in _OPEN:
            await context.attention.asked()
            try:
                scope[_ACCESS] = _check_access(context.keys, Request(scope), path)
            except ProblemError as problem:
                await render_problem(problem, scope)(scope, receive, send)
                return
            access = access_of(scope)
            if access is not None and access.rate is not None and not IS_COUNTED.get():
                receive = _charge_body(receive, partial(context.keys.charge_bytes, access))
        await self._app(scope, receive, send)


IS_COUNTED: ContextVar[bool] = ContextVar("aftercall_is_counted", default=False)
"""Whether a request is made by the service itself for another, which was counted already."""
_STATIC = f"{DASHBOARD}/static/"


def _charge_body(receive: Receive, charge: Callable[[int], None]) -> Receive:
    """Return a `receive` that takes the bytes of the body from the key's rate."""

    async def receive_charged() -> Message:
        message = await receive()
        charge(len(message.get("body", b"")))
        return message

    return receive_charged


def _check_access(keys: Keyring, request: Request, path: str) -> Access | None:
    if not keys.is_required:
        return ANYBODY
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if not kind and (path == DASHBOARD or path.startswith(f"{DASHBOARD}/")):
        viewer = keys.access_of_session(request.cookies.get(SESSION_COOKIE, ""))
        if viewer is not None and not path.startswith(_STATIC):
            _count_request(keys, viewer)
        return viewer
    try:
        access = keys.find_access(token.strip() if kind.lower() == "bearer" else "")
    except InvalidTokenError as error:
        headers = {"www-authenticate": "Bearer"}
        raise ProblemError(401, "key_needed", str(error), headers=headers) from None
    if not IS_COUNTED.get():
        _count_request(keys, access)
    return access


def _count_request(keys: Keyring, access: Access) -> None:
    """Take one request from a key's rate; raise a problem if the rate is used up."""
    if wait_s := keys.wait_s(access):
        raise ProblemError(
            429,
            "rate_exceeded",
            f"this key may ask {access.rate:g} times a second; wait, or ask for more",
            headers={"retry-after": str(math.ceil(wait_s))},
        )


class BodyLimits:
    """Bounds on bodies: size, time to arrive, and memory over all requests.

    It refuses a body by its Content-Length at once, and by its bytes as they arrive. Refused bytes
    are not buffered. The connection stays open, so that a client which sends its whole body before
    it reads still gets the answer.
    """

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self._app = app
        self._limits = limits
        self._buffered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        declared = Headers(scope=scope).get("content-length", "0")
        # The HTTP parser has refused a length that is not a number.
        if declared.isdigit() and int(declared) > self._limits.body_bytes:
            await render_problem(self._too_large(), scope)(scope, receive, send)
            return
        size, is_complete, deadline = 0, False, None

        async def receive_bounded() -> Message:
            nonlocal size, is_complete, deadline
            if is_complete:  # only the client's disconnect can follow
                return await receive()
            deadline = deadline or asyncio.get_running_loop().time() + self._limits.body_timeout_s
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                late = f"the body did not arrive within {self._limits.body_timeout_s:g} seconds"
                headers = {"connection": "close"}
                raise ProblemError(408, "request_timeout", late, headers=headers) from None
            if message["type"] == "http.request":
                size += (more := len(message.get("body", b"")))
                self._buffered += more
                if size > self._limits.body_bytes:
                    raise self._too_large()
                if self._buffered > self._limits.buffered_bytes:
                    raise UnavailableError(
                        "busy",
                        "too many large requests at this moment; send this one again shortly",
                    )
                is_complete = not message.get("more_body", False)
            return message

        try:
            await self._app(scope, receive_bounded, send)
        finally:
            self._buffered -= size

    def _too_large(self) -> ProblemError:
        return TooLargeProblemError(
            f"the body is larger than {self._limits.body_bytes:,} bytes; nothing was stored, "
            "send it in several requests"
        )


logger = logging.getLogger(__name__)
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds by machines; their lines are for debugging only, as those of the
dashboard, whose open pages ask every second."""
OnRequest = Callable[[str, str | None, int, float], None]
"""Receives the method, the route's template, the status (0 for none) and the seconds of a
request."""
_REQUEST_ID = "aftercall_request_id"
_TRACE_ID = "aftercall_trace_id"


def route_of(scope: Scope) -> str | None:
    """Return the template of the route that a request took, once it has been found."""
    # The path is left out: it may carry what a caller put into it.
    return cast("str | None", getattr(scope.get("route"), "path_format", None))


def set_trace_id(scope: Scope, trace_id: str) -> None:
    """Note the trace that a request belongs to."""
    scope[_TRACE_ID] = trace_id


def request_id_of(scope: Scope) -> str:
    """Return the id under which a request is logged."""
    return cast("str", scope[_REQUEST_ID])


class RequestLog:
    """Pure ASGI, outermost of ours: everything below is inside its time and its `try`."""

    def __init__(self, app: ASGIApp, on_request: OnRequest) -> None:
        self._app = app
        self._on_request = on_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN_ID.fullmatch(given) else token_hex(16)
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
            if status:  # half an answer is out: only a cut connection shows the failure
                raise
            what = f"something unexpected happened; the service's log has it under {request_id}"
            problem = ProblemError(500, "internal_error", what, details={"requestId": request_id})
            await render_problem(problem, scope)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            self._on_request(scope["method"], route_of(scope), status, seconds)
            route = route_of(scope) or "unknown"
            fields: dict[str, Any] = {
                "method": scope["method"] if len(scope["method"]) <= 10 else "other",
                "route": route,
                "status": status,
                "duration_ms": round(seconds * 1000, 2),
                "request_id": request_id,
            }
            if _TRACE_ID in scope:
                fields["trace_id"] = scope[_TRACE_ID]
            is_quiet = route in _QUIET or route.startswith("/dashboard")
            log_event(logger, "request", level="debug" if is_quiet else "info", **fields)
