"""A collector on loopback: takes OTLP over HTTP, and keeps the spans it was sent."""

import gzip
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.sdk.loopback import Fault, Loopback, answer


@dataclass
class Sent:
    """A span as it arrived."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    attributes: dict[str, Any]


@dataclass
class Collector(Loopback):
    """Listens while it is entered."""

    def next_fault(self) -> Fault:
        return answer(b"")

    @property
    def base_url(self) -> str:
        return super().url

    @property
    def url(self) -> str:
        return f"{self.base_url}/v1/traces"

    @property
    def encodings(self) -> set[str]:
        return {request.headers.get("content-encoding", "") for request in self.requests}

    @property
    def bodies(self) -> list[bytes]:
        return [
            gzip.decompress(each.body)
            if each.headers.get("content-encoding") == "gzip"
            else each.body
            for each in self.requests
        ]

    @property
    def spans(self) -> list[Sent]:
        found = []
        for body in self.bodies:
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = str(_read(of_resource.resource.attributes)["service.name"])
                for scope in of_resource.scope_spans:
                    found += [_sent(service, span) for span in scope.spans]
        return found

    def named(self, name: str) -> list[Sent]:
        return [span for span in self.spans if span.name == name]


def _sent(service: str, span: Span) -> Sent:
    return Sent(
        service=service,
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        attributes=_read(span.attributes),
    )


def _read(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class Spans:
    """A provider of one's own whose spans are kept in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def ended(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    @property
    def text(self) -> str:
        """All that is in them."""
        return "\n".join(span.to_json() for span in self.ended)


def trace_of(span: ReadableSpan) -> int:
    return span.context.trace_id


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    return span.context.span_id
