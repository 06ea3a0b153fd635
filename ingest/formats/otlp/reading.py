"""One OTLP request read into executions, reasons for none, and one note.

    bytes or JSON ─ spans ─> Span ─ conventions ─> ToolCall ─ family ─> Execution

Three conventions are read, and some vendors' own:

- GenAI: spans of the operation `execute_tool`, and those from before it. Arguments and results are
  in `gen_ai.tool.call.arguments` and `.result`, as structured values or as JSON text; where these
  are missing, in what instrumentations wrote before they were agreed on: Pydantic AI
  `tool_arguments`, `tool_response`; Google ADK `gcp.vertex.agent.*`.
- MCP: `mcp.method.name` is `tools/call`, on a client's or server's span. Such a span is a GenAI
  span as well: name, arguments and result are in the same attributes.
- Vendors' own, where none of these is kept: the Vercel AI SDK, Traceloop, LangSmith, Langfuse,
  MLflow.
- OpenInference: spans of the kind TOOL. `tool.parameters` is a schema there. Some write arguments
  into it, or into `tool_call.function.arguments`: they are read where there is no `input.value`.

One request is read as one thing: what a span does not say itself (its agent, its session, whether
it is the inner half of a call that is shown twice) is looked up in the spans around it. Exporters
send spans as they end, children first, so a parent may come in a later request, and then nothing is
known of it here. Spans that are no call of a tool give nothing, and so do those of calls that were
recorded already: by our own SDK (`aftercall.execution_id`), or by a span around them.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID, uuid5

from pydantic import ValidationError

from aftercall.json_values import JsonValue, bounded_text, clean_text, make_json_value
from aftercall.models import Execution, ExecutionError
from ingest.formats.calls import Noted, Placed, Unreadable, passed_over
from ingest.formats.otlp import keys
from ingest.formats.otlp.keys import (
    MAX_NAME,
    BadSpanError,
    UnreadArgumentsError,
    loose_text,
    schema_of,
    span_arguments,
    span_name,
    span_result,
    span_text,
    span_words,
    unwrap_member,
)
from ingest.formats.otlp.spans import (
    ERROR_STATUS,
    OK_STATUS,
    SERVER_KIND,
    Attributes,
    NoSpan,
    Span,
    json_spans,
    protobuf_spans,
    show_place,
)

_ARGUMENTS = (keys.TOOL_ARGUMENTS, keys.PYDANTIC_AI_ARGUMENTS, keys.GOOGLE_ADK_ARGUMENTS)
_RESULTS = (keys.TOOL_RESULT, keys.PYDANTIC_AI_RESULT, keys.GOOGLE_ADK_RESULT)
_PREFIXES = ("execute_tool ", "running tool: ")
"""How the names of spans begin that hold the tool's name: the convention, and Pydantic AI's."""
_SIGNS = frozenset({keys.OPERATION, keys.MCP_METHOD, keys.TOOL_NAME})
_MERGED = "(merged tools)"
"""Google ADK shows parallel calls once more together, under this name."""
_SENDS = "MCP send "
"""How the MCP SDK for Python (2.x) names the spans of its client."""
_MAX_CLIMB = 64
"""Ancestors that are looked at: traces are a few levels deep, and hostile ones run in circles."""
_MAX_REASON = 300
_MAX_MAKER = 100
_MAX_MESSAGE = 8_000
_MAX_STACK = 16_000
_DIGEST_CHARS = 32
_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow"})
_UNREADABLE = "unreadable"
_UNNAMED_SERVICE = "unknown_service"
"""What SDKs call a service that no one named (opentelemetry.io/docs/specs/semconv/resource)."""
_UNSPECIFIC = "_OTHER"
"""The convention's word for an error without a class."""
_OF_SPANS = UUID("5a0b6d0e-3c7c-5d52-9f2c-1c8a1c8e7d11")
"""Namespace of the ids: the same span is the same execution, however often it is sent."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = int(datetime(2199, 12, 31, tzinfo=UTC).timestamp()) * 10**9


@dataclass(slots=True)
class ToolCall:
    """What a span states of the call. None where it states nothing."""

    name: str | None = None
    call_id: str | None = None
    arguments: object = None
    named_arguments: bool = False
    result: object = None
    server_name: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    input_schema: object = None


@dataclass(slots=True)
class _Known:
    agent: str | None
    session: str | None
    begins_agent: bool
    call: ToolCall | None
    arguments: str | None = None
    """`_arguments_of` its call, once they were compared: thousands of spans may lie below one."""


class _Family:
    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._known: dict[str, _Known] = {}

    def add(self, span: Span, call: ToolCall | None) -> None:
        """Remember a span; `call` when it is one of a tool."""
        if not (span.trace_id and span.span_id):
            return
        key = span.trace_id + span.span_id
        if span.parent_span_id:
            self._parents[key] = span.trace_id + span.parent_span_id
        if not (attributes := span.attributes):
            return
        known = _Known(
            agent=_agent_in(attributes),
            session=_session_in(attributes),
            begins_agent=loose_text(attributes.get(keys.OPERATION)) in _AGENTS
            or attributes.get(keys.SPAN_KIND) == "AGENT",
            call=call,
        )
        if known.agent or known.session or known.begins_agent or known.call:
            self._known[key] = known

    def agent_of(self, span: Span) -> str:
        """Its own agent, else the nearest ancestor's, else its service, else `unknown`."""
        above = (each.agent for each in self._spans_above(span) if each.agent)
        name = _agent_in(span.attributes) or next(above, None)
        if name is None and span.kind != SERVER_KIND:  # a server's span is the tool's service
            name = loose_text(span.resource.get(keys.SERVICE_NAME))
            if name is not None and name.startswith(_UNNAMED_SERVICE):
                name = None
        return span_name(name) if name else "unknown"

    def session_of(self, span: Span) -> str:
        """Its own session, else the nearest ancestor's, else its MCP session, else its trace.

        An MCP session's id is hashed, since anyone who knows it can speak in the session.
        """
        above = (each.session for each in self._spans_above(span) if each.session)
        session = _session_in(span.attributes) or next(above, None)
        if session is not None:
            return session if len(session) <= MAX_NAME else _digest_secret(session)
        mcp_session = loose_text(span.attributes.get(keys.MCP_SESSION))
        return _digest_secret(mcp_session) if mcp_session else span.trace_id

    def has_outer(self, span: Span, call: ToolCall) -> bool:
        """Return whether an ancestor shows the same call, such as an agent framework.

        The same is one of the same tool, unless id or arguments differ, or an agent stands between.
        """
        inner = _Known(None, None, begins_agent=False, call=call)
        for outer in self._spans_above(span):
            if _is_same(outer, inner):
                return True
            if outer.begins_agent:
                return False
        return False

    def _spans_above(self, span: Span) -> Iterator[_Known]:
        key = span.trace_id + span.span_id
        for _ in range(_MAX_CLIMB):
            if (parent := self._parents.get(key)) is None:
                return
            key = parent
            if (known := self._known.get(key)) is not None:
                yield known


