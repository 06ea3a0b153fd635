"""Both encodings are read as the protocol says, and what is none of them is refused in words."""

import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from aftercall.models import Execution
from ingest.formats.calls import Noted, Unreadable, python_literal
from ingest.formats.otlp import keys, spans
from ingest.formats.otlp.reading import read_otlp_json
from ingest.formats.otlp.spans import OtlpError, TooManySpansError
from tests.ingest.otlp_samples import (
    START_NS,
    Json,
    exception,
    in_protobuf,
    of_json,
    of_protobuf,
    request,
    span,
    tool_span,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from([
            "resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue",
            "arrayValue", "kvlistValue", "values", "traceId", "events", "status", "resource",
        ]) | st.text(max_size=4),
        inner, max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip

WHOLE = in_protobuf(
    request(
        tool_span(1, status={"code": 2}, events=[exception("E", "no")]),
        span(2, {"mcp.method.name": "tools/call", "gen_ai.tool.call.arguments": {"a": [1, {}]}}),
        resource={"service.name": "x"},
    )
)


@given(arguments=st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES, max_size=4))
def test_every_value_is_the_same_in_both_encodings(arguments: dict[str, Any]) -> None:
    """As OpenTelemetry's own library writes protobuf."""
    value = request(tool_span(1, more={"gen_ai.tool.call.arguments": arguments}))
    in_json = next(spans.json_spans(value))
    in_bytes = next(spans.protobuf_spans(in_protobuf(value)))
    assert in_json == in_bytes
    assert in_json.attributes["gen_ai.tool.call.arguments"] == arguments


