"""The calls of one request: each gets a number, and every sink its events in one order."""

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from aftercall.errors import ConfigurationError
from aftercall.events.model import (
    CANCELLED,
    CallSink,
    EventSink,
    FinishedCall,
    Sink,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCallResult,
    arguments_head,
    head_hash,
    masked_message,
    masked_text,
    text_preview_hash,
)
from aftercall.json_values import (
    MAX_NAME_CHARS,
    JsonObject,
    bounded_name,
    clean_text,
    make_json_value,
)
from aftercall.models.calls import ExecutionError
from aftercall.redaction import DEFAULT_REDACTOR, Redactor
from aftercall.reflection.observers import PlannedAttempt

_LOGGER = logging.getLogger("aftercall")

_COMPLAIN_AGAIN_S = 60.0
_next_complaint: dict[str, float] = {}  # by class of sinks, which are few; time.monotonic()


class ToolCalls:
    """The calls of one request, in their order; may be used from several threads.

        calls = ToolCalls("request-1", [LoggingSink()])
        call = calls.planned("search", {"query": "reflection"})
        call.ok(search(query="reflection"))

    What sinks may rely on, within a request: planned events come in the order of `seq`, which
    counts from 0 without a gap; a result comes after the planned event of its call, and at most
    once; every sink gets the same order, and has taken an event before the next one is handed to
    any of them. Between calls nothing more is promised: call 1 may be planned before call 0 ended,
    and end first. Between requests there is no order at all. A planned event without a result is a
    call that is still running or was left without a word.

    Nothing here raises because of a sink: that it failed is logged, once a minute. Make one object
    per request: two of the same id would both count from 0.

    Args:
        request_id: names the request; one in the form of a secret becomes its hash, an empty one
            a fresh id.
        sinks: take the events, in this order.
        agent: who calls, for sinks that take whole calls.
        server_name: the server that the tools belong to, for the same.
        redactor: masks secrets in messages, and before hashing.
        first_seq: what `seq` counts from, for a request that goes on.

    Raises:
        ConfigurationError: one of the sinks is none.
    """

    def __init__(
        self,
        request_id: str,
        sinks: Sequence[Sink],
        *,
        agent: str = "unknown",
        server_name: str | None = None,
        redactor: Redactor | None = None,
        first_seq: int = 0,
    ) -> None:
        for sink in sinks:
            if not isinstance(sink, EventSink | CallSink):
                raise ConfigurationError(
                    f"a sink has a method emit(event) or finished(call), {type(sink).__name__} has "
                    "neither; wrap a function in CallbackSink"
                )
        self.redactor = redactor or DEFAULT_REDACTOR
        self.request_id = request_name(request_id, self.redactor) or str(uuid4())
        """The request's id as its events carry it."""
        self.next_seq = first_seq
        """The `seq` of the next call."""
        self.agent = bounded_name(agent) or "unknown"
        self.server_name = bounded_name(server_name)
        self._event_sinks = [sink for sink in sinks if isinstance(sink, EventSink)]
        self._call_sinks = [sink for sink in sinks if isinstance(sink, CallSink)]
        self._lock = threading.RLock()  # a callback may plan the next call
        self._waiting: deque[ToolCallEvent | FinishedCall] = deque()
        self._is_handing_over = False
        self._has_warned = False

    def planned(
        self, tool: str, arguments: JsonObject, *, args_schema_version: str | None = None
    ) -> "PlannedCall":
        """A call is about to be made.

        Args:
            tool: the tool's name; `unknown` when empty, cut to 256 characters.
            arguments: are copied, and hashed without their secrets; values outside JSON count as
                their text.
            args_schema_version: of the tool's schema, where it is known.
        """
        tool, head = bounded_name(tool) or "unknown", arguments_head(arguments)
        digest = head_hash(tool, head, self.redactor)
        copy = make_json_value(arguments) if self._call_sinks else None
        seq = self._plan(tool, digest, args_schema_version)
        return PlannedCall(self, seq, tool, head, copy if isinstance(copy, dict) else None)

    def unreadable(self, tool: str | None, payload: str, *, error_type: str, message: str) -> None:
        """A call whose payload cannot be read: planned, and ended with an error, at once.

        Args:
            tool: the tool's name, where it could be read.
            payload: as it came; its hash takes the place of the arguments'.
            error_type: `tool_payload_too_large` or `tool_payload_parse_error` (seed 001).
            message: what is wrong with it.
        """
        name = bounded_name(tool) or "unknown"
        seq = self._plan(name, text_preview_hash(payload, self.redactor), None)
        call = PlannedCall(self, seq, name, {}, None)
        call.refused(error_type, message)

    def hand_over(self, *items: ToolCallEvent | FinishedCall) -> None:
        """Give items to the sinks, in this order; never raises what a sink raises.

        When it returns they have been given, except where a sink calls this while it takes another
        item: they follow when all sinks have the present one.
        """
        with self._lock:
            self._waiting.extend(items)
            if self._is_handing_over:  # called by a sink
                return
            self._is_handing_over = True
            try:
                while self._waiting:
                    self._give(self._waiting.popleft())
            finally:
                self._is_handing_over = False

    def ends(self, call: "PlannedCall") -> bool:
        """Whether this is the first word about the end of a call."""
        with self._lock:
            is_first, call.has_ended = not call.has_ended, True
            if not is_first and not self._has_warned:
                self._has_warned = True  # a request that does it wrong does it often
                _LOGGER.warning(
                    "a call was said to have ended twice; the first word counts, and further ones "
                    "of this request are not logged: call ok() or error() once per planned call"
                )
            return is_first

    def _plan(self, tool: str, digest: str, version: str | None) -> int:
        """Take a number and hand the planned event over, under one lock: both have one order."""
        with self._lock:
            seq = self.next_seq
            self.next_seq += 1
            self.hand_over(
                ToolCallPlanned(
                    request_id=self.request_id,
                    tool=tool,
                    args_preview_hash=digest,
                    seq=seq,
                    args_schema_version=bounded_name(version),
                )
            )
            return seq

    def _give(self, item: ToolCallEvent | FinishedCall) -> None:
        takers: list[tuple[Sink, Callable[[], None]]] = (
            [(sink, partial(sink.finished, item)) for sink in self._call_sinks]
            if isinstance(item, FinishedCall)
            else [(sink, partial(sink.emit, item)) for sink in self._event_sinks]
        )
        for sink, take in takers:
            try:
                take()
            except Exception as error:  # noqa: BLE001  # any sink of anybody
                _complain(type(sink).__name__, error)


