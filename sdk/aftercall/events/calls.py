"""The calls of one request, and the order in which sinks are given their events."""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias
from uuid import uuid4

from aftercall.errors import ConfigurationError
from aftercall.events.model import (
    CANCELLED,
    MAX_NAME_CHARS,
    CallSink,
    EventSink,
    FinishedCall,
    Preview,
    Sink,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCallResult,
    masked_text,
    preview,
    text_preview_hash,
)
from aftercall.json_values import JsonObject, clean_text, make_json_value
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

_LOGGER = logging.getLogger("aftercall")

Item: TypeAlias = ToolCallEvent | FinishedCall


class Complaints:
    """Says that something of ours failed: by its kind, never by its words, and once a minute.

    For all requests together, since each has sinks that others have too. Kinds are names of
    classes, so there are few.
    """

    def __init__(self, *, interval_s: float = 60.0) -> None:
        self._interval_s = interval_s
        self._next_at: dict[str, float] = {}  # time.monotonic()
        self._lock = threading.Lock()

    def failed(self, owner: str, error: Exception) -> None:
        """`owner` raised `error`, whose text may quote an event and so is not logged."""
        kind = type(error).__name__
        moment = time.monotonic()
        with self._lock:
            if moment < self._next_at.get(owner, 0.0):
                return
            self._next_at[owner] = moment + self._interval_s
        _LOGGER.warning(
            "%s failed with %s while it took an event over; the call is not affected", owner, kind
        )

    def forget(self) -> None:
        """Say the next failure of everybody at once."""
        with self._lock:
            self._next_at.clear()


COMPLAINTS = Complaints()


class HandOver:
    """Hands the events of one request over.

    Every sink has taken an event before the next one is handed to any of them. When `add` returns,
    its event has been handed over, except where a sink itself adds one while it takes another:
    that one follows when all sinks have the present one.

    Args:
        sinks: told in their order.

    Raises:
        ConfigurationError: one of them is no sink.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        for sink in sinks:
            if not isinstance(sink, EventSink | CallSink):
                raise ConfigurationError(
                    f"a sink has a method emit(event) or finished(call), {type(sink).__name__} has "
                    "neither; wrap a function in CallbackSink"
                )
        self._event_sinks = [sink for sink in sinks if isinstance(sink, EventSink)]
        self._call_sinks = [sink for sink in sinks if isinstance(sink, CallSink)]
        # Re-entrant: a callback may plan the next call.
        self.lock = threading.RLock()
        self._waiting: deque[Item] = deque()
        self._is_handing_over = False

    @property
    def wants_calls(self) -> bool:
        """Whether somebody takes whole calls."""
        return bool(self._call_sinks)

    def add(self, *items: Item) -> None:
        """Hand items over, in this order. Never raises what a sink raises."""
        with self.lock:
            self._waiting.extend(items)
            if self._is_handing_over:  # called by a sink
                return
            self._is_handing_over = True
            try:
                while self._waiting:
                    self._tell(self._waiting.popleft())
            finally:
                self._is_handing_over = False

    def _tell(self, item: Item) -> None:
        if isinstance(item, FinishedCall):
            for call_sink in self._call_sinks:
                try:
                    call_sink.finished(item)
                except Exception as error:  # noqa: BLE001  # any sink of anybody
                    COMPLAINTS.failed(type(call_sink).__name__, error)
            return
        for event_sink in self._event_sinks:
            try:
                event_sink.emit(item)
            except Exception as error:  # noqa: BLE001  # as above
                COMPLAINTS.failed(type(event_sink).__name__, error)


class ToolCalls:
    """The calls of one request, in their order; may be used from several threads.

        calls = ToolCalls("request-1", [LoggingSink()])
        call = calls.planned("search", {"query": "reflection"})
        call.ok(search(query="reflection"))

    What sinks may rely on, within a request: planned events come in the order of `seq`, which
    counts from 0 without a gap; a result comes after the planned event of its call, and at most
    once; every sink gets the same order. Between calls nothing more is promised: call 1 may be
    planned before call 0 ended, and end first. Between requests there is no order at all. A
    planned event without a result is a call that is still running or was left without a word.

    Nothing here raises because of a sink. Make one object per request: two of the same id would
    both count from 0.

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
        self._request = _Request(
            request_id,
            sinks,
            agent=agent,
            server_name=server_name,
            redactor=redactor or DEFAULT_REDACTOR,
            first_seq=first_seq,
        )

    @property
    def request_id(self) -> str:
        """The request's id as its events carry it."""
        return self._request.request_id

    @property
    def next_seq(self) -> int:
        """The `seq` of the next call."""
        return self._request.next_seq

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
        request = self._request
        made = make_json_value(arguments)
        copy = made if isinstance(made, dict) else {}
        shown = preview(_name(tool) or "unknown", copy, request.redactor)
        seq = request.plan(shown.tool, shown.hash(), args_schema_version)
        return PlannedCall(request, seq, shown, copy if request.hand_over.wants_calls else None)

    def unreadable(self, tool: str | None, payload: str, *, error_type: str, message: str) -> None:
        """A call whose payload cannot be read: planned, and ended with an error, at once.

        Args:
            tool: the tool's name, where it could be read.
            payload: as it came; its hash takes the place of the arguments'.
            error_type: `tool_payload_too_large` or `tool_payload_parse_error` (seed 001).
            message: what is wrong with it.
        """
        request = self._request
        shown = Preview(_name(tool) or "unknown", {}, request.redactor)
        seq = request.plan(shown.tool, text_preview_hash(payload, request.redactor), None)
        request.hand_over.add(
            request.result(seq, shown, "error", None, error_type or "Error", message)
        )