@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_message_that_is_cut_off_is_refused_or_shorter(cut: int) -> None:
    """Never anything else; where a whole span is gone, so is its execution."""
    try:
        reads = of_protobuf(WHOLE[:cut])
    except OtlpError as error:
        reads, words = [], str(error)
    else:
        words = "send it whole"
    assert "send it whole" in words
    assert len([each for each in reads if isinstance(each, Execution)]) < 2


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message of which some bytes are changed, put in or taken out."""
    body = bytearray(WHOLE)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(body) - 1))
        body[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(body)


@given(body=damaged() | st.binary(max_size=200) | ANY_JSON)
@settings(max_examples=300)
def test_whatever_comes_raises_nothing_else(body: Any) -> None:
    """Damaged, or at random: read to its end, or to the documented error."""
    with suppress(OtlpError):
        reads = of_protobuf(body) if isinstance(body, bytes) else of_json(body)
        assert all(isinstance(each, Execution | Unreadable | Noted) for each in reads)


@given(
    fields=st.dictionaries(
        st.sampled_from([
            "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano",
            "endTimeUnixNano", "status", "events", "attributes",
        ]),
        ANY_JSON,
    ),
    attributes=st.dictionaries(st.sampled_from(sorted(keys.OF_SPANS)), VALUES),
)  # fmt: skip
def test_a_tools_span_of_any_types_is_read_or_refused(fields: Json, attributes: Json) -> None:
    """One span, one execution or one reason; never an exception."""
    reads = of_json(request(tool_span(1, more=attributes, **fields)))
    assert len([each for each in reads if not isinstance(each, Noted)]) <= 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "expected an object with `resourceSpans`"),
        ("x", "expected an object with `resourceSpans`"),
        ({"resourceSpans": {}}, "`resourceSpans` must be a list"),
    ],
)
def test_json_that_is_no_request_is_refused_at_once(value: object, words: str) -> None:
    """Before anything is read, and with what was expected."""
    with pytest.raises(OtlpError, match=words):
        of_json(value)


def test_an_empty_request_is_one() -> None:
    """Exporters may send it; fields that are not known are ignored."""
    assert of_json({}) == []
    assert of_json({"resourceSpans": None, "new": 1}) == []
    assert of_protobuf(b"") == []
    assert of_protobuf(b"\xfa\x01\x03abc") == []


def test_places_that_hold_something_else_are_named() -> None:
    """And the spans beside them are read."""
    good = tool_span(1)
    value = {
        "resourceSpans": [
            5,
            {"scopeSpans": "x"},
            {"scopeSpans": [None, {"spans": {}}, {"spans": [7, good]}]},
        ]
    }
    *reasons, execution = read_otlp_json(value)
    assert [each.where for each in reasons] == [
        "resourceSpans[0]",
        "resourceSpans[1]",
        "resourceSpans[2].scopeSpans[0]",
        "resourceSpans[2].scopeSpans[1]",
        "resourceSpans[2].scopeSpans[2].spans[0]",
    ]
    assert isinstance(execution.read, Execution)


def test_json_is_taken_in_its_other_spellings_too() -> None:
    """Numbers as numbers, and ids in capitals."""
    written = tool_span(1)
    other = {
        "spanId": written["spanId"].upper(),
        "startTimeUnixNano": START_NS,
        "endTimeUnixNano": START_NS + 250_000_000,
    }
    assert of_json(request(written | other)) == of_json(request(written))


def test_unknown_fields_in_protobuf_are_skipped() -> None:
    """Of every wire type, in every message on the way."""
    message = ExportTraceServiceRequest.FromString(WHOLE)
    unknown = b"\xf8\x07\x05" + b"\xf9\x07" + bytes(8) + b"\xfd\x07" + bytes(4) + b"\xfa\x07\x01x"
    for part in (
        message.resource_spans[0].scope_spans[0].spans[0],
        message.resource_spans[0].scope_spans[0],
        message.resource_spans[0],
        message,
    ):
        part.MergeFromString(unknown)
    assert of_protobuf(message.SerializeToString()) == of_protobuf(WHOLE)


def framed(tag: int, *contents: bytes) -> bytes:
    """A field that holds a message or a text."""
    content = b"".join(contents)
    length, parts = len(content), bytearray([tag])
    while length > 0x7F:
        parts.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*parts, length]) + content


@pytest.mark.parametrize("depth", [99, 101, 5_000])
def test_values_nested_too_deep_refuse_their_span(depth: int) -> None:
    """They are not followed; the stack stays as it is."""
    value = b""
    for _ in range(depth):  # AnyValue.array_value.values, inside out
        value = framed(0x2A, framed(0x0A, value))
    anything = framed(0x32, framed(0x0A, b"\x0a\x01a", framed(0x12, value)))
    attribute = framed(0x4A, framed(0x0A, b"gen_ai.tool.call.arguments"), framed(0x12, anything))
    body = in_protobuf(request(tool_span(1, more={"gen_ai.tool.call.arguments": ...})))
    message = ExportTraceServiceRequest.FromString(body)
    whole = message.resource_spans[0].scope_spans[0].spans[0].SerializeToString() + attribute
    [read] = of_protobuf(framed(0x0A, framed(0x12, framed(0x12, whole))))
    assert depth < 100 or "nested deeper than 100 levels" in read.message


def test_values_are_bounded_over_a_whole_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the bound is refused by name; plain text is taken all the same."""
    monkeypatch.setattr("ingest.formats.otlp.spans.MAX_VALUES", 22)
    structured = {"gen_ai.tool.call.arguments": {"numbers": list(range(8))}}
    spans_ = [*(tool_span(n, more=structured) for n in range(1, 5)), tool_span(5)]
    reads = of_protobuf(in_protobuf(request(*spans_)))
    assert [type(read) for read in reads] == [
        Execution, Execution, Unreadable, Unreadable, Execution,
    ]  # fmt: skip
    assert "send fewer spans at a time" in reads[2].message


def test_a_body_of_empty_spans_takes_no_memory_to_speak_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 MiB of them, which protobuf's own parser takes 700 MiB for, end at the bound."""
    monkeypatch.setattr("ingest.formats.otlp.spans.MAX_SPANS", 20_000)
    body = framed(0x0A, framed(0x12, b"\x12\x00" * (4 * 1024 * 1024)))
    tracemalloc.start()
    try:
        with pytest.raises(TooManySpansError, match="more than 20,000 spans"):
            for _ in of_protobuf(body):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 1024 * 1024


@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_the_repr_of_plain_values_is_read_back(value: object) -> None:
    """Every text, every number, nested as may be."""
    assert python_literal(repr(value)) == value


@pytest.mark.parametrize(
    "text", ["{'a': Thing()}", "{'a': <x>}", "{'a': 'b", "{1, 2}", "{'a': ...}", "{'a' 'b'}", ""]
)
def test_what_is_no_repr_of_plain_values_is_refused(text: str) -> None:
    """Nothing is evaluated."""
    assert python_literal(text) is None
