"""What OpenAPI shows of `POST /v1/traces`. The tests send the request to a real service."""

from typing import Any

from service.middleware import PROTOBUF
from service.openapi import ErrorExample

_ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "rag_query",
    "gen_ai.tool.call.arguments": '{"query": "How do agents reflect?", "topK": 50}',
    "gen_ai.agent.name": "librarian",
    "gen_ai.conversation.id": "s-1",
    "error.type": "ValidationError",
}

_SPAN: dict[str, Any] = {
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    "spanId": "00f067aa0ba902b7",
    "name": "execute_tool rag_query",
    "kind": 1,
    "startTimeUnixNano": "1771597800000000000",
    "endTimeUnixNano": "1771597800245000000",
    "attributes": [
        {"key": key, "value": {"stringValue": value}} for key, value in _ATTRIBUTES.items()
    ],
    "status": {"code": 2, "message": "Invalid parameter: topK must be <= 10"},
}

TRACES: dict[str, Any] = {"resourceSpans": [{"scopeSpans": [{"spans": [_SPAN]}]}]}

PARTIAL_SUCCESS: dict[str, Any] = {
    "partialSuccess": {
        "rejectedSpans": "1",
        "errorMessage": "resourceSpans[0].scopeSpans[0].spans[3]: it names no tool; "
        "set gen_ai.tool.name",
    }
}

UNSUPPORTED: ErrorExample = (
    "The body is neither protobuf nor JSON, or packed otherwise than in gzip.",
    "unsupported_media_type",
    "send the body with Content-Type: application/x-protobuf or application/json",
)

_OBJECT = {
    "type": "object",
    "description": "`ExportTraceServiceRequest` of the OpenTelemetry protocol, in its JSON form.",
    "properties": {"resourceSpans": {"type": "array", "items": {"type": "object"}}},
}

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": _OBJECT,
                "examples": {"a failed call": {"value": TRACES}},
            },
            PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
