"""Events of tool calls (seed 001): planned and result, and the sinks that take them.

`ToolCalls` numbers the calls of one request and emits their events; `EventObserver` does it for
`call_with_reflection`. Sinks are `LoggingSink`, `JsonLinesSink`, `CallbackSink`, and a `Recorder`,
which takes whole calls.

No event holds an argument: a call is known by the hash of the first 200 characters of their
canonical JSON (the seed's). Secrets are masked before, for a hash keeps no secret that can be
guessed. Equal calls have equal hashes; calls that differ only in a secret have the same one.
"""

import hashlib
import inspect
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    runtime_checkable,
)
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from aftercall.errors import ConfigurationError
from aftercall.files import append_line
from aftercall.json_values import (
    MAX_NAME_CHARS,
    JsonObject,
    bounded_json,
    bounded_name,
    bounded_text,
    canonical_json,
    clean_text,
    make_json_value,
)
from aftercall.models.calls import Execution, ExecutionError, FailedCall, make_execution
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

if TYPE_CHECKING:  # a service counts events, and makes no calls
    from aftercall.reflection.reflected_call import ExecutionSink
    from aftercall.reflection.results import ObservedAttempt, PlannedAttempt

_LOGGER = logging.getLogger("aftercall")
MAX_MESSAGE_CHARS = 500
"""Longest message of a result: enough to recognise an error, too little to carry a document."""
PREVIEW_CHARS = 200
"""Characters of the canonical JSON that the hash is made of (seed 001)."""
PAYLOAD_TOO_LARGE = "tool_payload_too_large"
"""`error_type` of a call whose payload is beyond the limit (seed 001)."""
PAYLOAD_PARSE_ERROR = "tool_payload_parse_error"
"""`error_type` of a call whose payload is not the JSON of a call (seed 001)."""
CANCELLED = "cancelled"
"""`error_type` of a call that its caller gave up; what the tool did is not known."""
_WINDOW_CHARS = 2000
"""Of each text that is masked: masking costs some 0.2 ms for a thousand characters, and a call
waits for it. Ten times the preview, since a masked text is shorter than what it stands for."""
MAX_REQUESTS = 1_000
"""Known to an observer at a time, some 2 KB each."""
_next_complaint: dict[str, float] = {}  # by class of sinks, which are few; time.monotonic()
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Status: TypeAlias = Literal["ok", "error"]


class _Event(BaseModel):
    # snake_case, as the seed names them; these are not part of the service's wire.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    request_id: Name = Field(description="The request (or session) of the model.")
    tool: Name = Field(description="Name of the tool; `unknown` where none was said.")
    seq: int = Field(ge=0, description="Order of the call within its request, from 0.")


class ToolCallPlanned(_Event):
    """A call is about to be made."""

    event: Literal["ToolCallPlanned"] = "ToolCallPlanned"
    args_preview_hash: str = Field(pattern="^[0-9a-f]{64}$")
    args_schema_version: Name | None = None


class ToolCallResult(_Event):
    """A call has ended. It follows the planned event of the same request and `seq`."""

    event: Literal["ToolCallResult"] = "ToolCallResult"
    status: Status
    latency_ms: float | None = Field(
        default=None, ge=0, description="Milliseconds; null for an error that was never run."
    )
    error_type: Name | None = None
    message: str | None = Field(default=None, max_length=MAX_MESSAGE_CHARS)


ToolCallEvent: TypeAlias = ToolCallPlanned | ToolCallResult


@runtime_checkable
class EventSink(Protocol):
    """Takes events in their order: planned before result, each once."""

    def emit(self, event: ToolCallEvent) -> None:
        """Take an event over, at once. An exception is logged by its type, and harms nothing."""


Sink: TypeAlias = "EventSink | ExecutionSink"
"""Takes events, or as a recorder does, the executions of calls that were made to their end.

Calls that were never made (an unreadable payload) are no executions, for they would teach something
wrong of the tool, nor are calls that were given up: no one knows how they ended.
"""


class CallbackSink:
    """Calls a plain function with every event.

    It runs in the thread of the tool call, which waits for it: hand over what takes time.
    """

    def __init__(self, function: Callable[[ToolCallEvent], object]) -> None:
        if inspect.iscoroutinefunction(function):
            raise ConfigurationError(
                "an event callback must be a plain function, nobody awaits it; pass one that puts "
                "the event into a queue, such as queue.put_nowait"
            )
        self._function = function

    def emit(self, event: ToolCallEvent) -> None:
        """Call it."""
        self._function(event)