class PlannedCall:
    """A call that was planned; `ToolCalls.planned` makes it.

    The first of `ok`, `error`, `refused` and `abandon` counts; later ones are ignored, and logged
    once per request.
    """

    def __init__(
        self,
        calls: ToolCalls,
        seq: int,
        tool: str,
        head: JsonObject,
        arguments: JsonObject | None,
    ) -> None:
        self.seq = seq
        self.has_ended = False
        self._calls = calls
        self._tool = tool
        self._head = head
        self._arguments = arguments
        self._started_at = datetime.now(UTC)
        self._started = time.perf_counter()

    def ok(self, result: object = None, *, latency_ms: float | None = None) -> None:
        """It succeeded.

        Args:
            result: what it returned, for sinks that take whole calls; no event holds it.
            latency_ms: measured since it was planned when None.
        """
        self._end(None, None, latency_ms, result)

    def error(self, error_type: str, message: str, *, latency_ms: float | None = None) -> None:
        """It failed.

        Args:
            error_type: the kind of error; `Error` when empty.
            message: what the tool said; masked, and cut to 500 characters in the event.
            latency_ms: as in `ok`.
        """
        self._end(error_type or "Error", message, latency_ms)

    def refused(self, error_type: str, message: str) -> None:
        """It is not made after all: an error without a latency, as nothing was asked of the tool.

        Sinks of whole calls are not told, for it says nothing of the tool either.

        Args:
            error_type: as in `error`.
            message: why; masked and cut as in `error`.
        """
        self._arguments = None
        self._end(error_type or "Error", message, math.nan)

    def abandon(self) -> None:
        """The caller gave it up: an error of type `cancelled`, with the time until now.

        Sinks of whole calls are not told, for what the tool did is not known.
        """
        self._arguments = None
        self._end(CANCELLED, None, None)

    def _end(
        self,
        error_type: str | None,
        message: str | None,
        latency_ms: float | None,
        result: object = None,
    ) -> None:
        elapsed_ms = (time.perf_counter() - self._started) * 1000
        calls = self._calls
        if not calls.ends(self):
            return
        latency_ms = elapsed_ms if latency_ms is None else float(latency_ms)
        event = ToolCallResult(
            request_id=calls.request_id,
            tool=self._tool,
            status="ok" if error_type is None else "error",
            # A clock that was set back is no reason to lose the result.
            latency_ms=max(0.0, latency_ms) if math.isfinite(latency_ms) else None,
            seq=self.seq,
            error_type=error_type and bounded_name(masked_text(error_type, calls.redactor)),
            message=message and masked_message(self._tool, self._head, message, calls.redactor),
        )
        if self._arguments is None:
            calls.hand_over(event)
            return
        finished = FinishedCall(
            request_id=calls.request_id,
            seq=self.seq,
            tool=self._tool,
            agent=calls.agent,
            server_name=calls.server_name,
            arguments=self._arguments,
            started_at=self._started_at,
            latency_ms=event.latency_ms,
            status=event.status,
            result=result,
            error_type=bounded_name(error_type),
            message=message,
        )
        self._arguments = None
        calls.hand_over(event, finished)


def request_name(request_id: str, redactor: Redactor) -> str:
    """A request's id as its events carry it."""
    # Hashed before it is cut, so that no half of a secret is left.
    return redactor.session_id(clean_text(request_id))[:MAX_NAME_CHARS]


def _complain(sink: str, error: Exception) -> None:
    """Log that a sink failed, at most once a minute; an error's text may quote an event."""
    now = time.monotonic()
    if now >= _next_complaint.get(sink, 0.0):
        _next_complaint[sink] = now + _COMPLAIN_AGAIN_S
        why = error.strerror if isinstance(error, OSError) else None
        _LOGGER.warning(
            "%s failed with %s while it took an event over; the call is not affected",
            sink,
            why or type(error).__name__,
        )


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
