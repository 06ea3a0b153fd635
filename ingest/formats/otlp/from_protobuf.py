"""Spans out of the protobuf encoding; field numbers are those of opentelemetry/proto/trace/v1.

The wire format (protobuf.dev/programming-guides/encoding) is read in place, and not by protobuf's
own parser: that builds every message of a request at once, and a span of two bytes takes it some
180. 8 MiB of empty spans, a lawful body, would be 700 MiB of memory; here they are never more than
one at a time.
"""

import struct
from collections import deque
from collections.abc import Iterator, Set
from typing import Final

from aftercall.json_values import MAX_DEPTH
from ingest.formats.otlp import keys
from ingest.formats.otlp.span import (
    NONE,
    Attributes,
    NoSpan,
    OtlpError,
    Span,
    Unusable,
    count_span,
    may_be_call,
)

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
_FIXED32: Final = 5
_DOUBLE = struct.Struct("<d")
_MAX_VARINT_BYTES = 10

Field = tuple[int, int, int, int]
"""Number, wire type, and: from where to where in the body; of a varint the value and 0."""

MAX_VALUES: Final = 100_000
"""Values within one attribute; two bytes in the body may be an object in memory."""

MAX_VALUES_IN_ALL: Final = 1_000_000
"""Values within all structured attributes of a request, as many as its spans would be held with."""

_MAX_EVENTS = 64
"""Events of a span that are looked at, the last ones: the exception that ended it comes last."""

_FIRST: Final = 0x0A
_SECOND: Final = 0x12

_ONE_BYTE: Final = 0x80
"""Tags of the fields 1 and 2 where they hold bytes, and the first number of two bytes."""

Slice = tuple[int, int]
_SPAN_KEYS = {key.encode(): key for key in keys.OF_SPANS}
_CONTENT_KEYS = {key.encode() for key in keys.CONTENT}
_EVENT_KEYS = {key.encode(): key for key in keys.OF_EVENTS}
_RESOURCE_KEYS = {key.encode(): key for key in keys.OF_RESOURCES}