class LoggingSink:
    """Writes one record per event.

    The line is the event as JSON in ASCII, without the tool's message, so that no text of a tool
    begins another line; the record's `tool_call` is a dict of all the event's fields.

    Without a `logger` it is `aftercall.events`.
    """

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        self._logger = logger or logging.getLogger("aftercall.events")
        self._level = level

    def emit(self, event: ToolCallEvent) -> None:
        """Log it."""
        if self._logger.isEnabledFor(self._level):
            # Not `extra=fields`: a record has a `message` of its own.
            shown = event.model_dump(mode="json", exclude={"message"}, exclude_none=True)
            self._logger.log(
                self._level,
                "%s",
                json.dumps(shown),
                extra={"tool_call": event.model_dump(mode="json")},
            )


class JsonLinesSink:
    """Appends one line per event, so that `ToolCallPlanned.model_validate_json(line)` reads it.

    Threads, processes and children of a fork may share the file, and there is nothing to close: it
    is opened for each line, so that it may be moved away (`logrotate`). A reader skips what is no
    JSON, which a killed process may leave. Where the disk is full or the folder gone, events are
    lost, and the log states so once a minute.

    The file is made when missing, readable by its owner only, like its folder.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path).resolve()  # the program may change its folder later
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            append_line(self._path, b"")
        except OSError as error:
            raise ConfigurationError(
                f"the event file {self._path} cannot be written ({error.strerror or error}); "
                "pass another path"
            ) from error

    def emit(self, event: ToolCallEvent) -> None:
        """Append it; an `OSError` where it cannot be written."""
        append_line(self._path, event.model_dump_json(exclude_none=True).encode() + b"\n")


def _hashed_head(value: Any) -> Any:
    """Return as much of the arguments as the hash depends on."""
    # A member makes at least one character of JSON: the first 200 of each container are enough.
    if isinstance(value, str):
        return value[:_WINDOW_CHARS]
    if isinstance(value, dict):
        return {
            name[:_WINDOW_CHARS]: _hashed_head(value[name])
            for name in sorted(value)[:PREVIEW_CHARS]
        }
    return (
        [_hashed_head(item) for item in value[:PREVIEW_CHARS]] if isinstance(value, list) else value
    )


def _mask_text(text: str, redactor: Redactor) -> str:
    return redactor.text(clean_text(text[:_WINDOW_CHARS]))


def _request_name(request_id: str, redactor: Redactor) -> str:
    # Hashed before it is cut, so that no half of a secret is left.
    return redactor.session_id(clean_text(request_id))[:MAX_NAME_CHARS]


class ToolCalls:
    """The calls of one request, in their order; may be used from several threads.

        calls = ToolCalls("request-1", [LoggingSink()])
        call = calls.planned("search", {"query": "reflection"})
        call.ok(search(query="reflection"))

    Within a request planned events come in the order of `seq`, which counts from 0 without a gap; a
    result comes after the planned event of its call, and at most once; every sink gets the same
    order, and has taken an event before the next one is handed to any of them. A sink must not plan
    calls of this object while it takes an event.

    Nothing here raises because of a sink: that it failed is logged, once a minute. Make one object
    per request: two of the same id would both count from 0.

    A `request_id` in the form of a secret becomes its hash, an empty one a fresh id; as the events
    carry it, it is the attribute of this name. `agent` and `server_name` are for recorders. The
    redactor masks secrets in messages, and before hashing. `seq` counts from `first_seq`, for a
    request that goes on.
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
            if not (isinstance(sink, EventSink) or _records_executions(sink)):
                raise ConfigurationError(
                    f"a sink has a method emit(event) or record(execution), {type(sink).__name__} "
                    "has neither; wrap a function in CallbackSink"
                )
        self.redactor = redactor or DEFAULT_REDACTOR
        self.request_id = _request_name(request_id, self.redactor) or str(uuid4())
        self.next_seq = first_seq
        self.agent = bounded_name(agent) or "unknown"
        self.server_name = bounded_name(server_name)
        self._sinks = tuple(sinks)
        self._are_recorded = any(map(_records_executions, sinks))
        self.lock = threading.RLock()

    def planned(
        self, tool: str, arguments: JsonObject, *, args_schema_version: str | None = None
    ) -> "PlannedCall":
        """Note that a call is about to be made, of the tool `unknown` when it has no name.

        The arguments are copied, and hashed without their secrets; others than JSON as text.
        """
        tool, copy = bounded_name(tool) or "unknown", make_json_value(arguments)
        head = _hashed_head(copy) if isinstance(copy, dict) else {}
        text = canonical_json(self.redactor.parameters(tool, head))
        seq = self._plan_call(tool, text, args_schema_version)
        kept = copy if self._are_recorded and isinstance(copy, dict) else None
        return PlannedCall(self, seq, tool, head, kept)

    def unreadable(self, tool: str | None, payload: str, *, error_type: str, message: str) -> None:
        """Note a call whose payload cannot be read: planned, and ended with an error.

        The payload's hash takes the place of the arguments'. `error_type` is
        `tool_payload_too_large` or `tool_payload_parse_error` (seed 001).
        """
        name = bounded_name(tool) or "unknown"
        seq = self._plan_call(name, _mask_text(payload, self.redactor), None)
        # Without a latency, as nothing was asked of the tool.
        PlannedCall(self, seq, name, {}, None).error(error_type, message, latency_ms=math.nan)

    def hand_over(self, item: ToolCallEvent | Execution) -> None:
        """Give it to the sinks, which have taken it then; never raises what a sink raises."""
        with self.lock:
            for sink in self._sinks:
                try:
                    if isinstance(item, Execution):
                        if _records_executions(sink):
                            sink.record(item)
                    elif isinstance(sink, EventSink):
                        sink.emit(item)
                except Exception as error:  # noqa: BLE001  # any sink of anybody
                    _log_failure(type(sink).__name__, error)

    def _plan_call(self, tool: str, text: str, version: str | None) -> int:
        """Take a number and hand the planned event over, under one lock: both have one order."""
        with self.lock:
            seq = self.next_seq
            self.next_seq += 1
            event = ToolCallPlanned(
                request_id=self.request_id,
                tool=tool,
                args_preview_hash=hashlib.sha256(text[:PREVIEW_CHARS].encode()).hexdigest(),
                seq=seq,
                args_schema_version=bounded_name(version),
            )
            self.hand_over(event)
            return seq


