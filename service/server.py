"""Processes: one that serves, from its socket to its last flush, and one that learns and embeds.

Any number of workers may run next to any number of services on the same server stores. They share
out the workspaces by leases; when one ends or is killed, others take over its workspaces.
"""

import asyncio
import contextlib
import logging
import math
import resource
import socket
import time
import warnings
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from fastapi import FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install
from aftercall.models import ErrorBody, ErrorResponse
from aftercall.process import http_server
from aftercall.secret_names import ascii_names
from aftercall.stages import measured_by
from embeddings.embedders import CachedEmbedder
from retrieval.knowledge.reading.classifier import shipped_head
from service.alerts import open_alerts
from service.api import (
    corrections,
    executions,
    fitness,
    health,
    hooks,
    keys,
    known_tools,
    patterns,
    promotions,
    recommendations,
    reflection,
    statistics,
    status,
    suggestions,
    tools,
    workspaces,
)
from service.api.mcp import install_mcp
from service.api.openapi_document import install_openapi, render_docs
from service.context import Context, Lifecycle, open_context
from service.dashboard.routes import install_dashboard
from service.errors import install_error_handlers
from service.heartbeat import open_heartbeat
from service.learning import open_learning
from service.lifecycle import (
    Attention,
    OnPhase,
    done_or_stopped,
    settle_memory,
    stopped_by_signals,
    wait_for_first,
    wait_until_unused,
)
from service.logs import log_event
from service.metrics import RequestMetrics
from service.middleware import BodyLimits, HostGuard, KeyGuard, RequestLog
from service.settings import LimitSettings, Settings
from service.stores import Stores, open_stores
from service.version import VERSION

_WARM_S = 2.0
"""After the start, until what is seldom needed is made."""

# The app: routes, errors, limits, OpenAPI.

_DESCRIPTION = (
    "The institutional memory of tool calls: record every call, ask when one fails. "
    'Every error is `{"error": {"code", "message", "details"}}`. '
    "Bodies are JSON with Content-Type application/json; names are camelCase. "
    "Where a key stands twice in an object, the last value counts."
)


def create_app(settings: Settings, lifecycle: Lifecycle) -> FastAPI:
    """Return the app over the context that `lifecycle` will hold, in the limits of `settings`."""
    # FastAPI ignores it too, but too early for models that are built at first use.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app = FastAPI(
        title="Aftercall",
        version=VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own telemetry exports rejected input with its values, and calls are private.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.lifecycle = lifecycle
    app.state.limits = settings.limits
    # Two bodies of spans are unpacked at a time: one is stored while the next is read. Each
    # may take `limits.unpacked_bytes`, many times its packed size.
    app.state.trace_turns = asyncio.Semaphore(2)
    app.state.passed_over = executions.PassedOverSpans()
    app.state.requests = requests = RequestMetrics()
    install_error_handlers(app)
    # Names in paths may hold slashes, so longer paths come before those that would match them.
    for topic in (
        executions, suggestions, hooks, fitness, health, corrections, recommendations, tools,
        promotions, known_tools, statistics, reflection, patterns, keys, workspaces, status,
    ):  # fmt: skip
        # Not `include_router`: it makes each route once more, at the first request.
        app.router.routes += topic.router.routes
    install_mcp(app, settings)
    if settings.server.dashboard:
        install_dashboard(app, settings, lifecycle)
    install_openapi(app)

    @app.get("/docs", include_in_schema=False)
    async def show_docs() -> HTMLResponse:
        return render_docs(app.openapi())

    # The last added is the outermost.
    app.add_middleware(BodyLimits, limits=settings.limits)
    app.add_middleware(KeyGuard, lifecycle=lifecycle)
    app.add_middleware(HostGuard, server=settings.server)
    app.add_middleware(RequestLog, on_request=requests.observe_request)
    return app


# Connections: uvicorn waits without end for a head that trickles or never comes, keeps all of it,
# and answers what it cannot parse in plain text. Nothing here looks at a request's meaning.

