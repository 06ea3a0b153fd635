"""Spans out of both encodings of OTLP: plain values, and only those that somebody reads.

In JSON ids are hexadecimal, 64-bit numbers texts, names in camelCase. Taken besides: snake_case,
names of enum values, numbers as numbers, and ids in base64, which protobuf's own JSON writers send.
Fields that are not known are ignored, as the protocol demands; null is as good as nothing.

Protobuf's wire format (protobuf.dev/programming-guides/encoding) is read in place into the members
that JSON has, and not by protobuf's own parser: that builds every message of a request at once, and
a span of two bytes takes it some 180. 8 MiB of empty spans, a lawful body, would be 700 MiB of
memory; here they are never more than one at a time.
"""

import base64
import binascii
import re
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from aftercall.json_values import MAX_DEPTH
from ingest.formats.otlp import keys
from ingest.formats.otlp.keys import Unusable

MAX_SPANS: Final = 120_000
"""Spans of one request. Exporters send 512, collectors 8,192; what is known of each span while a
request is read takes some 500 bytes."""
ERROR_STATUS: Final = 2
OK_STATUS: Final = 1
SERVER_KIND: Final = 2


class OtlpError(ValueError):
    """The whole is no OTLP trace request. The message says what to send instead."""


class TooManySpansError(OtlpError):
    """More in one request than is read at a time; nothing of it was."""


Attributes: TypeAlias = Mapping[str, object]
"""Text, numbers, booleans, bytes, None, lists and dicts of these; or `Unusable`."""
NONE: Final[Attributes] = {}
Place: TypeAlias = tuple[int, ...]
"""Positions in `resourceSpans`, `scopeSpans` and `spans`, as far as it goes."""


@dataclass(slots=True)
class Span:
    """One span. Ids are lower-case hexadecimal; an id that is none is empty."""

    place: Place
    resource: Attributes
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
    events: Mapping[str, Attributes] = field(default_factory=dict)
    """The last event of each name that is read."""


@dataclass(frozen=True, slots=True)
class NoSpan:
    """What stands where a span, or a list of them, should stand."""

    place: Place
    message: str


Spans: TypeAlias = Callable[[], Iterator[Span | NoSpan]]
"""The spans of one request, from the first on, each time it is called."""
_PARTS = ("resourceSpans", "scopeSpans", "spans")


def where(place: Place) -> str:
    """For people: `resourceSpans[0].scopeSpans[0].spans[3]`."""
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
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE]\+?[0-9]{1,2})?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_KINDS = {"SPAN_KIND_SERVER": 2}
_STATUSES = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def json_spans(value: object) -> Iterator[Span | NoSpan]:
    """The spans of an `ExportTraceServiceRequest`, or a `TracesData`, as parsed JSON.

    Raises:
        OtlpError: no such object.
        TooManySpansError: at the first span too many.
    """
    if not isinstance(value, dict):
        raise OtlpError(
            "no OTLP traces in JSON: expected an object with `resourceSpans`, "
            'such as {"resourceSpans": [{"scopeSpans": [{"spans": [...]}]}]}'
        )
    groups = _get(value, "resourceSpans", "resource_spans")
    if groups is not None and not isinstance(groups, list):
        raise OtlpError("no OTLP traces in JSON: `resourceSpans` must be a list")
    number = 0
    for resource_at, group in enumerate(groups or ()):
        if not isinstance(group, dict):
            yield NoSpan((resource_at,), "must be an object with `resource` and `scopeSpans`")
            continue
        resource = _resource(group)
        for place, span in _of_group(group, resource_at):
            number += 1
            count_span(number)
            if isinstance(span, dict):
                yield _span(span, place, resource)
            else:
                yield NoSpan(place, "must be an object" if len(place) > 2 else str(span))


