"""Events of tool calls (seed 001): planned and result, and the sinks that take them.

`ToolCalls` numbers the calls of one request and emits their events; `EventObserver` does it for
`call_with_reflection`. Sinks: `LoggingSink`, `JsonLinesSink`, `CallbackSink`, and `RecorderSink`,
which takes whole calls.
"""

from aftercall.events.callback_sink import CallbackSink
from aftercall.events.calls import PlannedCall, ToolCalls
from aftercall.events.json_lines_sink import JsonLinesSink
from aftercall.events.logging_sink import LoggingSink
from aftercall.events.model import (
    CANCELLED,
    PAYLOAD_PARSE_ERROR,
    PAYLOAD_TOO_LARGE,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCallResult,
)
from aftercall.events.observer import EventObserver
from aftercall.events.preview import args_preview_hash
from aftercall.events.recorder_sink import RecorderSink
from aftercall.events.sink import CallSink, EventSink, FinishedCall, Sink

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
