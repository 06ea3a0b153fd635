"""The two events of a tool call (seed 001): that it is planned, and what became of it.

Neither holds an argument: a call is known by the hash of what it was called with
(`aftercall.events.preview`).
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

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
