"""What is answered to an exporter, in both encodings: what was left out, or why all was refused.

opentelemetry.io/docs/specs/otlp, "OTLP/HTTP Response". The two messages have four fields in all, so
they are written here.
"""

import json


def success_json(rejected: int, message: str) -> bytes:
    """An `ExportTraceServiceResponse`; a message without rejected spans is a warning."""
    if not rejected and not message:
        return b"{}"
    partial = {"rejectedSpans": str(rejected)} if rejected else {}  # an int64 is text in JSON
    return json.dumps({"partialSuccess": {**partial, "errorMessage": message}}).encode()


def success_protobuf(rejected: int, message: str) -> bytes:
    """As `success_json`; whole success is the empty message."""
    partial = _number(1, rejected) + _text(2, message)
    return b"\x0a" + _varint(len(partial)) + partial if partial else b""


def status_protobuf(code: int, message: str) -> bytes:
    """A `google.rpc.Status`."""
    return _number(1, code) + _text(2, message)


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value) if value else b""


def _text(field: int, value: str) -> bytes:
    encoded = value.encode("utf-8", "replace")
    return bytes([field << 3 | 2]) + _varint(len(encoded)) + encoded if encoded else b""


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
