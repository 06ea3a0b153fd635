"""Spans out of both encodings of OTLP: plain values, and only those that someone reads.

In JSON ids are hexadecimal, 64-bit numbers texts (or numbers), names in camelCase.
Fields that are not known are ignored, as the protocol demands; null is as good as nothing.

Of protobuf's messages what may be large or many stays bytes until someone reads it (`wire`), which
gives the members that JSON has: the official ones build every message of a request at once, 700 MiB
of 8 MiB of empty spans, a lawful body.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from aftercall.json_values import MAX_DEPTH
from ingest.formats.otlp import keys, wire
from ingest.formats.otlp.keys import Unusable

MAX_SPANS: Final = 20_000
"""Spans of one request, which are held together. Exporters send 512, collectors 8,192."""
ERROR_STATUS: Final = 2
OK_STATUS: Final = 1
SERVER_KIND: Final = 2


class OtlpError(ValueError):
    """The whole is no OTLP trace request. The message states what to send instead."""


class TooManySpansError(OtlpError):
    """More in one request than is read at a time; nothing of it was."""


Attributes: TypeAlias = Mapping[str, object]
"""Text, numbers, booleans, bytes, None, lists and dicts of these; or `Unusable`."""
NONE: Final[Attributes] = {}
Place: TypeAlias = tuple[int, ...]
"""Positions in `resourceSpans`, `scopeSpans` and `spans`, as far as it goes."""


@dataclass(slots=True)
class Span:
    """One span. Ids are lower-case hexadecimal; an invalid id is empty."""

    place: Place
    resource: Attributes
    instrumentation: str = ""
    """The name of the scope: the library that made it."""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_ns: int | None = None
    """Nanoseconds since 1970; None when it was sent and is no such number."""
    end_ns: int | None = None
    status: int = 0
    status_message: str = ""
    attributes: Attributes = field(default_factory=dict)
    exception: Attributes = field(default_factory=dict)
    """Of the event, where there is one."""
    arguments: object = None
    """In an event, of those that do not write them as attributes."""
    result: object = None


@dataclass(frozen=True, slots=True)
class NoSpan:
    """What stands where a span, or a list of them, should stand."""

    place: Place
    message: str


_PARTS = ("resourceSpans", "scopeSpans", "spans")


def show_place(place: Place) -> str:
    """Return a place for people, such as `resourceSpans[0].scopeSpans[0].spans[3]`."""
    return ".".join(f"{part}[{number}]" for part, number in zip(_PARTS, place, strict=False))


def count_span(number: int) -> None:
    """Refuse the first span too many."""
    if number > MAX_SPANS:
        raise TooManySpansError(
            f"more than {MAX_SPANS:,} spans in one request; nothing was stored, send fewer at a "
            "time (exporters: OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"
        )


Members: TypeAlias = dict[str, Any]
_TOO_DEEP: Final = Unusable(f"is nested deeper than {MAX_DEPTH} levels")
_MAX_NS: Final = 2**64 - 1
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def json_spans(value: object) -> Iterator[Span | NoSpan]:
    """Yield the spans of an `ExportTraceServiceRequest`, or a `TracesData`, as parsed JSON."""
    if not isinstance(value, dict):
        raise OtlpError(
            "no OTLP traces in JSON: expected an object with `resourceSpans`, "
            'such as {"resourceSpans": [{"scopeSpans": [{"spans": [...]}]}]}'
        )
    groups = value.get("resourceSpans")
    if groups is not None and not isinstance(groups, list):
        raise OtlpError("no OTLP traces in JSON: `resourceSpans` must be a list")
    number = 0
    for resource_at, group in enumerate(groups or ()):
        if not isinstance(group, dict):
            yield NoSpan((resource_at,), "must be an object with `resource` and `scopeSpans`")
            continue
        told = group.get("resource")
        listed = told.get("attributes") if isinstance(told, dict) else None
        resource = _read_attributes(listed, keys.OF_RESOURCES)
        for place, span, scope in _of_group(group, resource_at):
            number += 1
            count_span(number)
            if isinstance(span, dict):
                yield _read_span(span, place, resource, scope)
            else:
                yield NoSpan(place, "must be an object" if len(place) > 2 else str(span))


def _of_group(group: Members, resource_at: int) -> Iterator[tuple[Place, object, str]]:
    """Give each span with its place and the name of its instrumentation; or what is wrong there."""
    scopes = group.get("scopeSpans")
    if scopes is not None and not isinstance(scopes, list):
        yield (resource_at,), "its `scopeSpans` must be a list", ""
        return
    for scope_at, scope in enumerate(scopes or ()):
        place = resource_at, scope_at
        if not isinstance(scope, dict):
            yield place, "must be an object with `spans`", ""
            continue
        listed = scope.get("spans")
        if listed is not None and not isinstance(listed, list):
            yield place, "its `spans` must be a list", ""
            continue
        made_by = scope.get("scope")
        name = _as_text(made_by.get("name")) if isinstance(made_by, dict) else ""
        for span_at, span in enumerate(listed or ()):
            yield (*place, span_at), span, name


def _read_span(value: Members, place: Place, resource: Attributes, instrumentation: str) -> Span:
    listed = value.get("attributes")
    attributes = _read_attributes(listed, keys.PLAIN)
    span = Span(
        place,
        resource,
        instrumentation,
        trace_id=_read_id(value.get("traceId"), 16),
        span_id=_read_id(value.get("spanId"), 8),
        parent_span_id=_read_id(value.get("parentSpanId"), 8),
        name=_as_text(value.get("name")),
        kind=_as_enum(value.get("kind")),
        start_ns=_read_nanoseconds(value.get("startTimeUnixNano")),
        end_ns=_read_nanoseconds(value.get("endTimeUnixNano")),
        attributes=attributes,
    )
    status = value.get("status")
    if isinstance(status, dict):
        span.status = _as_enum(status.get("code"))
        span.status_message = _as_text(status.get("message"))
    if not keys.MARKS.isdisjoint(attributes):
        span.attributes = {**attributes, **_read_attributes(listed, keys.CONTENT)}
        events = value.get("events")
        for event in reversed(events if isinstance(events, list) else []):
            name = event.get("name") if isinstance(event, dict) else None
            if name not in (keys.EXCEPTION_EVENT, keys.TOOL_MESSAGE, keys.TOOL_CHOICE):
                continue
            told = _read_attributes(event.get("attributes"), keys.OF_EVENTS)
            if name == keys.EXCEPTION_EVENT:
                span.exception = span.exception or told
            elif name == keys.TOOL_MESSAGE:
                span.arguments = told.get(keys.EVENT_CONTENT)
            else:
                span.result = told.get(keys.EVENT_MESSAGE)
    return span


def _read_attributes(listed: object, wanted: Set[str]) -> Attributes:
    attributes: dict[str, object] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            key = each.get("key")
            if isinstance(key, str) and key in wanted:
                attributes[key] = _read_value(each.get("value"), MAX_DEPTH)
    return attributes or NONE


def _read_value(value: object, depth: int) -> object:
    """Return an `AnyValue`. A field of another type is taken as it is.

    A number is a number.
    """
    if value is None or isinstance(value, _Encoded):
        return value and value.read()
    if not isinstance(value, dict):
        return Unusable('must be an object such as {"stringValue": ...}')
    known = ((k, each) for k, each in value.items() if k in _ALTERNATIVES and each is not None)
    kind, held = next(known, ("", None))  # empty, or of a kind that is not known
    if kind in ("arrayValue", "kvlistValue"):
        return _read_list(held, depth, pairs=kind == "kvlistValue")
    if kind == "bytesValue":
        with suppress(binascii.Error, ValueError):
            if isinstance(held, str):
                return base64.b64decode(held)
        return Unusable("holds no base64")
    if isinstance(held, str):
        if kind == "intValue" and _INTEGER.fullmatch(held):
            return int(held)
        return _NUMBERS.get(held, held) if kind == "doubleValue" else held
    return held if isinstance(held, int | float | None) else Unusable("holds no plain value")


_ALTERNATIVES: Final = frozenset({
    "stringValue", "boolValue", "intValue", "doubleValue", "bytesValue", "arrayValue",
    "kvlistValue",
})  # fmt: skip


def _read_list(value: object, depth: int, *, pairs: bool) -> object:
    """Return a list, or with `pairs` an object."""
    listed = value.get("values") if isinstance(value, dict) else value
    if not isinstance(value, dict) or not isinstance(listed, list | None):
        return Unusable("holds no list of values")
    if depth <= 1:
        return _TOO_DEEP
    items: list[tuple[str, object]] = []
    for each in listed or []:
        if pairs and not isinstance(each, dict):
            return Unusable("holds what is no pair of key and value")
        item = _read_value(each.get("value") if pairs else each, depth - 1)
        if isinstance(item, Unusable):
            return item
        items.append((_as_text(each.get("key")) if pairs else "", item))
    return dict(items) if pairs else [item for _, item in items]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _as_enum(value: object) -> int:
    return value if isinstance(value, int) else 0


def _read_nanoseconds(value: object) -> int | None:
    """Return none for what is no number of nanoseconds; 0 for nothing, as in protobuf."""
    if value is None:
        return 0
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MAX_NS else None


def _read_id(value: object, length: int) -> str:
    """Lower-case hexadecimal; empty for what is no id, such as zeros."""
    is_id = isinstance(value, str) and len(value) == 2 * length and _HEX.fullmatch(value)
    return str(value).lower() if is_id and str(value).strip("0") else ""


MAX_VALUES: Final = 1_000_000
"""Values within all structured attributes of a request; two bytes in the body may be an object in
memory. As many as its spans would be held with."""
_MAX_EVENTS = 64
"""Events of a span that are looked at, the last ones: the exception that ended it comes last."""


def protobuf_spans(body: bytes) -> Iterator[Span | NoSpan]:
    """Yield the spans of an `ExportTraceServiceRequest`, or a `TracesData`, one at a time."""
    number, budget = 0, _Budget(MAX_VALUES)
    try:
        for resource_at, group in enumerate(wire.Traces.FromString(body).groups):
            parts = wire.Group.FromString(group)
            listed = wire.Resource.FromString(parts.resource).attributes
            resource = _read_attributes(
                _attribute_pairs(listed, keys.OF_RESOURCES, budget), keys.OF_RESOURCES
            )
            for scope_at, listed_scope in enumerate(parts.scopes):
                scope = wire.Scope.FromString(listed_scope)
                name = _decode_text(wire.Instrumentation.FromString(scope.scope).name)
                for span_at, found in enumerate(scope.spans):
                    number += 1
                    count_span(number)
                    place = resource_at, scope_at, span_at
                    yield _read_span(_span_members(found, budget), place, resource, name)
    except wire.DecodeError as error:
        raise OtlpError(
            f"the body is no ExportTraceServiceRequest in protobuf: {error}; nothing was stored, "
            "send it whole"
        ) from None


def _span_members(data: bytes, budget: "_Budget") -> Members:
    span = wire.Span.FromString(data)
    status = wire.Status.FromString(span.status)
    return {
        **{name: getattr(span, name).hex() for name in ("traceId", "spanId", "parentSpanId")},
        "name": _decode_text(span.name),
        "kind": span.kind,
        "startTimeUnixNano": span.startTimeUnixNano,
        "endTimeUnixNano": span.endTimeUnixNano,
        "attributes": _attribute_pairs(span.attributes, keys.OF_SPANS, budget),
        "status": {"code": status.code, "message": _decode_text(status.message)},
        "events": [
            {
                "name": _decode_text(each.name),
                "attributes": _attribute_pairs(each.attributes, keys.OF_EVENTS, budget),
            }
            for each in map(wire.Event.FromString, span.events[-_MAX_EVENTS:])
        ],
    }


def _attribute_pairs(listed: Iterable[bytes], wanted: Set[str], budget: "_Budget") -> list[Members]:
    found: dict[str, _Encoded] = {}
    for each in listed:
        pair = wire.Pair.FromString(each)
        if (key := _decode_text(pair.key)) in wanted:
            found[key] = _Encoded(pair.value, budget)
    return [{"key": key, "value": value} for key, value in found.items()]


@dataclass(slots=True)
class _Budget:
    """How many values the attributes of a request may still hold."""

    left: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A value that is not decoded before someone wants it."""

    data: bytes
    budget: _Budget

    def read(self) -> object:
        """Return the value, within the bounds; a plain one is always."""
        left = _Budget(self.budget.left)
        value = _any_value(self.data, MAX_DEPTH, left)
        self.budget.left = max(0, left.left)
        return value


def _any_value(data: bytes, depth: int, left: _Budget) -> object:
    """Return an `AnyValue`; the last of its alternatives counts, as in every oneof."""
    value = wire.Value.FromString(data)
    if (kind := value.WhichOneof("value")) is None:
        return None
    found = getattr(value, kind)
    if kind == "string":
        return _decode_text(found)
    if kind not in ("array", "object"):
        return found
    if depth <= 1:
        return _TOO_DEEP
    items: list[tuple[str, object]] = []
    for each in wire.Values.FromString(found).values:
        left.left -= 1
        if left.left < 0:
            return Unusable(f"comes after {MAX_VALUES:,} values; send fewer spans at a time")
        pair = wire.Pair.FromString(each) if kind == "object" else wire.Pair(value=each)
        item = _any_value(pair.value, depth - 1, left)
        if isinstance(item, Unusable):
            return item
        items.append((_decode_text(pair.key), item))
    return dict(items) if kind == "object" else [item for _, item in items]


def _decode_text(text: bytes) -> str:
    """Return a string; what is not UTF-8 in it becomes U+FFFD, so that one byte loses no span."""
    return text.decode("utf-8", "replace")