class WireError(OtlpError):
    """The bytes are no message, or end within one."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the body is no ExportTraceServiceRequest in protobuf: {problem}; "
            "nothing was stored, send it whole"
        )


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
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
            if wire_type == BYTES:
                length = data[at]
                at += 1
                if length > 0x7F:
                    length, at = _varint(data, at - 1)
                stop = at + length
            elif wire_type == VARINT:
                value, at = _varint(data, at)
                if at > end or not tag >> 3:
                    raise WireError(f"it ends within the field at byte {at}")
                yield tag >> 3, VARINT, value, 0
                continue
            elif wire_type == FIXED64:
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


def fixed64(data: bytes, at: int) -> int:
    """An unsigned number."""
    return int.from_bytes(data[at : at + 8], "little")


def double(data: bytes, at: int) -> float:
    """A floating-point number; NaN and the infinities, too."""
    number: float = _DOUBLE.unpack_from(data, at)[0]
    return number


def signed(value: int) -> int:
    """The `int64` of a varint."""
    return value - (1 << 64) if value >> 63 else value


def text(data: bytes, start: int, end: int) -> str:
    """A string; what is not UTF-8 in it becomes U+FFFD, so that one byte loses no span."""
    return data[start:end].decode("utf-8", "replace")


def spans(body: bytes) -> Iterator[Span | NoSpan]:
    """The spans of an `ExportTraceServiceRequest`, or a `TracesData`, one at a time.

    Raises:
        WireError: no such message. Spans before the fault may have been given.
        TooManySpansError: at the first one too many.
    """
    number = resource_at = 0
    left = [MAX_VALUES_IN_ALL]
    for field, wire_type, start, stop in fields(body, 0, len(body)):
        if field != 1 or wire_type != BYTES:
            continue
        resource = _resource(body, start, stop, left)
        scope_at = 0
        for inner, inner_type, scope_start, scope_stop in fields(body, start, stop):
            if inner != 2 or inner_type != BYTES:
                continue
            span_at = 0
            for innermost, kind, span_start, span_stop in fields(body, scope_start, scope_stop):
                if innermost != 2 or kind != BYTES:
                    continue
                number += 1
                count_span(number)
                place = (resource_at, scope_at, span_at)
                yield _span(body, span_start, span_stop, place, resource, left)
                span_at += 1
            scope_at += 1
        resource_at += 1


def _resource(data: bytes, start: int, end: int, left: list[int]) -> Attributes:
    attributes: dict[str, object] = {}
    for field, wire_type, at, stop in fields(data, start, end):
        if field == 1 and wire_type == BYTES:
            for inner, inner_type, inner_at, inner_stop in fields(data, at, stop):
                if inner == 1 and inner_type == BYTES:
                    _attribute(data, inner_at, inner_stop, _RESOURCE_KEYS, attributes, left)
    return attributes or NONE


def _span(  # noqa: C901, PLR0912  # one branch for each field that is read, in the message's order
    data: bytes,
    start: int,
    end: int,
    place: tuple[int, int, int],
    resource: Attributes,
    left: list[int],
) -> Span:
    span = Span(place, resource, start_ns=0, end_ns=0)
    attributes: dict[str, object] = {}
    content: dict[bytes, Slice] = {}
    events: deque[Slice] = deque(maxlen=_MAX_EVENTS)
    for field, wire_type, at, stop in fields(data, start, end):
        if field == 9 and wire_type == BYTES:
            put_off = _attribute(data, at, stop, _SPAN_KEYS, attributes, left, _CONTENT_KEYS)
            if put_off:
                content[put_off] = at, stop
        elif wire_type == BYTES:
            if field == 1:
                span.trace_id = _id(data[at:stop], 16)
            elif field == 2:
                span.span_id = _id(data[at:stop], 8)
            elif field == 4:
                span.parent_span_id = _id(data[at:stop], 8)
            elif field == 5:
                span.name = text(data, at, stop)
            elif field == 11:
                events.append((at, stop))
            elif field == 15:
                _status(data, at, stop, span)
        elif wire_type == FIXED64:
            if field == 7:
                span.start_ns = fixed64(data, at)
            elif field == 8:
                span.end_ns = fixed64(data, at)
        elif field == 6 and wire_type == VARINT:
            span.kind = at
    span.attributes = attributes
    if may_be_call(attributes):
        for at, stop in content.values():
            _attribute(data, at, stop, _SPAN_KEYS, attributes, left)
        span.events = dict(_events(data, events, left))
    return span


def _id(raw: bytes, length: int) -> str:
    """Hexadecimal; empty for what is no id, such as zeros (w3.org/TR/trace-context)."""
    return raw.hex() if len(raw) == length and any(raw) else ""


def _status(data: bytes, start: int, end: int, span: Span) -> None:
    for field, wire_type, at, stop in fields(data, start, end):
        if field == 2 and wire_type == BYTES:
            span.status_message = text(data, at, stop)
        elif field == 3 and wire_type == VARINT:
            span.status = at


def _events(data: bytes, slices: deque[Slice], left: list[int]) -> Iterator[tuple[str, Attributes]]:
    for start, end in slices:
        name = ""
        attributes: dict[str, object] = {}
        for field, wire_type, at, stop in fields(data, start, end):
            if wire_type != BYTES:
                continue
            if field == 2:
                name = text(data, at, stop)
            elif field == 3:
                _attribute(data, at, stop, _EVENT_KEYS, attributes, left)
        if name in keys.EVENTS:
            yield name, attributes


def _attribute(
    data: bytes,
    start: int,
    end: int,
    wanted: dict[bytes, str],
    into: dict[str, object],
    left: list[int],
    put_off: Set[bytes] = frozenset(),
) -> bytes:
    """Put an attribute that is wanted into `into`; or give the key of one that is to be put off."""
    # As every library writes it, key first and short: no further than the key, mostly.
    if end - start > 2 and data[start] == _FIRST and data[start + 1] < _ONE_BYTE:
        key = data[start + 2 : start + 2 + data[start + 1]]
        if key not in wanted:
            return b""
        if key in put_off:
            return key
        plain = _plain_text(data, start + 2 + len(key), end)
        if plain is not None:
            into[wanted[key]] = plain
            return b""
    return _any_attribute(data, start, end, wanted, into, left, put_off)


def _plain_text(data: bytes, at: int, end: int) -> str | None:
    """The text of the field `value` that fills what is left, where it is nothing but short text."""
    length = end - at - 4
    if (
        0 <= length < _ONE_BYTE - 2
        and data[at] == _SECOND
        and data[at + 1] == length + 2
        and data[at + 2] == _FIRST
        and data[at + 3] == length
    ):
        return text(data, at + 4, end)
    return None


def _any_attribute(
    data: bytes,
    start: int,
    end: int,
    wanted: dict[bytes, str],
    into: dict[str, object],
    left: list[int],
    put_off: Set[bytes],
) -> bytes:
    key: bytes = b""
    value: Slice | None = None
    for field, wire_type, at, stop in fields(data, start, end):
        if wire_type != BYTES:
            continue
        if field == 1:
            key = data[at:stop]
            if key not in wanted:
                return b""
        elif field == 2:
            value = at, stop
    if key in put_off:
        return key
    if name := wanted.get(key):
        into[name] = _bounded_value(data, *value, left) if value else None
    return b""


def _bounded_value(data: bytes, start: int, end: int, left_in_all: list[int]) -> object:
    """A value within the bounds; a plain one is always."""
    most = min(MAX_VALUES, left_in_all[0] + 1)
    left = [most]
    value = _value(data, start, end, MAX_DEPTH, left)
    left_in_all[0] -= most - max(left[0], 0) - 1
    if left[0] < 0 and most < MAX_VALUES:
        return Unusable(f"comes after {MAX_VALUES_IN_ALL:,} values; send fewer spans at a time")
    return value


def _value(data: bytes, start: int, end: int, depth: int, left: list[int]) -> object:
    """An `AnyValue`; the last of its alternatives counts, as in every oneof."""
    left[0] -= 1
    if left[0] < 0:
        return Unusable(f"holds more than {MAX_VALUES:,} values")
    value: object = None
    for field, wire_type, at, stop in fields(data, start, end):
        if wire_type == BYTES:
            if field == 1:
                value = text(data, at, stop)
            elif field == 5:
                value = _list(data, at, stop, depth - 1, left)
            elif field == 6:
                value = _object(data, at, stop, depth - 1, left)
            elif field == 7:
                value = data[at:stop]
        elif wire_type == VARINT:
            if field == 2:
                value = bool(at)
            elif field == 3:
                value = signed(at)
        elif wire_type == FIXED64 and field == 4:
            value = double(data, at)
    return value


def _list(data: bytes, start: int, end: int, depth: int, left: list[int]) -> object:
    if depth <= 0:
        return Unusable(f"is nested deeper than {MAX_DEPTH} levels")
    items: list[object] = []
    for field, wire_type, at, stop in fields(data, start, end):
        if field == 1 and wire_type == BYTES:
            item = _value(data, at, stop, depth, left)
            if isinstance(item, Unusable):
                return item
            items.append(item)
    return items


def _object(data: bytes, start: int, end: int, depth: int, left: list[int]) -> object:
    if depth <= 0:
        return Unusable(f"is nested deeper than {MAX_DEPTH} levels")
    members: dict[str, object] = {}
    for field, wire_type, at, stop in fields(data, start, end):
        if field != 1 or wire_type != BYTES:
            continue
        name, value = "", None
        for inner, inner_type, inner_at, inner_stop in fields(data, at, stop):
            if inner_type == BYTES and inner == 1:
                name = text(data, inner_at, inner_stop)
            elif inner_type == BYTES and inner == 2:
                value = _value(data, inner_at, inner_stop, depth, left)
                if isinstance(value, Unusable):
                    return value
        members[name] = value
    return members