def _records_executions(sink: object) -> "TypeGuard[ExecutionSink]":
    return hasattr(sink, "record")


def _log_failure(sink: str, error: Exception) -> None:
    """Log that a sink failed, at most once a minute; an error's text may quote an event."""
    now = time.monotonic()
    if now >= _next_complaint.get(sink, 0.0):
        _next_complaint[sink] = now + 60.0
        why = error.strerror if isinstance(error, OSError) else None
        _LOGGER.warning(
            "%s failed with %s while it took an event over; the call is not affected",
            sink,
            why or type(error).__name__,
        )


@dataclass(eq=False)
class PlannedCall:
    """A call that was planned; `ToolCalls.planned` makes it.

    The first of `ok`, `error` and `abandon` counts; later ones are ignored.
    """

    calls: ToolCalls
    seq: int
    tool: str
    head: JsonObject
    arguments: JsonObject | None
    has_ended: bool = False

    def __post_init__(self) -> None:
        self._started_at = datetime.now(UTC)
        self._started = time.perf_counter()

    def ok(self, result: object = None, *, latency_ms: float | None = None) -> None:
        """It succeeded, with a result for recorders; no event holds it.

        The latency is measured since it was planned when it is `None`.
        """
        self._end_call(None, "", latency_ms, result)

    def error(self, error_type: str, message: str, *, latency_ms: float | None = None) -> None:
        """It failed, with an `Error` when its type is empty.

        In the event the message is masked and cut to 500 characters. The latency is as in `ok`.
        """
        self._end_call(error_type or "Error", message, latency_ms)

    def abandon(self) -> None:
        """Note that the caller gave it up, as an error of type `cancelled`.

        It is not recorded, for what the tool did is not known.
        """
        self.arguments = None
        self._end_call(CANCELLED, "", None)

    def _end_call(
        self, error_type: str | None, message: str, latency_ms: float | None, result: object = None
    ) -> None:
        elapsed_ms = (time.perf_counter() - self._started) * 1000
        calls = self.calls
        with calls.lock:
            is_first, self.has_ended = not self.has_ended, True
        if not is_first:
            return
        latency_ms = elapsed_ms if latency_ms is None else float(latency_ms)
        event = ToolCallResult(
            request_id=calls.request_id,
            tool=self.tool,
            status="ok" if error_type is None else "error",
            # A clock that was set back is no reason to lose the result.
            latency_ms=max(0.0, latency_ms) if math.isfinite(latency_ms) else None,
            seq=self.seq,
            error_type=error_type and bounded_name(_mask_text(error_type, calls.redactor)),
            message=self._show_message(message) if message else None,
        )
        calls.hand_over(event)
        if self.arguments is None:
            return
        execution = make_execution(
            # Not made of request and seq: another process may have a request of the same name.
            execution_id=str(uuid4()),
            timestamp=self._started_at,
            agent=calls.agent,
            server_name=calls.server_name,
            tool_name=self.tool,
            parameters=self.arguments,
            outcome="success" if error_type is None else "failure",
            duration_ms=event.latency_ms or 0.0,
            error=None
            if error_type is None
            else ExecutionError(
                type=bounded_name(error_type) or "Error", message=clean_text(message)
            ),
            result=None if result is None else bounded_json(result),
            session_id=calls.request_id,
            sequence=self.seq,
        )
        if execution is not None:
            calls.hand_over(execution)

    def _show_message(self, message: str) -> str:
        """Return a tool's message, bounded, without secrets and masked arguments."""
        said = FailedCall(
            agent="unknown",
            tool_name=self.tool,
            parameters=self.head,
            error=ExecutionError(message=clean_text(message[:_WINDOW_CHARS])),
        )
        return bounded_text(self.calls.redactor.call(said).error.message, MAX_MESSAGE_CHARS)


