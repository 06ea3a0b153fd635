"""Spans of requests and of stages, by OpenTelemetry's stable conventions for HTTP.

They hold neither the path nor the caller: a path may carry what a caller put into it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aftercall.stages import Stage, StageMeter, measured_by
from service.metrics import METHODS
from service.middleware import route_of, set_trace_id

_UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics", "/v1/traces"})
"""Asked all the time by machines; and a service that sends its spans to itself must not send spans
of that for ever."""
_PROPAGATOR = TraceContextTextMapPropagator()


class RequestSpans:
    """Pure ASGI, outermost; the caller's `traceparent` states which trace a request belongs to."""

    def __init__(self, app: ASGIApp, tracer: Tracer, stages: StageMeter) -> None:
        self._app = app
        self._tracer = tracer
        self._stages = stages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["path"].rstrip("/") in _UNTRACED:
            with measured_by(None):
                await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        # The address it listens on, not the name that the caller sent.
        address, port = scope.get("server") or (None, None)
        attributes = {
            "http.request.method": method, "url.scheme": scope.get("scheme", "http"),
            "server.address": address, "server.port": port,
        }  # fmt: skip
        span = self._tracer.start_span(
            _name_span(method, None),
            context=_read_parent(scope),
            kind=SpanKind.SERVER,
            attributes={name: each for name, each in attributes.items() if each is not None},
        )
        if span.get_span_context().is_valid:  # the span is not recorded under OTEL_SDK_DISABLED
            set_trace_id(scope, trace.format_trace_id(span.get_span_context().trace_id))

        async def send_seen(message: Message) -> None:
            if message["type"] == "http.response.start":
                span.set_attribute("http.response.status_code", message["status"])
                if message["status"] >= 500:
                    _mark_failed(span, str(message["status"]))
            await send(message)

        with (
            trace.use_span(
                span, end_on_exit=True, record_exception=False, set_status_on_exception=False
            ),
            measured_by(self._stages),
        ):
            try:
                await self._app(scope, receive, send_seen)
            except BaseException as error:
                _mark_failed(span, type(error).__qualname__)
                raise
            finally:
                if (route := route_of(scope)) is not None:
                    span.update_name(_name_span(method, route))
                    span.set_attribute("http.route", route)


def _read_parent(scope: Scope) -> Context:
    headers = Headers(scope=scope)
    carrier = {
        "traceparent": headers.get("traceparent", ""),
        "tracestate": ",".join(headers.getlist("tracestate")),
    }
    return _PROPAGATOR.extract(carrier, Context())


def _name_span(method: str, route: str | None) -> str:
    method = "HTTP" if method == "_OTHER" else method
    return method if route is None else f"{method} {route}"


def _mark_failed(span: Span, what: str) -> None:
    # Only a type or a status: the text of an error often quotes a value.
    span.set_attribute("error.type", what)
    span.set_status(StatusCode.ERROR)


class StageSpans:
    """Measures stages as spans below the one that is current."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Measure a stage, which ends with the block; yield what takes notes of it."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield _Noting(span)
            except Exception as error:
                _mark_failed(span, type(error).__qualname__)
                raise


class _Noting:
    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, **facts: str | float | bool) -> None:
        self._span.set_attributes({f"aftercall.{name}": fact for name, fact in facts.items()})
