"""Events of the calls that `call_with_reflection` makes."""

import sys
import threading
from collections.abc import Sequence

from aftercall.errors import ConfigurationError
from aftercall.events.calls import PlannedCall, ToolCalls, request_name
from aftercall.events.model import CallSink, EventSink
from aftercall.models.calls import ExecutionError
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection.observers import PlannedAttempt


class EventObserver:
    """Emits a planned event and a result for every attempt; one object serves all calls.

        observer = EventObserver([LoggingSink()])
        await call_with_reflection(tool, ..., observers=[observer])

    The request is the session; a call without one is a request of its own, its attempts numbered
    from 0. `seq` rises within a session. Of the requests, the `max_requests` last used are known:
    from the first that is forgotten on, a session that comes new (or again) counts from the highest
    `seq` that was forgotten, so that no number is given twice; it still rises, but not from 0.

    What a consumer sees of a call that does not end well: a cancelled one (`asyncio.timeout`,
    Ctrl-C) has a result of error type `cancelled`; one that ended in a question to the user instead
    of an outcome, or whose process died, has a planned event and no result.

    Args:
        sinks: take the events.
        redactor: as for `ToolCalls`; give it the recorder's.
        max_requests: most requests that are known at a time, some 2 KB each.

    Raises:
        ConfigurationError: `max_requests` is below 1, or a sink takes whole calls:
            `call_with_reflection` records by itself, and would do it twice.
    """

    def __init__(
        self,
        sinks: Sequence[EventSink],
        *,
        redactor: Redactor | None = None,
        max_requests: int = 1000,
    ) -> None:
        if max_requests < 1:
            raise ConfigurationError(f"max_requests must be 1 or more, not {max_requests}")
        if any(isinstance(sink, CallSink) for sink in sinks):
            raise ConfigurationError(
                "call_with_reflection records every attempt by itself: leave the RecorderSink out"
            )
        self._sinks = tuple(sinks)
        self._redactor = redactor or DEFAULT_REDACTOR
        self._max_requests = max_requests
        self._lock = threading.RLock()  # a sink may call a tool
        self._requests: dict[str, ToolCalls] = {}  # the last used at the end
        self._first_seq = 0
        self._new("", 0)  # a sink that is none is refused here, not at the first call

    def planned(self, attempt: PlannedAttempt) -> "ObservedEvents":
        """An attempt is about to be made."""
        facts = attempt.facts
        # As the events carry it, for two sessions may be cut to one name.
        name = request_name(facts.session_id or "", self._redactor)
        with self._lock:
            first_seq = self._first_seq if name else 0
            name = name or attempt.repair_of or attempt.execution_id
            calls = self._requests.pop(name, None) or self._new(name, first_seq)
            self._requests[name] = calls
            if len(self._requests) > self._max_requests:
                forgotten = self._requests.pop(next(iter(self._requests)))
                self._first_seq = max(self._first_seq, forgotten.next_seq)
            return ObservedEvents(calls.planned(facts.tool_name, attempt.parameters))

    def _new(self, request_id: str, first_seq: int) -> ToolCalls:
        return ToolCalls(request_id, self._sinks, redactor=self._redactor, first_seq=first_seq)


class ObservedEvents:
    """One attempt."""

    def __init__(self, call: PlannedCall) -> None:
        self._call = call
        self._handled_before = sys.exception()  # the caller may be in an `except` block

    def stopped(self) -> None:
        """The tool returned, raised or was given up; told while that exception is on its way."""
        error, before = sys.exception(), self._handled_before
        self._handled_before = None
        if error is not before and error is not None and not isinstance(error, Exception):
            self._call.abandon()  # CancelledError, KeyboardInterrupt: `ended` is never told

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        """How it ended."""
        if error is None:
            self._call.ok(latency_ms=duration_ms)
        else:
            self._call.error(error.type, error.message, latency_ms=duration_ms)
