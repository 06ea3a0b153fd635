"""Connections: heads have an end, idle ones are closed, and there are only so many at a time.

uvicorn waits without end for a head that trickles or never comes, keeps all of it, and answers what
it cannot parse in plain text. What is done about that here needs no look at a request's meaning.
"""

import logging
import time
from asyncio import TimerHandle, Transport
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from aftercall.models import ErrorBody, ErrorResponse
from service.logs import log_event
from service.settings import LimitSettings

MAX_ADDRESS = 128 * 1024
"""Bytes of a path with its query: a scenario of 10,000 characters may take 120,000."""
MAX_HEAD = 192 * 1024
"""Bytes of a head that came in several pieces; one piece is 256 KiB at most."""
KEEP_ALIVE_S = 65
"""Idle connections are kept a little longer than the minute that clients and proxies commonly keep
them, so that it is the client that closes and no request meets a closing connection."""
_RESERVED_FILES = 200
"""Open files that are left to the stores, the index and the model, and to those refused."""
_ANSWERED = 50
"""Connections above the bound that are told so; more are closed without a word."""
_PATIENCE_S = 1.0
_LOG_EVERY_S = 10.0
logger = logging.getLogger(__name__)


def bounded_protocol(limits: LimitSettings) -> type[HttpToolsProtocol]:
    """Uvicorn's protocol within `limits`, and within the files that the process may open."""
    most = _connections_that_fit(limits.connections)

    class BoundedProtocol(_BoundedProtocol):
        most_connections = most
        head_timeout_s = limits.head_timeout_s

    return BoundedProtocol


def _connections_that_fit(wanted: int) -> int:
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft < needed:
            wanted = max(soft - _RESERVED_FILES, soft // 4)
            log_event(logger, "few connections", level="warning", connections=wanted, files=soft)
    return wanted


class _BoundedProtocol(HttpToolsProtocol):
    most_connections: int
    head_timeout_s: float
    refused, logged_at = 0, 0.0
    _is_refused = _is_over = False
    _is_in_head = False
    _head_bytes = 0
    _late: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as above
        super().connection_made(transport)
        above = len(self.connections) - self.most_connections
        if above > 0:
            self._count_refused()
        if above > _ANSWERED:
            transport.abort()
        else:
            self._is_refused = above > 0  # answered when it asks: else it might not read that
            self._wait(_PATIENCE_S if above > 0 else self.head_timeout_s, self._too_late)

    def data_received(self, data: bytes) -> None:
        if self._is_over or self.transport.is_closing():
            return
        if self._is_refused:
            self._refuse(503, "busy", "too many connections; try again shortly")
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if self._late is None and is_idle:
            self._wait(self.head_timeout_s, self._too_late)
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self.send_400_response("")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_waiting()
        if len(self.url) > MAX_ADDRESS:
            raise ValueError  # the parser stops, and `send_400_response` is called
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's
        """What could not be parsed, or is too long to be."""
        if len(getattr(self, "url", b"")) > MAX_ADDRESS:
            self._refuse(
                414, "address_too_long", f"the address has more than {MAX_ADDRESS:,} bytes"
            )
        elif self._head_bytes > MAX_HEAD:
            self._refuse(431, "head_too_large", f"the headers have more than {MAX_HEAD:,} bytes")
        else:
            self._refuse(400, "malformed_http", "this is no HTTP request; see /docs")

    def _too_late(self) -> None:
        if self._is_in_head:
            late = f"the head did not arrive within {self.head_timeout_s:g} seconds"
            self._refuse(408, "request_timeout", late)
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer beside the app; close when the client has read that, or a second later."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # it would stand in the middle of another answer
            return
        body = ErrorResponse(error=ErrorBody(code=code, message=message)).model_dump_json().encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        head += "connection: close\r\nretry-after: 1\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        # To close at once, with bytes of the client unread, would take the answer from it.
        self.transport.write_eof()
        self._is_over = True
        self._wait(_PATIENCE_S, self.transport.close)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _count_refused(self) -> None:
        kind, now = type(self), time.monotonic()
        kind.refused += 1
        if now - kind.logged_at > _LOG_EVERY_S:
            cure = "raise AFTERCALL_LIMITS_CONNECTIONS, or find who keeps them open"
            log_event(
                logger, "connections refused", level="warning", refused=kind.refused, cure=cure
            )
            kind.refused, kind.logged_at = 0, now
