"""A span and the call it tells, put together into an execution."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

from pydantic import ValidationError

from aftercall.bounded import bounded_text
from aftercall.json_values import JsonValue, clean_text, make_json_value
from aftercall.models import Execution, ExecutionError
from ingest.formats.otlp import keys
from ingest.formats.otlp.call import ToolCall
from ingest.formats.otlp.family import Family
from ingest.formats.otlp.span import ERROR_STATUS, NONE, OK_STATUS, Span
from ingest.formats.otlp.values import (
    MAX_NAME,
    BadSpanError,
    arguments_of,
    bounded_name,
    loose_text,
    result_of,
    words_of,
)

_OF_SPANS = UUID("5a0b6d0e-3c7c-5d52-9f2c-1c8a1c8e7d11")
"""Namespace of the ids: the same span is the same execution, however often it is sent."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = int(datetime(2199, 12, 31, tzinfo=UTC).timestamp()) * 10**9
_MAX_MESSAGE = 8_000
_MAX_STACK = 16_000
_UNSPECIFIC = "_OTHER"
"""The convention's word for an error without a class."""


def execution_id_of(trace_id: str, span_id: str) -> str:
    """The id of the execution that a span becomes; ids in lower-case hexadecimal."""
    return str(uuid5(_OF_SPANS, trace_id + span_id))


def is_same_span(one: Execution, other: Execution) -> bool:
    """Whether two executions of one id were told by one span, and not by two that share its ids.

    Agent and session may be those of a span around it, which is not in every request that has it.
    """
    return (one.tool_name, one.timestamp) == (other.tool_name, other.timestamp)


def execution_of(span: Span, call: ToolCall, family: Family) -> Execution:
    """The execution that a span tells.

    Raises:
        BadSpanError: it tells none that could be recorded.
    """
    if not span.trace_id or not span.span_id:
        raise BadSpanError("trace id or span id is missing, all zeros or of another length")
    if not call.name:
        raise BadSpanError(f"it names no tool; set {keys.TOOL_NAME}")
    if len(call.name) > MAX_NAME:
        raise BadSpanError(f"the tool's name is longer than {MAX_NAME} characters")
    parameters: Any = {}
    if call.arguments is not None:
        parameters = arguments_of(call.arguments, named=call.named_arguments)
    result = result_of(call.result)
    error = _error_of(span, call, result)
    values = {
        "execution_id": execution_id_of(span.trace_id, span.span_id),
        "timestamp": _start_of(span),
        "agent": family.agent_of(span),
        "server_name": bounded_name(call.server_name) if call.server_name else None,
        "tool_name": clean_text(call.name),
        "parameters": parameters,
        "parameters_known": call.arguments is not None,
        "outcome": "success" if error is None else "failure",
        "error": error,
        "duration_ms": _duration_ms(span),
        "result": result,
        "session_id": family.session_of(span),
        "input_schema": call.input_schema,
    }
    try:
        return Execution.model_validate(values)
    except ValidationError:
        pass
    # Values that no store holds, such as NaN: told as every recorder tells them.
    for name in ("parameters", "input_schema"):
        values[name] = make_json_value(values[name])
    try:
        return Execution.model_validate(values)
    except ValidationError as fault:
        names = sorted({str(each["loc"][0]) for each in fault.errors() if each["loc"]})
        raise BadSpanError(f"it cannot be recorded: {', '.join(names)}") from None


def _start_of(span: Span) -> datetime:
    if span.start_ns is None:
        raise BadSpanError("startTimeUnixNano is no number of nanoseconds since 1970")
    if span.start_ns == 0:
        raise BadSpanError("startTimeUnixNano is missing or 0; a call has a time")
    if span.start_ns > _LAST_NS:
        raise BadSpanError("startTimeUnixNano lies after the year 2199; check the sender's clock")
    return _EPOCH + timedelta(microseconds=span.start_ns // 1000)


def _duration_ms(span: Span) -> float:
    """0 for a span that never ended, or ended before it began: clocks get set."""
    if span.start_ns is None or not span.end_ns:
        return 0.0
    return max(0.0, (span.end_ns - span.start_ns) / 1_000_000)


def _error_of(span: Span, call: ToolCall, result: JsonValue) -> ExecutionError | None:
    """The error of a call that failed.

    It failed when its status is ERROR, when there is an `error.type` and the status is not set to
    OK, or when the convention has a word of its own for it. An exception that was recorded on a
    span that did not fail was dealt with. The text of a result never makes a failure.
    """
    error_type = loose_text(span.attributes.get(keys.ERROR_TYPE))
    if not (
        call.failed
        or span.status == ERROR_STATUS
        or (error_type is not None and span.status != OK_STATUS)
    ):
        return None
    exception = span.events.get(keys.EXCEPTION_EVENT, NONE)
    if error_type in {None, _UNSPECIFIC}:
        error_type = loose_text(exception.get(keys.EXCEPTION_TYPE)) or "Error"
    message = (
        loose_text(exception.get(keys.EXCEPTION_MESSAGE))
        or span.status_message
        or call.error_message
        or words_of(result)
        or str(error_type)
    )
    stack = loose_text(exception.get(keys.EXCEPTION_STACK))
    return ExecutionError(
        type=bounded_name(str(error_type)),
        message=bounded_text(message, _MAX_MESSAGE),
        code=bounded_text(call.error_code, MAX_NAME) if call.error_code else None,
        stack=bounded_text(stack, _MAX_STACK) if stack else None,
    )