def call_of(span: Span) -> ToolCall | None:
    """Return the call that a span shows, by all conventions that see one.

    None of a span that shows none.

    MCP comes first, since it knows the server and the protocol's codes, then GenAI, then
    OpenInference; what the first does not say is taken from the next.

    The MCP SDK's client notes errors of the protocol; a tool's own failure (`isError`) it does not
    look at, and leaves its span as if all were well. Such a span cannot show success from failure,
    and so is no record of a call. The server's span, and FastMCP's around it, show both.
    """
    is_blind = span.name.startswith(_SENDS) and span.status != ERROR_STATUS
    if keys.MARKS.isdisjoint(span.attributes) or is_blind:
        return None
    call: ToolCall | None = None
    for convention in (_mcp_call, _genai_call, _openinference_call, _vendor_call):
        found = convention(span)
        call = call or found
        for each in fields(found) if found else ():
            if getattr(call, each.name) is None:
                setattr(call, each.name, getattr(found, each.name))
    return call


def _mcp_call(span: Span) -> ToolCall | None:
    attributes = span.attributes
    if attributes.get(keys.MCP_METHOD) != keys.TOOLS_CALL:
        return None
    _, _, target = span.name.partition(f"{keys.TOOLS_CALL} ")
    error_type = loose_text(attributes.get(keys.ERROR_TYPE)) or ""
    code = _first_text(attributes, keys.RPC_STATUS, keys.RPC_ERROR_CODE)
    if code is None and error_type.removeprefix("-").isdecimal():
        code = error_type  # a JSON-RPC error's code is its `error.type`; some write it only there
    # FastMCP names its server; else where it was reached; a server's own span is its service's.
    server = _first_text(attributes, keys.FASTMCP_SERVER, keys.SERVER_ADDRESS)
    if server is None and span.kind == SERVER_KIND:
        server = loose_text(span.resource.get(keys.SERVICE_NAME))
    return ToolCall(
        name=span_text(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME) or (target.strip() or None),
        named_arguments=True,
        server_name=server,
        error_code=code,
        error_message=loose_text(attributes.get(keys.RPC_ERROR_MESSAGE)),
    )