class PlannedCall:
    """A call that was planned; `ToolCalls.planned` makes it.

    The first of `ok`, `error`, `refused` and `abandon` counts; later ones are ignored, and logged
    once per request.
    """

    def __init__(
        self, request: "_Request", seq: int, shown: Preview, arguments: JsonObject | None
    ) -> None:
        self.seq = seq
        self._request = request
        self._shown = shown
        self._arguments = arguments
        self._has_ended = False
        self._started_at = datetime.now(UTC)
        self._started = time.perf_counter()

    def ok(self, result: object = None, *, latency_ms: float | None = None) -> None:
        """It succeeded.

        Args:
            result: what it returned, for sinks that take whole calls; no event holds it.
            latency_ms: measured since it was planned when None.
        """
        self._end("ok", latency_ms, result=result)

    def error(self, error_type: str, message: str, *, latency_ms: float | None = None) -> None:
        """It failed.

        Args:
            error_type: the kind of error; `Error` when empty.
            message: what the tool said; masked, and cut to 500 characters in the event.
            latency_ms: as in `ok`.
        """
        self._end("error", latency_ms, error_type=error_type or "Error", message=message)

    def refused(self, error_type: str, message: str) -> None:
        """It is not made after all: an error without a latency, as nothing was asked of the tool.

        Sinks of whole calls are not told, for it says nothing of the tool either.

        Args:
            error_type: as in `error`.
            message: why; masked and cut as in `error`.
        """
        not_measured, kind = math.nan, error_type or "Error"
        self._end("error", not_measured, error_type=kind, message=message, is_known=False)

    def abandon(self) -> None:
        """The caller gave it up: an error of type `cancelled`, with the time until now.

        Sinks of whole calls are not told, for what the tool did is not known.
        """
        self._end("error", None, error_type=CANCELLED, is_known=False)

    def _end(
        self,
        status: Literal["ok", "error"],
        latency_ms: float | None,
        *,
        error_type: str | None = None,
        message: str | None = None,
        result: object = None,
        is_known: bool = True,
    ) -> None:
        elapsed_ms = (time.perf_counter() - self._started) * 1000
        request = self._request
        with request.hand_over.lock:
            if self._has_ended:
                request.warn_of_second_result()
                return
            self._has_ended = True
        latency_ms = elapsed_ms if latency_ms is None else _finite(latency_ms)
        event = request.result(self.seq, self._shown, status, latency_ms, error_type, message)
        arguments, self._arguments = self._arguments, None
        if arguments is None or not is_known:
            request.hand_over.add(event)
            return
        finished = FinishedCall(
            request_id=request.request_id,
            seq=self.seq,
            tool=event.tool,
            agent=request.agent,
            server_name=request.server_name,
            arguments=arguments,
            started_at=self._started_at,
            latency_ms=latency_ms,
            status=status,
            result=result,
            error_type=_name(error_type),
            message=message,
        )
        request.hand_over.add(event, finished)


class _Request:
    """What the calls of a request share."""

    def __init__(
        self,
        request_id: str,
        sinks: Sequence[Sink],
        *,
        agent: str,
        server_name: str | None,
        redactor: Redactor,
        first_seq: int,
    ) -> None:
        self.request_id = request_name(request_id, redactor) or str(uuid4())
        self.agent = _name(agent) or "unknown"
        self.server_name = _name(server_name)
        self.redactor = redactor
        self.hand_over = HandOver(sinks)
        self.next_seq = first_seq
        self._has_warned = False

    def plan(self, tool: str, digest: str, version: str | None) -> int:
        """Take a number and hand the planned event over, under one lock: both have one order."""
        with self.hand_over.lock:
            seq = self.next_seq
            self.next_seq += 1
            self.hand_over.add(
                ToolCallPlanned(
                    request_id=self.request_id,
                    tool=tool,
                    args_preview_hash=digest,
                    seq=seq,
                    args_schema_version=_name(version),
                )
            )
            return seq

    def result(
        self,
        seq: int,
        shown: Preview,
        status: Literal["ok", "error"],
        latency_ms: float | None,
        error_type: str | None,
        message: str | None,
    ) -> ToolCallResult:
        """The event; a message is masked and bounded."""
        return ToolCallResult(
            request_id=self.request_id,
            tool=shown.tool,
            status=status,
            latency_ms=latency_ms,
            seq=seq,
            error_type=error_type and _name(masked_text(error_type, self.redactor)),
            message=message and shown.message(message),
        )

    def warn_of_second_result(self) -> None:
        """Once, for a request that does it wrong does it often."""
        if not self._has_warned:
            self._has_warned = True
            _LOGGER.warning(
                "a call was said to have ended twice; the first word counts, and further ones of "
                "this request are not logged: call ok() or error() once per planned call"
            )


def request_name(request_id: str, redactor: Redactor) -> str:
    """A request's id as its events carry it."""
    # Hashed before it is cut, so that no half of a secret is left.
    return redactor.session_id(clean_text(request_id))[:MAX_NAME_CHARS]


def _name(text: str | None) -> str | None:
    return (clean_text(text).strip()[:MAX_NAME_CHARS] or None) if text else None


def _finite(latency_ms: float) -> float | None:
    """A latency that can be observed: a clock that was set back is no reason to lose the result."""
    return max(0.0, float(latency_ms)) if math.isfinite(latency_ms) else None
