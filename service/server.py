"""Listening, serving and stopping: one process, from its socket to its last flush."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from typing import Final

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aftercall.serving import http_server
from service.app import create_app, dashboard_of
from service.context import Context, Lifecycle, open_context
from service.dashboard.prefix import SOCKET
from service.errors import ProblemError, render
from service.lifecycle import first, settle_memory, stopped_by_signals
from service.logs import log_event
from service.settings import Settings
from service.tracing import traced

MAX_TARGET_BYTES = 65_535
"""Bytes of a request's path and query, percent-encoded: the parser of URLs counts in 16 bits."""

_MAX_READ_BYTES = 16 * 1024 * 1024
"""Bytes of a target that are read at all; what is too long is read and thrown away up to here, so
that a client which sends it all before it reads still gets the answer."""

_MALFORMED: Final = render(
    ProblemError(
        400,
        "malformed_http",
        "this is not a valid HTTP/1.1 request; check the request line, the header lines and "
        "Content-Length",
    )
)

_TOO_LONG: Final = render(
    ProblemError(
        414,
        "uri_too_long",
        f"path and query are longer than {MAX_TARGET_BYTES:,} bytes; a scenario has at most 10,000 "
        "characters, and one that is long when percent-encoded fits into `POST /tools/find`",
    )
)

_SOCKETS: Final = f"{SOCKET}/".encode()
"""Where there are any: the dashboard's."""

_PHRASES: Final = {400: "Bad Request", 414: "URI Too Long"}


class ContractHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, whose own 400 is plain text and whose request line has no bound."""

    _target_bytes = 0

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the target; of one that is too long nothing more is kept."""
        self._target_bytes += len(url)
        if self._target_bytes <= MAX_TARGET_BYTES:
            super().on_url(url)
        elif self._target_bytes > _MAX_READ_BYTES:
            raise ValueError("the target is far too long")  # the parser makes it a 400 of its own

    def on_headers_complete(self) -> None:
        """The head is there; one whose target is too long goes to no app."""
        if self._target_bytes > MAX_TARGET_BYTES:
            raise ValueError("the target is too long")  # as above
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # A request to any other path is answered as if it had not asked for a socket.
        return self.url.startswith(_SOCKETS) and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer and close: where the next request would begin cannot be known.

        Args:
            msg: Uvicorn's words, which it has logged; the same for all that cannot be parsed.
        """
        del msg
        is_too_long = self._target_bytes > MAX_TARGET_BYTES
        self._answer_and_close(_TOO_LONG if is_too_long else _MALFORMED)

    def _answer_and_close(self, answer: Response) -> None:
        headers = [
            *self.server_state.default_headers,
            *answer.raw_headers,
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        head = f"HTTP/1.1 {answer.status_code} {_PHRASES[answer.status_code]}\r\n".encode()
        self.transport.write(head + lines + b"\r\n" + bytes(answer.body))
        self.transport.close()


logger = logging.getLogger(__name__)

_MAX_FRAME_BYTES = 1024 * 1024
"""Of a page of the dashboard to us: clicks and short texts."""

_KEEP_ALIVE_S = 65
"""Idle connections are kept a little longer than the minute that clients and proxies commonly keep
them, so that it is the client that closes and no request meets a closing connection."""


async def serve(
    settings: Settings, listener: socket.socket, on_ready: Callable[[Context], None]
) -> None:
    """Serve on `listener` until SIGINT or SIGTERM; then finish, flush and close.

    It listens at once, so that `/healthz` answers while models load; all else is 503 until
    `on_ready` is called. A second signal ends the process where it stands, which is safe: what was
    acknowledged is durable.

    Raises:
        StoreError, EmbeddingError, VectorIndexError: what cannot be opened, with the cure.
        ConfigurationError: spans are to be sent, and the extra for it is missing.
    """
    lifecycle = Lifecycle()
    with traced(settings) as with_spans:
        app = create_app(settings, lifecycle)
        await _serve(settings, listener, on_ready, lifecycle, app, with_spans(app))
    log_event(logger, "stopped")


async def _serve(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[Context], None],
    lifecycle: Lifecycle,
    app: FastAPI,
    served: ASGIApp,
) -> None:
    server = http_server(
        served,
        http=ContractHttpProtocol,
        ws="websockets-sansio",
        ws_max_size=_MAX_FRAME_BYTES,
        ws_per_message_deflate=False,  # it costs memory by connection
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.server.shutdown_s)),
    )
    with stopped_by_signals() as stopping:
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="uvicorn")
        try:
            async with _opened(settings, lifecycle, stopping), dashboard_of(app):
                settle_memory()
                if lifecycle.context is not None:
                    on_ready(lifecycle.context)
                await first(stopping, serving)
                lifecycle.phase = "stopping"
                server.should_exit = True
                await serving
        finally:
            server.should_exit = True
            await serving


@contextlib.asynccontextmanager
async def _opened(
    settings: Settings, lifecycle: Lifecycle, stopping: asyncio.Event
) -> AsyncIterator[None]:
    """Context in `lifecycle`; none when it was told to stop while they were being opened."""

    def phase(what: str) -> None:
        if what != lifecycle.phase:  # what is waited for is told again and again
            lifecycle.phase = what
            log_event(logger, what)

    async with contextlib.AsyncExitStack() as stack:
        opening = asyncio.create_task(
            stack.enter_async_context(open_context(settings, phase)), name="open services"
        )
        await first(stopping, opening)
        if not opening.done():
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opening
        else:
            lifecycle.context = opening.result()
        try:
            yield
        finally:
            lifecycle.context = None
            lifecycle.phase = "stopping"


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The event loop of uvloop, where there is one for the platform."""
    try:
        import uvloop  # noqa: PLC0415  # not on Windows
    except ImportError:
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