def _genai_call(span: Span) -> ToolCall | None:
    """`gen_ai.tool.name` alone makes it one, unless the span names another operation or method."""
    attributes = span.attributes
    operation = attributes.get(keys.OPERATION, keys.EXECUTE_TOOL)
    method = attributes.get(keys.MCP_METHOD, keys.TOOLS_CALL)
    is_other = operation != keys.EXECUTE_TOOL or method != keys.TOOLS_CALL
    if is_other or attributes.keys().isdisjoint(_SIGNS):
        return None
    name = span_text(attributes.get(keys.TOOL_NAME), keys.TOOL_NAME)
    for prefix in _PREFIXES:
        if name is None and span.name.startswith(prefix):
            name = span.name.removeprefix(prefix).strip() or None
    if name == _MERGED:
        return None
    arguments, result = (
        _first_attribute(attributes, _ARGUMENTS),
        _first_attribute(attributes, _RESULTS),
    )
    return ToolCall(
        name=name,
        call_id=loose_text(attributes.get(keys.TOOL_CALL_ID)),
        arguments=span.arguments if arguments is None else arguments,
        result=span.result if result is None else result,
    )


def _openinference_call(span: Span) -> ToolCall | None:
    attributes = span.attributes
    kind = attributes.get(keys.SPAN_KIND)
    if not isinstance(kind, str) or kind.upper() != "TOOL":
        return None
    return ToolCall(
        name=span_text(attributes.get(keys.OI_TOOL_NAME), keys.OI_TOOL_NAME) or span.name or None,
        call_id=loose_text(attributes.get(keys.OI_TOOL_ID)),
        arguments=keys.arguments_for_schema(attributes.get(keys.OI_SCHEMA))
        if (said := _first_attribute(attributes, (keys.OI_INPUT, keys.OI_ARGUMENTS))) is None
        else said,
        result=attributes.get(keys.OI_OUTPUT),
        input_schema=schema_of(attributes.get(keys.OI_SCHEMA))
        or schema_of(attributes.get(keys.OI_JSON_SCHEMA)),
    )


def _vendor_call(span: Span) -> ToolCall | None:
    attributes = span.attributes
    for vendor in keys.VENDORS:
        if attributes.get(vendor.mark) == vendor.said:
            name = loose_text(attributes.get(vendor.name)) if vendor.name else None
            return ToolCall(
                name=name or span.name or None,
                call_id=loose_text(attributes.get(vendor.call_id)) if vendor.call_id else None,
                arguments=unwrap_member(attributes.get(vendor.arguments), vendor.wrapped),
                result=unwrap_member(attributes.get(vendor.result), ("output",)),
            )
    return None


def _first_attribute(attributes: Attributes, names: tuple[str, ...]) -> object:
    return next((value for name in names if (value := attributes.get(name)) is not None), None)


def _first_text(attributes: Attributes, *names: str) -> str | None:
    return next((text for name in names if (text := loose_text(attributes.get(name)))), None)


def read_otlp_json(value: object) -> Iterator[Placed]:
    """Yield what one `ExportTraceServiceRequest` (or `TracesData`) states, of parsed JSON.

    What is wrong with the whole is raised at once.
    """
    return _read_spans(list(json_spans(value)))


