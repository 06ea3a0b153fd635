"""Spans for tests, in both encodings: JSON written here, protobuf by OpenTelemetry's messages."""

import base64
import math
from collections.abc import Iterable
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ingest.formats.calls import PassedOver, Placed, Read
from ingest.formats.otlp.reading import read_otlp_json, read_protobuf

Json = dict[str, Any]


def of_json(value: object) -> list[Read]:
    """What a request says of calls."""
    return _calls(read_otlp_json(value))


def of_protobuf(body: bytes) -> list[Read]:
    """The same, of a message in protobuf."""
    return _calls(read_protobuf(body))


def _calls(placed: Iterable[Placed]) -> list[Read]:
    return [each.read for each in placed if not isinstance(each.read, PassedOver)]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
START_NS = 1_771_597_800_000_000_000
"""2026-02-20 14:30:00 UTC."""


def any_value(value: object) -> Json:
    """A Python value as an `AnyValue`."""
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case str():
            return {"stringValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value if math.isfinite(value) else "NaN"}
        case bytes():
            return {"bytesValue": base64.b64encode(value).decode()}
        case list():
            return {"arrayValue": {"values": [any_value(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": attributes(value)}}
        case _:
            raise TypeError(type(value))


def attributes(values: Json) -> list[Json]:
    """Attributes, or the members of an object."""
    return [{"key": key, "value": any_value(value)} for key, value in values.items()]


def exception(kind: str, message: str, stack: str = "Traceback ...") -> Json:
    """The event that SDKs record for an exception."""
    return {
        "name": "exception",
        "attributes": attributes(
            {"exception.type": kind, "exception.message": message, "exception.stacktrace": stack}
        ),
    }


def span(number: int, values: Json, **fields: Any) -> Json:
    """A span with these attributes; its id is `number`."""
    return {
        "traceId": TRACE, "spanId": f"{number:016x}", "name": "a span", "kind": 1,
        "startTimeUnixNano": str(START_NS), "endTimeUnixNano": str(START_NS + 250_000_000),
        "attributes": attributes(values), **fields,
    }  # fmt: skip


def tool_span(number: int, **fields: Any) -> Json:
    """A span of a succeeding call by the GenAI conventions; `more` adds attributes."""
    values = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "rag_query",
        "gen_ai.tool.call.id": f"call-{number}",
        "gen_ai.tool.call.arguments": '{"query": "reflection", "topK": 5}',
        "gen_ai.tool.call.result": '{"matches": 5}',
        "gen_ai.agent.name": "librarian",
        "gen_ai.conversation.id": "s-1",
        **fields.pop("more", {}),
    }
    return span(number, {k: v for k, v in values.items() if v is not ...}, **fields)


def request(*spans: object, resource: Json | None = None) -> Json:
    """An `ExportTraceServiceRequest` with these spans."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attributes(resource or {})},
                "scopeSpans": [{"scope": {"name": "tests"}, "spans": list(spans)}],
            }
        ]
    }


def in_protobuf(value: Json) -> bytes:
    """The same request as OpenTelemetry's own messages write it."""
    return ParseDict(_with_base64(value), ExportTraceServiceRequest()).SerializeToString()


def _with_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(each)).decode()
        if key in {"traceId", "spanId", "parentSpanId"}
        else _with_base64(each)
        for key, each in value.items()
    }