def _of_group(group: Members, resource_at: int) -> Iterator[tuple[Place, object]]:
    scopes = _get(group, "scopeSpans", "scope_spans")
    if scopes is not None and not isinstance(scopes, list):
        yield (resource_at,), "its `scopeSpans` must be a list"
        return
    for scope_at, scope in enumerate(scopes or ()):
        place = resource_at, scope_at
        if not isinstance(scope, dict):
            yield place, "must be an object with `spans`"
            continue
        listed = scope.get("spans")
        if listed is not None and not isinstance(listed, list):
            yield place, "its `spans` must be a list"
            continue
        for span_at, span in enumerate(listed or ()):
            yield (*place, span_at), span


def _get(members: Members, name: str, other: str) -> Any:
    value = members.get(name)
    return members.get(other) if value is None else value


def _resource(group: Members) -> Attributes:
    resource = group.get("resource")
    if not isinstance(resource, dict):
        return NONE
    return _attributes(resource.get("attributes"), keys.OF_RESOURCES)


def _span(value: Members, place: Place, resource: Attributes) -> Span:
    listed = value.get("attributes")
    attributes = _attributes(listed, keys.OF_SPANS - keys.CONTENT)
    span = Span(
        place,
        resource,
        trace_id=_id(_get(value, "traceId", "trace_id"), 16),
        span_id=_id(_get(value, "spanId", "span_id"), 8),
        parent_span_id=_id(_get(value, "parentSpanId", "parent_span_id"), 8),
        name=_text(value.get("name")),
        kind=_enum(value.get("kind"), _KINDS),
        start_ns=_nanoseconds(_get(value, "startTimeUnixNano", "start_time_unix_nano")),
        end_ns=_nanoseconds(_get(value, "endTimeUnixNano", "end_time_unix_nano")),
        attributes=attributes,
    )
    status = value.get("status")
    if isinstance(status, dict):
        span.status = _enum(status.get("code"), _STATUSES)
        span.status_message = _text(status.get("message"))
    if not keys.MARKS.isdisjoint(attributes):
        span.attributes = {**attributes, **_attributes(listed, keys.CONTENT)}
        span.events = dict(_events(value.get("events")))
    return span


def _events(listed: object) -> Iterator[tuple[str, Attributes]]:
    for event in listed if isinstance(listed, list | deque) else ():
        if isinstance(event, dict) and (name := _text(event.get("name"))) in keys.EVENTS:
            yield name, _attributes(event.get("attributes"), keys.OF_EVENTS)


def _attributes(listed: object, wanted: Set[str]) -> Attributes:
    attributes: dict[str, object] = {}
    for each in listed if isinstance(listed, list | deque) else ():
        if isinstance(each, dict):
            key = each.get("key")
            if isinstance(key, str) and key in wanted:
                attributes[key] = _value(each.get("value"), MAX_DEPTH)
    return attributes or NONE


def _value(value: object, depth: int) -> object:
    """An `AnyValue`. What is in a field of another type is taken as it is: a number is a number."""
    if value is None or isinstance(value, _Encoded):
        return value and value.read()
    if not isinstance(value, dict):
        return Unusable('must be an object such as {"stringValue": ...}')
    for name, inner in value.items():
        read = _ALTERNATIVES.get(name)
        if read is not None and inner is not None:
            return read(inner, depth)
    return None  # empty, or of a kind that is not known


def _integer(value: object, _: int) -> object:
    whole = isinstance(value, str) and _INTEGER.fullmatch(value)
    return int(whole[0]) if whole else _scalar(value, 0)


def _double(value: object, _: int) -> object:
    return _NUMBERS.get(value, value) if isinstance(value, str) else _scalar(value, 0)


def _scalar(value: object, _: int) -> object:
    return value if isinstance(value, str | int | float) else Unusable("holds no plain value")


def _bytes(value: object, _: int) -> object:
    try:
        return base64.b64decode(value) if isinstance(value, str) else Unusable("holds no base64")
    except (binascii.Error, ValueError):
        return Unusable("holds no base64")