MAX_ADDRESS = 64 * 1024 - 1
"""Bytes of a path with its query: httptools reads no longer one."""
MAX_HEAD = 192 * 1024
"""Bytes of a head that came in several pieces; one piece is 256 KiB at most."""
KEEP_ALIVE_S = 65
"""Idle connections are kept a little longer than the minute that clients and proxies commonly keep
them, so that it is the client that closes and no request meets a closing connection."""
_RESERVED_FILES = 200
"""Open files that are left to the stores, the index and the model, and to those refused."""
_ANSWERED = 50
"""Connections above the bound that are shown so; more are closed without a word."""
_PATIENCE_S = 1.0
_LOG_EVERY_S = 10.0
logger = logging.getLogger(__name__)


def bounded_protocol(limits: LimitSettings) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol within `limits` and the files that the process may open."""
    most = _connections_that_fit(limits.connections)
    bounds = {"most_connections": most, "head_timeout_s": limits.head_timeout_s}
    return type("BoundedProtocol", (_BoundedProtocol,), bounds)


def _connections_that_fit(wanted: int) -> int:
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
        kind, now = type(self), time.monotonic()
        kind.refused += above > 0
        if kind.refused and now - kind.logged_at > _LOG_EVERY_S:
            cure = "raise AFTERCALL_LIMITS_CONNECTIONS, or find who keeps them open"
            log_event(
                logger, "connections refused", level="warning", refused=kind.refused, cure=cure
            )
            kind.refused, kind.logged_at = 0, now
        if above > _ANSWERED:
            transport.abort()
        else:
            self._is_refused = above > 0  # answered after its request
            self._wait_then(_PATIENCE_S if above > 0 else self.head_timeout_s, self._too_late)

    def data_received(self, data: bytes) -> None:
        if self._is_over or self.transport.is_closing():
            return
        if self._is_refused:
            self._refuse_request(503, "busy", "too many connections; try again shortly")
            return
        if self._late is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_then(self.head_timeout_s, self._too_late)
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
        """Refuse a request that could not be parsed, or is too long to be parsed."""
        if len(getattr(self, "url", b"")) > MAX_ADDRESS:
            self._refuse_request(
                414, "address_too_long", f"the address has more than {MAX_ADDRESS:,} bytes"
            )
        elif self._head_bytes > MAX_HEAD:
            self._refuse_request(
                431, "head_too_large", f"the headers have more than {MAX_HEAD:,} bytes"
            )
        else:
            self._refuse_request(400, "malformed_http", "this is no HTTP request; see /docs")

    def _too_late(self) -> None:
        if self._is_in_head:
            late = f"the head did not arrive within {self.head_timeout_s:g} seconds"
            self._refuse_request(408, "request_timeout", late)
        else:
            self.transport.close()

    def _refuse_request(self, status: int, code: str, message: str) -> None:
        """Answer next to the app; close when the client has read the answer, or a second later."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # the refusal would stand in the middle of another answer
            return
        body = ErrorResponse(error=ErrorBody(code=code, message=message)).model_dump_json().encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        head += "connection: close\r\nretry-after: 1\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        # Closing at once, with unread bytes of the client, would discard the answer.
        self.transport.write_eof()
        self._is_over = True
        self._wait_then(_PATIENCE_S, self.transport.close)

    def _wait_then(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


@contextmanager
def open_tracing(settings: Settings) -> Iterator[Callable[[ASGIApp], ASGIApp]]:
    """Measure stages until the block ends; yield what gives an app a span for each request.

    Nothing is measured, and an app stays as it is, unless `tracing.url` is set.
    """
    if (url := settings.tracing.url) is None:
        yield lambda app: app
        return
    try:
        from aftercall.span_export import export_spans  # noqa: PLC0415  # only if wanted
        from service.spans import RequestSpans, StageSpans  # noqa: PLC0415  # as above
    except ImportError as error:
        raise ConfigurationError(
            "AFTERCALL_TRACING_URL is set, and OpenTelemetry is not installed: "
            f"{how_to_install('otel', of_service=True)}, or take the variable away"
        ) from error
    service = {"service.name": "aftercall", "service.version": VERSION}
    with export_spans(service, url=url, close_within_s=settings.server.shutdown_s) as provider:
        tracer = provider.get_tracer("aftercall-service", VERSION)
        stages = StageSpans(tracer)
        with measured_by(stages):
            yield lambda app: RequestSpans(app, tracer, stages)


async def serve_app(
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[Context], None],
    *,
    linger_s: float | None = None,
    embedder: Future[CachedEmbedder] | None = None,
) -> None:
    """Serve on `listener` until SIGINT or SIGTERM; then finish, flush and close.

    With `linger_s` it also ends when no gateway has used it for so many seconds. An `embedder` that
    is being opened already is waited for, and closed.

    It listens at once, so that `/healthz` answers while models load; all else is 503 until
    `on_ready` is called. A second signal ends it at once: what was acknowledged is durable.
    """
    lifecycle = Lifecycle(linger_s=linger_s)
    with open_tracing(settings) as with_spans:
        server = http_server(
            with_spans(create_app(settings, lifecycle)),
            http=bounded_protocol(settings.limits),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(settings.server.shutdown_s)),
        )
        with stopped_by_signals() as stopping:
            serving = asyncio.create_task(server.serve(sockets=[listener]), name="uvicorn")
            try:
                async with contextlib.AsyncExitStack() as stack:
                    if linger_s is not None:
                        leaving = asyncio.create_task(
                            wait_until_unused(settings.data.dir, linger_s)
                        )
                        leaving.add_done_callback(lambda _: stopping.set())
                        stack.callback(leaving.cancel)
                    opening = open_context(settings, _log_phases(lifecycle), embedder)
                    context = await done_or_stopped(stopping, stack.enter_async_context(opening))
                    stack.callback(lifecycle.begin_stopping)
                    if context is not None:
                        lifecycle.context = context
                        await stack.enter_async_context(open_alerts(context))
                        settle_memory()
                        on_ready(context)
                        # So the first question that needs them does not wait. The second takes
                        # 0.1 s of the interpreter, from whoever asks at once after the start.
                        loop = asyncio.get_running_loop()
                        loop.run_in_executor(None, shipped_head)
                        later = loop.call_later(_WARM_S, loop.run_in_executor, None, ascii_names)
                        stack.callback(later.cancel)
                        await wait_for_first(stopping, serving)
                    lifecycle.phase = "stopping"
                    server.should_exit = True
                    await serving
            finally:
                server.should_exit = True
                await serving
    log_event(logger, "stopped")


async def run_worker(settings: Settings, on_ready: Callable[[Stores], None]) -> None:
    """Learn until SIGINT or SIGTERM; then end the present batch and give back the leases.

    A server that is away is waited for. A second signal ends the process where it stands, which is
    safe: a batch is committed whole or not at all.
    """

    async def learn_on() -> None:
        async with (
            open_heartbeat(settings.data.dir),
            open_stores(settings, _log_phases(Lifecycle())) as stores,
            open_learning(settings, stores, Attention(math.inf)) as learning,
        ):
            settle_memory()
            if learning.can_learn:
                learning.indexer.start()
            on_ready(stores)
            await asyncio.Event().wait()

    with open_tracing(settings), stopped_by_signals() as stopping:
        await done_or_stopped(stopping, learn_on())
    log_event(logger, "stopped")


def _log_phases(lifecycle: Lifecycle) -> OnPhase:
    """Return a function that logs what is being done; each phase is logged once."""

    def log_phase(what: str) -> None:
        if what != lifecycle.phase:
            lifecycle.phase = what
            log_event(logger, what)

    return log_phase
