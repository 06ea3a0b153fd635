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

from aftercall.bounded import bounded_text
from aftercall.json_values import JsonObject, JsonValue, canonical_json, clean_text, make_json_value
from aftercall.models.calls import ExecutionError, FailedCall
from aftercall.redaction import DEFAULT_REDACTOR, Redactor

MAX_NAME_CHARS = 256
"""Longest name of a request, a tool, a version or a kind of error, as the wire models have it."""

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

PREVIEW_CHARS = 200
"""Characters of the canonical JSON that the hash is made of (seed 001)."""

_WINDOW_CHARS = 2000
"""Of each text that is masked: masking costs some 0.2 ms for a thousand characters, and a call
waits for it. Ten times the preview, since a masked text is shorter than what it stands for."""


@dataclass(frozen=True, slots=True)
class Preview:
    """As much of a call's arguments as its events need.

    Args:
        tool: the tool's name, for the redactor's allowlist.
        head: the beginning of the arguments, unmasked.
        redactor: masks secrets.
    """

    tool: str
    head: JsonObject
    redactor: Redactor

    def hash(self) -> str:
        """SHA-256, in hex, of the first 200 characters of the masked arguments."""
        return _sha256(canonical_json(self.redactor.parameters(self.tool, self.head)))

    def message(self, text: str) -> str:
        """What a tool said, bounded, without secrets and without masked arguments repeated."""
        said = FailedCall(
            agent="unknown",
            tool_name=self.tool,
            parameters=self.head,
            error=ExecutionError(message=clean_text(text[:_WINDOW_CHARS])),
        )
        return bounded_text(self.redactor.call(said).error.message, MAX_MESSAGE_CHARS)


def preview(tool: str, arguments: JsonObject, redactor: Redactor) -> Preview:
    """The preview of arguments that are plain JSON."""
    members = PREVIEW_CHARS
    head: JsonObject = {}
    for name in sorted(arguments):
        if members <= 0:
            break
        head[name[:_WINDOW_CHARS]], members = _head(arguments[name], members)
    return Preview(tool, head, redactor)


def args_preview_hash(
    arguments: JsonObject, *, tool: str = "unknown", redactor: Redactor = DEFAULT_REDACTOR
) -> str:
    """The `args_preview_hash` of a call; values outside JSON count as their text."""
    made = make_json_value(arguments)
    return preview(tool, made if isinstance(made, dict) else {}, redactor).hash()


def text_preview_hash(payload: str, redactor: Redactor = DEFAULT_REDACTOR) -> str:
    """The hash of a payload that is no JSON: of its first 200 characters, masked."""
    return _sha256(masked_text(payload, redactor))


def masked_text(text: str, redactor: Redactor) -> str:
    """The beginning of a text, clean and without secrets."""
    return redactor.text(clean_text(text[:_WINDOW_CHARS]))


def _head(value: JsonValue, members: int) -> tuple[JsonValue, int]:
    """The first `members` values, in canonical order, and how many of them are left.

    Every value makes at least one character of canonical JSON, so what is left out of the first
    200 values could not have shown in the first 200 characters.
    """
    members -= 1
    if isinstance(value, str):
        return value[:_WINDOW_CHARS], members
    if isinstance(value, dict):
        kept: JsonObject = {}
        for name in sorted(value):
            if members <= 0:
                break
            kept[name[:_WINDOW_CHARS]], members = _head(value[name], members)
        return kept, members
    if isinstance(value, list):
        items: list[JsonValue] = []
        for item in value:
            if members <= 0:
                break
            made, members = _head(item, members)
            items.append(made)
        return items, members
    return value, members


def _sha256(text: str) -> str:
    return hashlib.sha256(text[:PREVIEW_CHARS].encode()).hexdigest()
