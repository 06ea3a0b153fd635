"""Events of the calls that `call_with_reflection` makes."""

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence

from aftercall.errors import ConfigurationError
from aftercall.events.calls import PlannedCall, ToolCalls, request_name
from aftercall.events.model import CallSink, EventSink
from aftercall.models.calls import ExecutionError
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection.observers import CallFacts, PlannedAttempt


class EventObserver:
    """Emits a planned event and a result for every attempt; one object serves all calls.

        observer = EventObserver([LoggingSink()])
        await call_with_reflection(tool, ..., observers=[observer])

    The request is the session; a call without one is a request of its own, its attempts numbered
    from 0. `seq` rises within a session. Of the sessions, the `max_requests` last used are known:
    from the first that is forgotten on, a session that comes new (or again) counts from the highest
    `seq` that was forgotten, so that no number is given twice; it still rises, but not from 0.

    What a consumer sees of a call that does not end well: a cancelled one (`asyncio.timeout`,
    Ctrl-C) has a result of error type `cancelled`; one that ended in a question to the user instead
    of an outcome, or whose process died, has a planned event and no result.

    Args:
        sinks: take the events.
        redactor: as for `ToolCalls`; give it the recorder's.
        max_requests: most sessions that are known at a time, some 2 KB each.

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
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, ToolCalls] = OrderedDict()
        # Attempts that are about to take a number of their session, which is not forgotten then.
        self._planning: Counter[str] = Counter()
        self._first_seq = 0
        # By the identity of their facts, which are kept so that it is not given again.
        self._alone: OrderedDict[int, tuple[CallFacts, ToolCalls]] = OrderedDict()
        self._new("")  # a sink that is none is told here, not at the first call

    def planned(self, attempt: PlannedAttempt) -> "ObservedEvents":
        """An attempt is about to be made."""
        facts = attempt.facts
        # As the events carry it, for two sessions may be cut to one name.
        session_id = request_name(facts.session_id or "", self._redactor)
        with self._lock:
            self._planning[session_id] += 1
            calls = self._of_session(session_id) if session_id else self._of_one(facts)
        try:
            return ObservedEvents(calls.planned(facts.tool_name, attempt.parameters))
        finally:
            with self._lock:
                self._planning -= Counter([session_id])

    def _of_session(self, session_id: str) -> ToolCalls:
        calls = self._sessions.get(session_id)
        if calls is None:
            calls = self._sessions[session_id] = self._new(session_id, self._first_seq)
            self._forget()
        self._sessions.move_to_end(session_id)
        return calls

    def _forget(self) -> None:
        while len(self._sessions) > self._max_requests:
            idle = next((name for name in self._sessions if name not in self._planning), None)
            if idle is None:
                return  # as many more as there are threads
            self._first_seq = max(self._first_seq, self._sessions.pop(idle).next_seq)

    def _of_one(self, facts: CallFacts) -> ToolCalls:
        """Of a call without a session; its attempts share their facts."""
        _, calls = self._alone.setdefault(id(facts), (facts, self._new("")))
        if len(self._alone) > self._max_requests:
            self._alone.popitem(last=False)
        return calls

    def _new(self, request_id: str, first_seq: int = 0) -> ToolCalls:
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
