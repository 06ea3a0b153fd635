"""Suggestions: one proposed action for a failed call, and what became of it."""

from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    field_validator,
    model_serializer,
)
from pydantic.alias_generators import to_camel

from aftercall.wire.base import Id, Json, Name, Object, Text, WireModel
from aftercall.wire.execution import FailedCall, Outcome

ErrorCategory = Literal[
    "invalid_parameters",
    "not_found",
    "conflict",
    "timeout",
    "rate_limited",
    "unavailable",
    "permission_denied",
    "contract_violation",
    "wrong_tool_boundary",
    "low_utility",
    "user_rejected",
    "execution",
    "unknown",
]

Action = Literal["change_parameters", "retry_unchanged", "switch_tool", "escalate"]

EvidenceSource = Literal[
    "schema", "error", "context", "repairs", "profile", "similar", "parameters", "seed"
]


Probability = Annotated[float, Field(ge=0, le=1)]
"""From 0, never, to 1, always."""

Flag = Annotated[bool, Strict()]
"""A JSON boolean: `"no"` and 0 are refused instead of read, for safety hangs on it."""


class ToolAnnotations(WireModel):
    """MCP tool annotations: claims of the tool's maker, not facts. Unknown ones are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        frozen=True,
    )

    read_only_hint: Flag | None = None
    destructive_hint: Flag | None = None
    idempotent_hint: Flag | None = None
    open_world_hint: Flag | None = None


class SuggestRequest(WireModel):
    """Question of `POST /suggest`."""

    execution: FailedCall
    limit: int = Field(default=3, ge=1, le=20, strict=True)
    annotations: ToolAnnotations | None = Field(
        default=None,
        description="Claims about the tool; left out, the registered ones count; {} trusts none.",
    )


class Pattern(WireModel):
    """The service's reading of the error."""

    category: ErrorCategory
    signature: str = Field(description="The message with its variable parts masked.")
    confidence: float = Field(ge=0, le=1, description="Of the category; higher is surer.")


class Change(WireModel):
    """One JSON Patch operation (RFC 6902: add, remove, replace) with its reason.

    `from` is the value before (absent for `add`), not RFC 6902's pointer; a rename is a `remove`
    and an `add`, so the operations apply with any JSON Patch library once `from` is dropped.
    """

    op: Literal["add", "remove", "replace"]
    path: str = Field(description="JSON Pointer into the parameters.", examples=["/topK"])
    from_: Json = Field(default=None, alias="from")
    value: Json = None
    reason: str

    @model_serializer(mode="wrap")
    def _fields_of_the_operation(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.op == "add":
            fields.pop("from", None)
            fields.pop("from_", None)
        if self.op == "remove":
            fields.pop("value", None)
        return fields


class Evidence(WireModel):
    """What a suggestion rests on. Counts are of recorded executions in this workspace."""

    repairs: int = Field(default=0, ge=0, description="Mined repairs that made the same edit.")
    successes: int = Field(default=0, ge=0, description="Successes that agree with the correction.")
    failures: int = Field(default=0, ge=0, description="Times the same edit was tried and failed.")
    execution_ids: list[Id] = Field(default_factory=list, description="A few to look at.")
    sources: list[EvidenceSource] = Field(
        default_factory=list, description="`seed` marks the shipped corpus, not own experience."
    )


class Example(WireModel):
    """The changed parameters, before and after."""

    failed: Object
    successful: Object


class Suggestion(WireModel):
    """One proposed action for a failed call. `confidence` is the probability that it is right."""

    suggestion_id: Id
    action: Action
    changes: list[Change] = Field(default_factory=list)
    corrected_parameters: Object | None = None
    tool: Name | None = Field(default=None, description="For `switch_tool`.")
    split: list[Text] = Field(
        default_factory=list,
        description="For a request that crosses a tool's boundary: the parts to split it into, in "
        "order. With `switch_tool` these are tools, of which `tool` comes first; with `escalate` "
        "they are the tool's own words.",
    )
    retry_after_ms: float | None = Field(
        default=None, ge=0, description="For `retry_unchanged`: milliseconds to wait."
    )
    confidence: float = Field(ge=0, le=1)
    confidence_interval: tuple[Probability, Probability] | None = Field(
        default=None,
        description="The 90 % interval of the confidence, low and high: the less evidence, the "
        "wider. Null where no calibration made it, as for a wait.",
    )
    evidence: Evidence
    lesson: str
    example: Example | None = None


class RetryAdvice(WireModel):
    """Whether calling again can repeat a side effect."""

    safe: bool
    reason: str


class SuggestResponse(WireModel):
    """Answer of `POST /suggest`, best suggestion first."""

    pattern: Pattern
    suggestions: list[Suggestion]
    retry: RetryAdvice
    abstained: bool
    reason: str | None = Field(default=None, description="Why there are no suggestions.")
    took_ms: float = Field(ge=0)


class OutcomeReport(WireModel):
    """What became of a suggestion: `POST /suggestions/{suggestionId}/outcome`."""

    outcome: Outcome
    execution_id: Id


class SimilarRequest(WireModel):
    """Question of `POST /similar`."""

    tool_name: Name
    server_name: Name | None = None
    context: Text | None = None
    parameters: Object = Field(default_factory=dict)
    outcome: Outcome = "success"
    limit: int = Field(default=5, ge=1, le=50, strict=True)

    @field_validator("parameters", mode="before")
    @classmethod
    def _none_is_empty(cls, value: object) -> object:
        return {} if value is None else value