class EventObserver:
    """Emits a planned event and a result for every attempt; one object serves all calls.

        observer = EventObserver([LoggingSink()])
        await call_with_reflection(tool, ..., observers=[observer])

    The request is the session; a call without one is a request of its own, its attempts numbered
    from 0. Once a session was forgotten, those that come new count from the highest `seq` that was
    forgotten, so that no number is given twice. A cancelled call (`asyncio.timeout`, Ctrl-C) has a
    result of error type `cancelled`, one that ended in a question to the user has none.

    No recorder is among the sinks, as `call_with_reflection` records by itself; give it the
    recorder's redactor.
    """

    def __init__(self, sinks: Sequence[EventSink], *, redactor: Redactor | None = None) -> None:
        if any(map(_records_executions, sinks)):
            raise ConfigurationError(
                "call_with_reflection records every attempt by itself: leave the recorder out"
            )
        self._sinks = tuple(sinks)
        self._redactor = redactor or DEFAULT_REDACTOR
        self._lock = threading.RLock()  # a sink may call a tool
        self._requests: dict[str, ToolCalls] = {}  # the last used at the end
        self._first_seq = 0
        self._new_calls("", 0)  # a sink that is none is refused here, not at the first call

    def planned(self, attempt: "PlannedAttempt") -> "ObservedAttempt":
        """Note that an attempt is about to be made."""
        facts = attempt.facts
        # As the events carry it, for two sessions may be cut to one name.
        name = _request_name(facts.session_id or "", self._redactor)
        with self._lock:
            first_seq = self._first_seq if name else 0
            name = name or attempt.repair_of or attempt.execution_id
            calls = self._requests.pop(name, None) or self._new_calls(name, first_seq)
            self._requests[name] = calls
            if len(self._requests) > MAX_REQUESTS:
                forgotten = self._requests.pop(next(iter(self._requests)))
                self._first_seq = max(self._first_seq, forgotten.next_seq)
            return _ObservedEvents(calls.planned(facts.tool_name, attempt.parameters))

    def _new_calls(self, request_id: str, first_seq: int) -> ToolCalls:
        return ToolCalls(request_id, self._sinks, redactor=self._redactor, first_seq=first_seq)


@dataclass(frozen=True, slots=True)
class _ObservedEvents:
    call: PlannedCall

    def stopped(self, given_up: BaseException | None) -> None:
        if given_up is not None:
            self.call.abandon()

    def ended(self, *, duration_ms: float, error: ExecutionError | None) -> None:
        if error is None:
            self.call.ok(latency_ms=duration_ms)
        else:
            self.call.error(error.type, error.message, latency_ms=duration_ms)
