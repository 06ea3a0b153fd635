"""The two events of a tool call (seed 001), what takes them, and the hash that stands in them.

Neither holds an argument: a call is known by the hash of what it was called with. The seed hashes
the first 200 characters of the canonical JSON. Here the secrets are masked before, for a hash keeps
no secret that can be guessed: who knows the other arguments tries all PINs in a moment. Equal calls
still have equal hashes, which is what the hash is for; calls that differ only in a secret, or only
beyond those characters, have the same one. Arguments without secrets have exactly the seed's hash.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from aftercall.json_values import (
    MAX_NAME_CHARS,
    JsonObject,
    JsonValue,
    bounded_text,
    canonical_json,
    clean_text,
    make_json_value,
)
from aftercall.models.calls import ExecutionError, FailedCall
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

MAX_MESSAGE_CHARS = 500
"""Longest message of a result: enough to recognise an error, too little to carry a document."""

PAYLOAD_TOO_LARGE = "tool_payload_too_large"
"""`error_type` of a call whose payload is beyond the limit (seed 001)."""

PAYLOAD_PARSE_ERROR = "tool_payload_parse_error"
"""`error_type` of a call whose payload is not the JSON of a call (seed 001)."""

CANCELLED = "cancelled"
"""`error_type` of a call that its caller gave up; what the tool did is not known."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]


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
    status: Literal["ok", "error"]
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
        """Take a call over, at once. What it raises is logged by its type, and harms nothing."""


Sink: TypeAlias = EventSink | CallSink
"""Takes events, or whole calls, or both."""
PREVIEW_CHARS = 200
"""Characters of the canonical JSON that the hash is made of (seed 001)."""

_WINDOW_CHARS = 2000
"""Of each text that is masked: masking costs some 0.2 ms for a thousand characters, and a call
waits for it. Ten times the preview, since a masked text is shorter than what it stands for."""


def args_preview_hash(
    arguments: JsonObject, *, tool: str = "unknown", redactor: Redactor = DEFAULT_REDACTOR
) -> str:
    """The `args_preview_hash` of a call; values outside JSON count as their text."""
    return head_hash(tool, arguments_head(arguments), redactor)


def arguments_head(arguments: JsonObject) -> JsonObject:
    """As much of the arguments as the hash can depend on, and masking may take its time for."""
    head = _head(make_json_value(arguments))
    return head if isinstance(head, dict) else {}


def head_hash(tool: str, head: JsonObject, redactor: Redactor) -> str:
    """SHA-256, in hex, of the first 200 characters of the masked arguments."""
    return _sha256(canonical_json(redactor.parameters(tool, head)))


def text_preview_hash(payload: str, redactor: Redactor = DEFAULT_REDACTOR) -> str:
    """The hash of a payload that is no JSON: of its first 200 characters, masked."""
    return _sha256(masked_text(payload, redactor))


def masked_text(text: str, redactor: Redactor) -> str:
    """The beginning of a text, clean and without secrets."""
    return redactor.text(clean_text(text[:_WINDOW_CHARS]))


def masked_message(tool: str, head: JsonObject, text: str, redactor: Redactor) -> str:
    """What a tool said, bounded, without secrets and without masked arguments repeated."""
    said = FailedCall(
        agent="unknown",
        tool_name=tool,
        parameters=head,
        error=ExecutionError(message=clean_text(text[:_WINDOW_CHARS])),
    )
    return bounded_text(redactor.call(said).error.message, MAX_MESSAGE_CHARS)


def _head(value: JsonValue) -> JsonValue:
    # A member makes at least one character of JSON: the first 200 of each container are enough.
    if isinstance(value, str):
        return value[:_WINDOW_CHARS]
    if isinstance(value, dict):
        return {name[:_WINDOW_CHARS]: _head(value[name]) for name in sorted(value)[:PREVIEW_CHARS]}
    return [_head(item) for item in value[:PREVIEW_CHARS]] if isinstance(value, list) else value


def _sha256(text: str) -> str:
    return hashlib.sha256(text[:PREVIEW_CHARS].encode()).hexdigest()