def read_protobuf(body: bytes) -> Iterator[Placed]:
    """Yield what a message in protobuf states; see `read_otlp_json`."""
    return _read_spans(list(protobuf_spans(body)))


def _read_spans(spans: Sequence[Span | NoSpan]) -> Iterator[Placed]:
    calls, family = list[ToolCall | BadSpanError | None](), _Family()
    for span in spans:
        try:
            calls.append(call_of(span) if isinstance(span, Span) else BadSpanError(span.message))
        except BadSpanError as problem:
            calls.append(problem)
        if isinstance(span, Span):
            family.add(span, calls[-1] if isinstance(calls[-1], ToolCall) else None)
    without_arguments = unread = found = 0
    others = Counter(
        _maker_of(span)
        for span, call in zip(spans, calls, strict=True)
        if call is None and isinstance(span, Span)
    )
    for span, call in zip(spans, calls, strict=True):
        try:
            if isinstance(call, BadSpanError):
                raise call
            if (
                call is None
                or not isinstance(span, Span)
                or keys.RECORDED_AS in span.attributes
                or family.has_outer(span, call)
            ):
                continue
            read = _execution_of(span, call, family)
        except BadSpanError as problem:
            yield Placed(
                show_place(span.place), Unreadable(bounded_text(str(problem), _MAX_REASON))
            )
            continue
        yield Placed(show_place(span.place), read)
        found += 1
        unread += read.arguments_text is not None
        without_arguments += not read.parameters_known and read.arguments_text is None
    if unread:
        note = (
            f"the arguments of {unread:,} of {found:,} calls begin as JSON objects and are none: "
            "cut off, perhaps; they are kept as they came, and nothing can be learned of "
            "parameters from them; raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where they are sent"
        )
        yield Placed("", Noted(note))
    if without_arguments:
        note = (
            f"{without_arguments:,} of {found:,} calls came without arguments: they count, and "
            "nothing can be learned of parameters from them; let the instrumentation send content: "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (older ones: true) and "
            "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental, or the framework's own "
            "switch"
        )
        yield Placed("", Noted(note))
    if others:
        yield Placed("", passed_over(others))


def _maker_of(span: Span) -> str:
    """Return who made a span: its instrumentation, else its service."""
    service = loose_text(span.resource.get(keys.SERVICE_NAME)) or _UNNAMED_SERVICE
    return bounded_text(clean_text(span.instrumentation) or service, _MAX_MAKER)


def execution_id_of(trace_id: str, span_id: str) -> str:
    """Return the id of the execution that a span becomes; ids in lower-case hexadecimal."""
    return str(uuid5(_OF_SPANS, trace_id + span_id))


def is_same_span(one: Execution, other: Execution) -> bool:
    """Return whether two executions of one id come from one span.

    Agent and session may be those of a span around it, which is not in every request that has it.
    """
    return (one.tool_name, one.timestamp) == (other.tool_name, other.timestamp)


