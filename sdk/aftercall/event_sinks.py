"""The two events of a tool call (seed 001) and their sinks: functions, logs, files, recorders."""

import inspect
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias, runtime_checkable
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from aftercall.errors import ConfigurationError
from aftercall.files import append_line
from aftercall.json_values import MAX_NAME_CHARS, JsonObject, bounded_json, clean_text
from aftercall.models.calls import ExecutionError, execution_of
from aftercall.reflection.reflected_call import ExecutionSink

MAX_MESSAGE_CHARS = 500
"""Longest message of a result: enough to recognise an error, too little to carry a document."""
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
        """Take an event over, at once. What it raises is logged by its type, and harms nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCall:
    """A call that was made and whose outcome is known, with what no event may hold.

    Nothing in it is masked or bounded but the names: the sink sees to that. `started_at` is in UTC.
    """

    request_id: str
    seq: int
    tool: str
    agent: str
    server_name: str | None
    arguments: JsonObject
    started_at: datetime
    latency_ms: float | None
    status: Status
    result: object = None
    error_type: str | None = None
    message: str | None = None


@runtime_checkable
class CallSink(Protocol):
    """Takes whole calls that were made to their end, each once, after its result event."""

    def finished(self, call: FinishedCall) -> None:
        """Take a call over, at once. What it raises is logged by its type, and harms nothing."""


Sink: TypeAlias = EventSink | CallSink
"""Takes events, or whole calls, or both."""


class CallbackSink:
    """Calls a function with every event.

    It runs in the thread of the tool call, which waits for it: hand over what takes time. What it
    returns is ignored.

    Raises:
        ConfigurationError: it is a coroutine function, which nobody would await.
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

    Args:
        logger: takes the records; `aftercall.events` when None.
        level: of all of them.
    """

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        self._logger = logger or logging.getLogger("aftercall.events")
        self._level = level

    def emit(self, event: ToolCallEvent) -> None:
        """Log it."""
        if self._logger.isEnabledFor(self._level):
            # Not `extra=fields`: a record has a `message` of its own.
            fields = {"tool_call": event.model_dump(mode="json")}
            shown = event.model_dump(mode="json", exclude={"message"}, exclude_none=True)
            self._logger.log(self._level, "%s", json.dumps(shown), extra=fields)


class JsonLinesSink:
    """Appends one line per event, so that `ToolCallPlanned.model_validate_json(line)` reads it.

    Threads, processes and children of a fork may share the file, and there is nothing to close: it
    is opened for each line, so that it may be moved away (`logrotate`). A reader skips what is no
    JSON, which a killed process may leave. Where the disk is full or the folder gone, events are
    lost, and the log says so once a minute.

    Args:
        path: the file; made when missing, readable by its owner only, like its folder.

    Raises:
        ConfigurationError: the file cannot be written, or is no regular file.
    """

    def __init__(self, path: Path | str) -> None:
        if sys.platform == "win32":
            raise ConfigurationError("JsonLinesSink needs POSIX file locks; use LoggingSink here")
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
        """Append it.

        Raises:
            OSError: it cannot be written.
        """
        append_line(self._path, event.model_dump_json(exclude_none=True).encode() + b"\n")


class RecorderSink:
    """Hands every finished call to a recorder, which masks its secrets.

    The request is the execution's session, `seq` its order in it. Calls that were never made (an
    unreadable payload, a refused one) are not recorded, for they would teach something wrong of the
    tool, and calls that were given up are not, since nobody knows how they ended.

    `call_with_reflection` records by itself: this is for calls that it does not make.
    """

    def __init__(self, recorder: ExecutionSink) -> None:
        self._recorder = recorder

    def finished(self, call: FinishedCall) -> None:
        """Record it."""
        error = None
        if call.status == "error":
            message = clean_text(call.message or "")
            error = ExecutionError(type=call.error_type or "Error", message=message)
        execution = execution_of(
            # Not made of request and seq: another process may have a request of the same name.
            execution_id=str(uuid4()),
            timestamp=call.started_at,
            agent=call.agent,
            server_name=call.server_name,
            tool_name=call.tool,
            parameters=call.arguments,
            outcome="success" if error is None else "failure",
            duration_ms=call.latency_ms or 0.0,
            error=error,
            result=None if call.result is None else bounded_json(call.result),
            session_id=call.request_id,
            sequence=call.seq,
        )
        if execution is not None:
            self._recorder.record(execution)
