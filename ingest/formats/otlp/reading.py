"""One request from spans to what a reader gives: executions, reasons for none, one note.

A span may match several conventions. MCP comes first, since it knows the server and the protocol's
codes, then GenAI, then OpenInference; what the first does not say is taken from the next. Spans
that are no call of a tool give nothing, and so do those of calls that were recorded already: by our
own SDK (`aftercall.execution_id`), or by a span around them (`Family.has_outer`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from aftercall.bounded import bounded_text
from aftercall.models import Execution
from ingest.formats.otlp import from_json, from_protobuf, genai, keys, mcp, openinference
from ingest.formats.otlp.building import execution_of
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.family import Family
from ingest.formats.otlp.span import NoSpan, Place, Span, Spans, may_be_call, where
from ingest.formats.otlp.values import BadSpanError
from ingest.formats.reading import Noted, Read, Unreadable

_CONVENTIONS = (mcp.tool_call, genai.tool_call, openinference.tool_call)

_HELD = 5_000
"""Spans that are decoded once and held; of a larger request each is decoded twice instead."""

_MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class Located:
    """What was read, and where it stands."""

    place: Place
    read: Read


def read_json(value: object) -> Iterator[Read]:
    """What one `ExportTraceServiceRequest` (or `TracesData`) says, of parsed JSON.

    Raises:
        OtlpError: it is none, or has more than `MAX_SPANS` spans; at once, before anything is read.
    """
    return (each.read for each in located_json(value))


def read_protobuf(body: bytes) -> Iterator[Read]:
    """As `read_json`, of a message in protobuf.

    Raises:
        OtlpError: as there; also when it is cut off.
    """
    return (each.read for each in located_protobuf(body))


def located_json(value: object) -> Iterator[Located]:
    """As `read_json`, with places."""
    return _ahead(_located(partial(from_json.spans, value)))


def located_protobuf(body: bytes) -> Iterator[Located]:
    """As `read_protobuf`, with places."""
    return _ahead(_located(partial(from_protobuf.spans, body)))


def _ahead(located: Iterator[Located]) -> Iterator[Located]:
    """The same, begun: what is wrong with the whole is raised now, and not at the first use."""
    first = next(located, None)
    return iter(()) if first is None else chain([first], located)


def _located(spans: Spans) -> Iterator[Located]:
    held: list[Span | NoSpan] = []
    calls: list[ToolCall | None] = []
    family = Family()
    number = 0
    for number, span in enumerate(spans(), 1):
        call = _clear_call(span)
        if call is not None and number > _HELD:
            call.result = None  # read again later, and of no use to the family
        if isinstance(span, Span):
            family.add(span, call)
        if number <= _HELD:
            held.append(span)
            calls.append(call)
    again = spans() if number > _HELD else iter(held)
    without_arguments = found = 0
    for number, span in enumerate(again):
        known = calls[number] if number < len(calls) else None
        located = _read(span, known, family)
        if located is not None:
            yield located
            if isinstance(located.read, Execution):
                found += 1
                without_arguments += not located.read.parameters_known
    if without_arguments:
        yield Located((), Noted(_capture_content(without_arguments, found)))


def _clear_call(span: Span | NoSpan) -> ToolCall | None:
    try:
        return _call_of(span) if isinstance(span, Span) else None
    except BadSpanError:
        return None


def _call_of(span: Span) -> ToolCall | None:
    """The call that a span tells, by all conventions that see one."""
    if not may_be_call(span.attributes) or mcp.is_blind(span):
        return None
    call: ToolCall | None = None
    for convention in _CONVENTIONS:
        found = convention(span)
        if found is not None:
            call = found if call is None else call.completed_by(found)
    return call


def _read(span: Span | NoSpan, known: ToolCall | None, family: Family) -> Located | None:
    if isinstance(span, NoSpan):
        return _unreadable(span.place, span.message)
    try:
        call = known or _call_of(span)
        if call is None or keys.RECORDED_AS in span.attributes or family.has_outer(span, call):
            return None
        return Located(span.place, execution_of(span, call, family))
    except BadSpanError as problem:
        return _unreadable(span.place, str(problem))


def _unreadable(place: Place, message: str) -> Located:
    return Located(place, Unreadable(where(place), bounded_text(message, _MAX_REASON)))


def _capture_content(count: int, of: int) -> str:
    return (
        f"{count:,} of {of:,} calls came without arguments: they count, and nothing can be learned "
        "of parameters from them; let the instrumentation send content: "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (older ones: true) and "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental, or the framework's own switch"
    )
