"""Spans out of the JSON encoding: ids in hexadecimal, 64-bit numbers as texts, camelCase.

Taken besides: snake_case names, names of enum values, numbers as numbers, and ids in base64, which
protobuf's own JSON writers send. Fields that are not known are ignored, as the protocol demands;
null is as good as nothing.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, Final

from aftercall.json_values import MAX_DEPTH
from ingest.formats.otlp import keys
from ingest.formats.otlp.span import (
    NONE,
    Attributes,
    NoSpan,
    OtlpError,
    Place,
    Span,
    Unusable,
    count_span,
    may_be_call,
)

Members = dict[str, Any]

_MAX_NS: Final = 2**64 - 1
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE]\+?[0-9]{1,2})?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_KINDS = {"SPAN_KIND_SERVER": 2}
_STATUSES = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def spans(value: object) -> Iterator[Span | NoSpan]:
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
    if may_be_call(attributes):
        span.attributes = {**attributes, **_attributes(listed, keys.CONTENT)}
        span.events = dict(_events(value.get("events")))
    return span


def _events(listed: object) -> Iterator[tuple[str, Attributes]]:
    for event in listed if isinstance(listed, list) else ():
        if isinstance(event, dict) and (name := _text(event.get("name"))) in keys.EVENTS:
            yield name, _attributes(event.get("attributes"), keys.OF_EVENTS)


def _attributes(listed: object, wanted: Set[str]) -> Attributes:
    if not isinstance(listed, list):
        return NONE
    attributes: dict[str, object] = {}
    for each in listed:
        if isinstance(each, dict):
            key = each.get("key")
            if isinstance(key, str) and key in wanted:
                attributes[key] = _value(each.get("value"), MAX_DEPTH)
    return attributes


def _value(value: object, depth: int) -> object:
    """An `AnyValue`. What is in a field of another type is taken as it is: a number is a number."""
    if value is None:
        return None
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


def _members(value: object) -> list[Any] | None:
    if not isinstance(value, dict):
        return None
    listed = value.get("values")
    return [] if listed is None else listed if isinstance(listed, list) else None


def _list(value: object, depth: int) -> object:
    listed = _members(value)
    if listed is None:
        return Unusable("holds no list of values")
    if depth <= 1:
        return Unusable(f"is nested deeper than {MAX_DEPTH} levels")
    items = [_value(each, depth - 1) for each in listed]
    return next((item for item in items if isinstance(item, Unusable)), items)


def _object(value: object, depth: int) -> object:
    listed = _members(value)
    if listed is None:
        return Unusable("holds no list of values")
    if depth <= 1:
        return Unusable(f"is nested deeper than {MAX_DEPTH} levels")
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
