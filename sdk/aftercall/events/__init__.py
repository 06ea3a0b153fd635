"""Events of tool calls (seed 001): planned and result, and the sinks that take them.

`ToolCalls` numbers the calls of one request and emits their events; `EventObserver` does it for
`call_with_reflection`. Sinks: `LoggingSink`, `JsonLinesSink`, `CallbackSink`, and `RecorderSink`,
which takes whole calls.
"""

from aftercall.events.calls import EventObserver, PlannedCall, ToolCalls
from aftercall.events.model import (
    CANCELLED,
    PAYLOAD_PARSE_ERROR,
    PAYLOAD_TOO_LARGE,
    CallSink,
    EventSink,
    FinishedCall,
    Sink,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCallResult,
    args_preview_hash,
)
from aftercall.events.sinks import CallbackSink, JsonLinesSink, LoggingSink, RecorderSink

__all__ = [
    "CANCELLED",
    "PAYLOAD_PARSE_ERROR",
    "PAYLOAD_TOO_LARGE",
    "CallSink",
    "CallbackSink",
    "EventObserver",
    "EventSink",
    "FinishedCall",
    "JsonLinesSink",
    "LoggingSink",
    "PlannedCall",
    "RecorderSink",
    "Sink",
    "ToolCallEvent",
    "ToolCallPlanned",
    "ToolCallResult",
    "ToolCalls",
    "args_preview_hash",
]
