"""OTLP's messages, as far as they are read, and what is answered to an exporter.

Field numbers of opentelemetry/proto/{trace,common,resource}/v1; strings are bytes here, and what
may be many or large is left undecoded. Answers: opentelemetry.io/docs/specs/otlp, "OTLP/HTTP
Response", and `google.rpc.Status`.
"""

import json
from functools import cache
from typing import Any, Final

_TYPES: Final = {"double": 1, "int64": 3, "int32": 5, "fixed64": 6, "bool": 8, "bytes": 12}
_MESSAGES: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "Traces": {1: ("groups", "bytes*")},
    "Group": {1: ("resource", "bytes"), 2: ("scopes", "bytes*")},
    "Resource": {1: ("attributes", "bytes*")},
    "Scope": {1: ("scope", "bytes"), 2: ("spans", "bytes*")},
    "Span": {
        1: ("traceId", "bytes"), 2: ("spanId", "bytes"), 4: ("parentSpanId", "bytes"),
        5: ("name", "bytes"), 6: ("kind", "int32"), 7: ("startTimeUnixNano", "fixed64"),
        8: ("endTimeUnixNano", "fixed64"), 9: ("attributes", "bytes*"), 11: ("events", "bytes*"),
        15: ("status", "bytes"),
    },
    "Event": {2: ("name", "bytes"), 3: ("attributes", "bytes*")},
    "Status": {2: ("message", "bytes"), 3: ("code", "int32")},
    "Pair": {1: ("key", "bytes"), 2: ("value", "bytes")},
    "Value": {
        1: ("string", "bytes|"), 2: ("bool", "bool|"), 3: ("int", "int64|"),
        4: ("double", "double|"), 5: ("array", "bytes|"), 6: ("object", "bytes|"),
        7: ("bytes", "bytes|"),
    },
    "Values": {1: ("values", "bytes*")},
    "Instrumentation": {1: ("name", "bytes")},
    "Success": {1: ("partial", "bytes")},
    "Partial": {1: ("rejected", "int64"), 2: ("message", "bytes")},
    "RpcStatus": {1: ("code", "int32"), 2: ("message", "bytes")},
}  # fmt: skip
"""Name and type of each field; `*` is repeated, `|` one of several."""


@cache
def _read_classes() -> dict[str, Any]:
    # Imported with the first trace: protobuf takes a twentieth of the service's start.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    file = descriptor_pb2.FileDescriptorProto(
        name="aftercall.proto", package="aftercall", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in fields.items():
            made = message.field.add(
                name=field, number=number, type=_TYPES[kind.rstrip("*|")],
                label=3 if kind.endswith("*") else 1,
            )  # fmt: skip
            if kind.endswith("|"):
                made.oneof_index = 0
        if any(kind.endswith("|") for _, kind in fields.values()):
            message.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessageClassesForFiles([file.name], pool)
    classes = {name.removeprefix("aftercall."): made for name, made in found.items()}
    return {**classes, "DecodeError": DecodeError}


def __getattr__(name: str) -> Any:
    """Return the class of a message, such as `wire.Span`, or `DecodeError`."""
    if name not in (*_MESSAGES, "DecodeError"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _read_classes()[name])


def success_json(rejected: int, message: str) -> bytes:
    """Return an `ExportTraceServiceResponse`; a message without rejected spans is a warning."""
    if not rejected and not message:
        return b"{}"
    partial = {"rejectedSpans": str(rejected)} if rejected else {}  # an int64 is text in JSON
    return json.dumps({"partialSuccess": {**partial, "errorMessage": message}}).encode()


def success_protobuf(rejected: int, message: str) -> bytes:
    """Return the answer in protobuf; whole success is the empty message."""
    said = _encode_fields("Partial", rejected=rejected, message=message.encode("utf-8", "replace"))
    return _encode_fields("Success", partial=said)


def status_protobuf(code: int, message: str) -> bytes:
    """Return a `google.rpc.Status`."""
    return _encode_fields("RpcStatus", code=code, message=message.encode("utf-8", "replace"))


def _encode_fields(name: str, **fields: Any) -> bytes:
    encoded: bytes = _read_classes()[name](**fields).SerializeToString()
    return encoded