def _held(value: object, depth: int) -> list[Any] | Unusable:
    listed = value.get("values") if isinstance(value, dict) else value
    if not isinstance(value, dict) or not isinstance(listed, list | None):
        return Unusable("holds no list of values")
    return _TOO_DEEP if depth <= 1 else listed or []


def _list(value: object, depth: int) -> object:
    listed = _held(value, depth)
    if isinstance(listed, Unusable):
        return listed
    items = [_value(each, depth - 1) for each in listed]
    return next((item for item in items if isinstance(item, Unusable)), items)


def _object(value: object, depth: int) -> object:
    listed = _held(value, depth)
    if isinstance(listed, Unusable):
        return listed
    members: dict[str, object] = {}
    for each in listed:
        if not isinstance(each, dict):
            return Unusable("holds what is no pair of key and value")
        item = _value(each.get("value"), depth - 1)
        if isinstance(item, Unusable):
            return item
        members[_text(each.get("key"))] = item
    return members


_ALTERNATIVES: Final[Mapping[str, Callable[[object, int], object]]] = {
    "stringValue": _scalar, "string_value": _scalar,
    "boolValue": _scalar, "bool_value": _scalar,
    "intValue": _integer, "int_value": _integer,
    "doubleValue": _double, "double_value": _double,
    "bytesValue": _bytes, "bytes_value": _bytes,
    "arrayValue": _list, "array_value": _list,
    "kvlistValue": _object, "kvlist_value": _object,
}  # fmt: skip


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _enum(value: object, names: Mapping[str, int]) -> int:
    if isinstance(value, str):
        return names.get(value, 0)
    return value if isinstance(value, int) else 0


def _nanoseconds(value: object) -> int | None:
    """None for what is no number of nanoseconds; 0 for nothing, as in protobuf."""
    if value is None:
        return 0
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value) if value.isdecimal() else float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # protobuf's JSON may write a number with an exponent
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MAX_NS else None


