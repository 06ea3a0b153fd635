"""Executions: one call of one tool, with its outcome."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from aftercall.json_values import MAX_INTEGER
from aftercall.wire.base import Id, Json, Name, Object, Text, Timestamp, WireModel

Outcome = Literal["success", "failure"]

MAX_BATCH = 1000
"""Most executions in one `POST /executions`."""


def _code_as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class ExecutionError(WireModel):
    """What a tool said when it failed, in its own words."""

    type: Name = Field(default="Error", examples=["ValidationError"])
    message: Text = Field(examples=["Invalid parameter: topK must be <= 10"])
    code: Annotated[Text | None, BeforeValidator(_code_as_text)] = Field(
        default=None, examples=["PARAM_INVALID"]
    )
    stack: Text | None = None
    details: Object = Field(default_factory=dict)


class Call(WireModel):
    """What every record of a call has, whether it was stored or is being asked about."""

    agent: Name = Field(examples=["librarian"])
    server_name: Name | None = Field(default=None, examples=["rag-server"])
    tool_name: Name = Field(examples=["rag_query"])
    tool_version: Name | None = None
    parameters: Object = Field(examples=[{"query": "reflection", "topK": 50}])
    parameters_known: bool = Field(
        default=True,
        strict=True,
        exclude_if=bool,  # what it nearly always is need not be told
        description="False, with no parameters, when whoever tells of the call did not see them: "
        "the call counts, and nothing is learned of parameters from it.",
    )
    context: Text | None = Field(default=None, description="What the agent was trying to do.")
    duration_ms: float = Field(
        default=0.0, ge=0, strict=True, description="Milliseconds.", examples=[245.0]
    )
    result: Json = None
    result_status: Name | None = Field(
        default=None,
        description="What the tool itself calls its success; kept and never reinterpreted.",
        examples=["success_no_parse"],
    )
    session_id: Name | None = Field(default=None, examples=["s-1"])
    sequence: int | None = Field(
        default=None, ge=0, le=MAX_INTEGER, strict=True, description="Order within the session."
    )
    attempt: int = Field(default=1, ge=1, le=1000, strict=True)
    repair_of: Id | None = Field(default=None, description="The failed execution this one mends.")
    suggestion_id: Id | None = Field(default=None, description="The suggestion this call followed.")
    input_schema: Object | None = Field(default=None, description="The tool's live input schema.")

    @model_validator(mode="after")
    def _unknown_parameters_are_none(self) -> Self:
        if self.parameters and not self.parameters_known:
            raise ValueError("parameters that are not known are sent as {}")
        return self


class Execution(Call):
    """One call of one tool, with its outcome. `execution_id` is the idempotency key."""

    execution_id: Id
    timestamp: Timestamp
    outcome: Outcome
    error: ExecutionError | None = None

    @model_validator(mode="after")
    def _error_fits_outcome(self) -> Self:
        if self.outcome == "failure" and self.error is None:
            raise ValueError("a failure needs an error: say what the tool said")
        if self.outcome == "success" and self.error is not None:
            raise ValueError("a success has no error: leave it out, or send outcome 'failure'")
        return self


class FailedCall(Call):
    """A failed execution to be asked about; `execution_id` and `timestamp` may be left out."""

    execution_id: Id | None = None
    timestamp: Timestamp | None = None
    outcome: Literal["failure"] = "failure"
    error: ExecutionError


class Rejection(WireModel):
    """Why one record of a batch was not stored."""

    index: int = Field(ge=0, description="Position in the batch that was sent, from 0.")
    message: str


class RecordReceipt(WireModel):
    """Answer of `POST /executions`: what is durable now, and what is not."""

    accepted: int = Field(ge=0)
    duplicates: int = Field(default=0, ge=0)
    rejected: list[Rejection] = Field(default_factory=list)
    left_out: int = Field(default=0, ge=0)
    """How many of the accepted are successes that the service's sampling did not keep."""