def _execution_of(span: Span, call: ToolCall, family: "_Family") -> Execution:
    if not span.trace_id or not span.span_id:
        raise BadSpanError("trace id or span id is missing, all zeros or of another length")
    if not call.name:
        raise BadSpanError(f"it names no tool; set {keys.TOOL_NAME}")
    if len(call.name) > MAX_NAME:
        raise BadSpanError(f"the tool's name is longer than {MAX_NAME} characters")
    if span.start_ns is None:
        raise BadSpanError("startTimeUnixNano is no number of nanoseconds since 1970")
    if span.start_ns == 0:
        raise BadSpanError("startTimeUnixNano is missing or 0; a call has a time")
    if span.start_ns > _LAST_NS:
        raise BadSpanError("startTimeUnixNano lies after the year 2199; check the sender's clock")
    told, named = call.arguments, call.named_arguments
    parameters: dict[str, object] = {}
    unread: str | None = None
    try:
        parameters = {} if told is None else span_arguments(told, named=named)
    except UnreadArgumentsError as cut_off:
        unread = clean_text(cut_off.text)
    result = span_result(call.result)
    error = _error_of(span, call, result)
    started, ended = span.start_ns, span.end_ns
    values = {
        "execution_id": execution_id_of(span.trace_id, span.span_id),
        "timestamp": _EPOCH + timedelta(microseconds=span.start_ns // 1000),
        "agent": family.agent_of(span),
        "server_name": span_name(call.server_name) if call.server_name else None,
        "tool_name": clean_text(call.name),
        "parameters": parameters,
        "parameters_known": call.arguments is not None and unread is None,
        "arguments_text": unread,
        "outcome": "success" if error is None else "failure",
        "error": error,
        # 0 for a span that never ended, or ended before it began: clocks get set.
        "duration_ms": max(0.0, (ended - started) / 1_000_000) if started and ended else 0.0,
        "result": result,
        "session_id": family.session_of(span),
        "trace_id": span.trace_id,
        "input_schema": call.input_schema,
    }
    try:
        return Execution.model_validate(values)
    except ValidationError:
        pass
    # Values that no store holds, such as NaN: shown as every recorder shows them.
    for name in ("parameters", "input_schema"):
        values[name] = make_json_value(values[name])
    try:
        return Execution.model_validate(values)
    except ValidationError as fault:
        names = sorted({str(each["loc"][0]) for each in fault.errors() if each["loc"]})
        raise BadSpanError(f"it cannot be recorded: {', '.join(names)}") from None


def _error_of(span: Span, call: ToolCall, result: JsonValue) -> ExecutionError | None:
    """Return the error of a call that failed.

    It failed when its status is ERROR, when an attribute states that the tool answered with an
    error (the span itself may have ended well), or when there is an `error.type` and the status is
    not set to OK. An exception that was recorded on a span that did not fail was dealt with. The
    text of a result never makes a failure.
    """
    attributes = span.attributes
    error_type = loose_text(attributes.get(keys.ERROR_TYPE))
    is_marked = any(attributes.get(key) == said for key, said in keys.FAILED.items())
    is_typed = error_type is not None and span.status != OK_STATUS
    if span.status != ERROR_STATUS and not is_marked and not is_typed:
        return None
    exception = span.exception
    if error_type in {None, _UNSPECIFIC}:
        error_type = loose_text(exception.get(keys.EXCEPTION_TYPE)) or "Error"
    message = (
        loose_text(exception.get(keys.EXCEPTION_MESSAGE))
        or span.status_message
        or call.error_message
        or loose_text(attributes.get(keys.LANGFUSE_MESSAGE))
        or span_words(result)
        or str(error_type)
    )
    stack = loose_text(exception.get(keys.EXCEPTION_STACK))
    return ExecutionError(
        type=span_name(str(error_type)),
        message=bounded_text(message, _MAX_MESSAGE),
        code=bounded_text(call.error_code, MAX_NAME) if call.error_code else None,
        stack=bounded_text(stack, _MAX_STACK) if stack else None,
    )


def _is_same(above: _Known, below: _Known) -> bool:
    outer, inner = above.call, below.call
    if outer is None or inner is None or outer.name != inner.name:
        return False
    if outer.call_id and inner.call_id:
        return outer.call_id == inner.call_id
    if outer.arguments is None or inner.arguments is None:
        return True
    above.arguments = above.arguments or _arguments_of(outer)
    below.arguments = below.arguments or _arguments_of(inner)
    return above.arguments == below.arguments or _UNREADABLE in {above.arguments, below.arguments}


def _arguments_of(call: ToolCall) -> str:
    """Short text that is the same for the same arguments, however these are written."""
    try:
        value = span_arguments(call.arguments, named=call.named_arguments)
        return _digest_secret(json.dumps(value, sort_keys=True, default=repr))
    except (BadSpanError, RecursionError, ValueError):  # JSON has integers Python does not write
        return _UNREADABLE


def _agent_in(attributes: Attributes) -> str | None:
    return loose_text(attributes.get(keys.AGENT_NAME)) or loose_text(attributes.get(keys.OI_AGENT))


def _session_in(attributes: Attributes) -> str | None:
    said = loose_text(attributes.get(keys.CONVERSATION))
    return said or loose_text(attributes.get(keys.OI_SESSION))


def _digest_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:_DIGEST_CHARS]