def _id(value: object, length: int) -> str:
    """Lower-case hexadecimal; empty for what is no id, such as zeros."""
    if not isinstance(value, str):
        return ""
    if len(value) == 2 * length and _HEX.fullmatch(value):
        digits = value.lower()
    elif len(value) == -(-length // 3) * 4:  # in base64, which is never as long as in hexadecimal
        try:
            digits = base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return ""
    else:
        return ""
    return digits if len(digits) == 2 * length and digits.strip("0") else ""


_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_MAX_VARINT_BYTES = 10
_MAX_ID = 64
Field: TypeAlias = tuple[int, int, int, int]
"""Number, wire type, and: from where to where in the body; of a varint the value and 0."""
MAX_VALUES: Final = 100_000
"""Values within one attribute; two bytes in the body may be an object in memory."""
MAX_VALUES_IN_ALL: Final = 1_000_000
"""Values within all structured attributes of a request, as many as its spans would be held with."""
_MAX_ATTRIBUTES = 256
"""Attributes of those names that are read: more are repetitions, of which the last counts."""
_MAX_EVENTS = 64
"""Events of a span that are looked at, the last ones: the exception that ended it comes last."""


class WireError(OtlpError):
    """The bytes are no message, or end within one."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the body is no ExportTraceServiceRequest in protobuf: {problem}; "
            "nothing was stored, send it whole"
        )


def _fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """The fields of the message that lies in `data[start:end]`.

    Raises:
        WireError: when there is no message.
    """
    at = start
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = _varint(data, at - 1)
            wire_type = tag & 7
            if wire_type == _BYTES:
                length = data[at]
                at += 1
                if length > 0x7F:
                    length, at = _varint(data, at - 1)
                stop = at + length
            elif wire_type == _VARINT:
                value, at = _varint(data, at)
                if at > end or not tag >> 3:
                    raise WireError(f"it ends within the field at byte {at}")
                yield tag >> 3, _VARINT, value, 0
                continue
            elif wire_type == _FIXED64:
                stop = at + 8
            elif wire_type == _FIXED32:
                stop = at + 4
            else:
                raise WireError(f"there is no field of wire type {wire_type} at byte {at - 1}")
            if stop > end:
                raise WireError(f"it ends within the field at byte {at}")
            if not tag >> 3:
                raise WireError(f"there is a field without a number at byte {at}")
            yield tag >> 3, wire_type, at, stop
            at = stop
    except IndexError:
        raise WireError("it ends too early") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(_MAX_VARINT_BYTES):
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + count + 1
    raise WireError(f"there is an endless number at byte {at}")


@dataclass(slots=True)
class _Budget:
    """How many values the structured attributes of a request may still hold."""

    left: int


Reader: TypeAlias = Callable[[bytes, int, int, _Budget], object]
Form: TypeAlias = Mapping[int, tuple[str, int, Reader, int]]
"""Of a message, by field number: name in JSON, wire type, reader, and how many are kept; 0: one."""


def protobuf_spans(body: bytes) -> Iterator[Span | NoSpan]:
    """The spans of an `ExportTraceServiceRequest`, or a `TracesData`, one at a time.

    Raises:
        WireError: no such message. Spans before the fault may have been given.
        TooManySpansError: at the first one too many.
    """
    number, budget = 0, _Budget(MAX_VALUES_IN_ALL)
    for resource_at, group in enumerate(_messages(body, 0, len(body), 1)):
        resource = _resource(_message(body, *group, budget, _GROUP))
        for scope_at, scope in enumerate(_messages(body, *group, 2)):
            for span_at, found in enumerate(_messages(body, *scope, 2)):
                number += 1
                count_span(number)
                members = _message(body, *found, budget, _SPAN)
                yield _span(members, (resource_at, scope_at, span_at), resource)


def _messages(data: bytes, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    for number, wire_type, at, stop in _fields(data, start, end):
        if number == wanted and wire_type == _BYTES:
            yield at, stop


def _message(data: bytes, start: int, end: int, budget: _Budget, form: Form) -> Members:
    """The members of a message, by their names in JSON; those that are not in the form are not."""
    found: Members = {}
    for number, wire_type, at, stop in _fields(data, start, end):
        known = form.get(number)
        if known is None or known[1] != wire_type:
            continue
        name, _, read, most = known
        value = read(data, at, stop, budget)
        if not most:
            found[name] = value
        elif value is not None:
            found.setdefault(name, deque(maxlen=most)).append(value)
    return found


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A value that is not decoded before somebody wants it."""

    data: bytes
    start: int
    end: int
    budget: _Budget

    def read(self) -> object:
        """The value, within the bounds; a plain one is always."""
        most = min(MAX_VALUES, self.budget.left + 1)
        left = _Budget(most)
        value = _any_value(self.data, self.start, self.end, MAX_DEPTH, left)
        self.budget.left -= most - max(left.left, 0) - 1
        if left.left < 0 and most < MAX_VALUES:
            return Unusable(f"comes after {MAX_VALUES_IN_ALL:,} values; send fewer spans at a time")
        return value


def _any_value(data: bytes, start: int, end: int, depth: int, left: _Budget) -> object:
    """An `AnyValue`; the last of its alternatives counts, as in every oneof."""
    left.left -= 1
    if left.left < 0:
        return Unusable(f"holds more than {MAX_VALUES:,} values")
    value: object = None
    for number, wire_type, at, stop in _fields(data, start, end):
        if wire_type == _BYTES and number in (5, 6):
            value = _several(data, at, stop, depth - 1, left, named=number == 6)
        elif (number, wire_type) in _PLAIN:
            value = _PLAIN[number, wire_type](data, at, stop)
    return value


def _several(
    data: bytes, start: int, end: int, depth: int, left: _Budget, *, named: bool
) -> object:
    """The items of a list, or the members of an object."""
    if depth <= 0:
        return _TOO_DEEP
    items: list[object] = []
    members: dict[str, object] = {}
    for at, stop in _messages(data, start, end, 1):
        pair: Members = _message(data, at, stop, left, _PAIR) if named else {"value": (at, stop)}
        start_at, end_at = pair.get("value", (0, 0))
        item = _any_value(data, start_at, end_at, depth, left)
        if isinstance(item, Unusable):
            return item
        if named:
            members[pair.get("key", "")] = item
        else:
            items.append(item)
    return members if named else items


def _attribute_of(wanted: Set[str]) -> Reader:
    """Reads attributes of these names; of all others only the name, which comes first mostly."""
    encoded = {name.encode(): name for name in wanted}

    def read(data: bytes, start: int, end: int, budget: _Budget) -> object:
        name, value = None, None
        for number, wire_type, at, stop in _fields(data, start, end):
            if wire_type != _BYTES:
                continue
            if number == 1:
                name = encoded.get(data[at:stop])
                if name is None:
                    return None
            elif number == 2:
                value = _Encoded(data, at, stop, budget)
        return name and {"key": name, "value": value}

    return read


def _of_form(form: Form) -> Reader:
    return partial(_message, form=form)


def _text_at(data: bytes, start: int, end: int, _: object = None) -> str:
    """A string; what is not UTF-8 in it becomes U+FFFD, so that one byte loses no span."""
    return data[start:end].decode("utf-8", "replace")


def _hex_at(data: bytes, start: int, end: int, _: object) -> str:
    return data[start : min(end, start + _MAX_ID)].hex()


def _number_at(_: bytes, value: int, __: int, ___: object) -> int:
    return value


def _fixed_at(data: bytes, start: int, end: int, _: object) -> int:
    return int.from_bytes(data[start:end], "little")


def _place_at(_: bytes, start: int, end: int, __: object) -> tuple[int, int]:
    return start, end


_PLAIN: Final[Mapping[tuple[int, int], Callable[[bytes, int, int], object]]] = {
    (1, _BYTES): _text_at,
    (2, _VARINT): lambda _, value, __: bool(value),
    (3, _VARINT): lambda _, value, __: value - (1 << 64) if value >> 63 else value,
    (4, _FIXED64): lambda data, at, _: struct.unpack_from("<d", data, at)[0],
    (7, _BYTES): lambda data, at, stop: data[at:stop],
}
_PAIR: Final[Form] = {1: ("key", _BYTES, _text_at, 0), 2: ("value", _BYTES, _place_at, 0)}
_RESOURCE: Final[Form] = {
    1: ("attributes", _BYTES, _attribute_of(keys.OF_RESOURCES), _MAX_ATTRIBUTES)
}
_GROUP: Final[Form] = {1: ("resource", _BYTES, _of_form(_RESOURCE), 0)}
_STATUS: Final[Form] = {2: ("message", _BYTES, _text_at, 0), 3: ("code", _VARINT, _number_at, 0)}
_EVENT: Final[Form] = {
    2: ("name", _BYTES, _text_at, 0),
    3: ("attributes", _BYTES, _attribute_of(keys.OF_EVENTS), _MAX_ATTRIBUTES),
}
_SPAN: Final[Form] = {
    1: ("traceId", _BYTES, _hex_at, 0),
    2: ("spanId", _BYTES, _hex_at, 0),
    4: ("parentSpanId", _BYTES, _hex_at, 0),
    5: ("name", _BYTES, _text_at, 0),
    6: ("kind", _VARINT, _number_at, 0),
    7: ("startTimeUnixNano", _FIXED64, _fixed_at, 0),
    8: ("endTimeUnixNano", _FIXED64, _fixed_at, 0),
    9: ("attributes", _BYTES, _attribute_of(keys.OF_SPANS), _MAX_ATTRIBUTES),
    11: ("events", _BYTES, _of_form(_EVENT), _MAX_EVENTS),
    15: ("status", _BYTES, _of_form(_STATUS), 0),
}
"""Field numbers of opentelemetry/proto/trace/v1."""
