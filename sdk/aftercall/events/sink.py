"""Where events go, and where whole calls go."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from aftercall.events.model import ToolCallEvent
from aftercall.json_values import JsonObject


@runtime_checkable
class EventSink(Protocol):
    """Takes events in their order: planned before result, each once."""

    def emit(self, event: ToolCallEvent) -> None:
        """Take an event over; returns at once and never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A call that was made and whose outcome is known, with what no event may hold.

    Nothing in it is masked or bounded but the names: whoever takes it sees to that.
    """

    request_id: str
    seq: int
    tool: str
    agent: str
    server_name: str | None
    arguments: JsonObject
    started_at: datetime
    """In UTC."""
    latency_ms: float | None
    status: Literal["ok", "error"]
    result: object = None
    error_type: str | None = None
    message: str | None = None


@runtime_checkable
class CallSink(Protocol):
    """Takes whole calls, each once, after its result event.

    It is not told of calls that were never made (an unreadable payload, a refused one), nor of
    those that were given up: nobody knows what the tool made of them.
    """

    def finished(self, call: FinishedCall) -> None:
        """Take a call over; returns at once and never raises."""


Sink: TypeAlias = EventSink | CallSink
"""Takes events, or whole calls, or both."""
