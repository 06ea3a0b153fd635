"""Calls of tools, the answers to failed ones, and what the service states of itself."""

import logging
import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    Strict,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from aftercall.json_values import bounded_name, bounded_text
from aftercall.models.base import (
    WHOLE,
    Id,
    Json,
    Name,
    Object,
    SaidJson,
    SaidName,
    SaidObject,
    SaidText,
    Share,
    Text,
    Timestamp,
    WireModel,
    whole_number,
)

_LOGGER = logging.getLogger("aftercall")
Outcome = Literal["success", "failure"]
MAX_BATCH = 1000
"""Most executions in one `POST /executions`."""


def _code_as_text(value: object) -> object:
    value = whole_number(value)  # `404.0` is one in JSON
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _nothing_as(default: object, kind: object) -> BeforeValidator:
    return BeforeValidator(
        lambda value: default if value is None else value, json_schema_input_type=kind
    )


_TRACE_ID = re.compile("(?!0{32})[0-9a-f]{32}")


def _known_trace(value: str | None) -> str | None:
    # A link alone depends on it: a call is not lost for an id of another system.
    plain = (value or "").replace("-", "").lower()
    return plain if _TRACE_ID.fullmatch(plain) else None


class ExecutionError(WireModel):
    """What a tool stated when it failed, in its own words; null states as little as leaving out.

    What no store can hold (NUL, lone surrogates, NaN) is replaced visibly, and the rest kept.
    """

    type: Annotated[SaidName, _nothing_as("Error", Name | None)] = Field(
        default="Error", examples=["ValidationError"]
    )
    message: SaidText = Field(examples=["Invalid parameter: topK must be <= 10"])
    """Its first 65,536 characters are kept, as of `code` and `stack`."""
    code: Annotated[
        SaidText | None,
        BeforeValidator(_code_as_text),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
    ] = Field(default=None, examples=["PARAM_INVALID"])
    stack: SaidText | None = None
    details: Annotated[
        SaidObject,
        _nothing_as({}, Object | None),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
    ] = Field(default_factory=dict)


_UNKNOWN_PARAMETERS: JsonDict = {
    "anyOf": [
        {"properties": {"parametersKnown": {"const": True}}},
        {"properties": {"parameters": {"maxProperties": 0}}},
    ]
}
_ERROR_FITS_OUTCOME: JsonDict = {
    "anyOf": [
        {"properties": {"outcome": {"const": "success"}, "error": {"type": "null"}}},
        {
            "properties": {"outcome": {"const": "failure"}, "error": {"type": "object"}},
            "required": ["error"],
        },
    ]
}
Verdict = Literal["pass", "repair", "warn", "block"]


class ShadowFacts(WireModel):
    """Of a call that was only watched: what would have been done."""

    before: Verdict = "pass"
    """What was stated of it before it was made; nothing of it was done."""
    after: Literal["same", "other"] | None = None
    """Where the call before it failed and would have been repaired: whether this is that repair."""


class Call(WireModel):
    """What every record of a call has, whether it was stored or is being asked about."""

    model_config = ConfigDict(json_schema_extra=_UNKNOWN_PARAMETERS)
    agent: Name = Field(examples=["librarian"])
    server_name: Name | None = Field(default=None, examples=["rag-server"])
    tool_name: Name = Field(examples=["rag_query"])
    tool_version: Name | None = None
    parameters: Annotated[
        Object, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]})
    ] = Field(examples=[{"query": "reflection", "topK": 50}])
    """An object; or the text that came instead of one, which is then `arguments_text`."""
    arguments_text: Text | None = Field(default=None, exclude_if=lambda text: text is None)
    """Arguments that came as a text, as they came; `parameters` are not known then."""
    parameters_known: bool = Field(default=True, strict=True, exclude_if=bool)
    """False, with no parameters, when the reporter of the call did not see them: the call counts,
    and nothing is learned of parameters from it."""
    context: Text | None = None
    """What the agent was trying to do; its first 65,536 characters are kept."""
    duration_ms: float = Field(default=0.0, ge=0, strict=True, examples=[245.0])
    """Milliseconds."""
    result: SaidJson = None
    result_status: SaidName | None = Field(default=None, examples=["success_no_parse"])
    """What the tool itself calls its success; kept and never reinterpreted."""
    session_id: Name | None = Field(default=None, examples=["s-1"])
    sequence: Annotated[int, Field(ge=0, le=4 * 10**18), *WHOLE] | None = None
    """Order within the session."""
    attempt: Annotated[int, Field(ge=1, le=1000), *WHOLE] = 1
    repair_of: Id | None = Field(default=None, description="The failed execution this one mends.")
    suggestion_id: Id | None = Field(default=None, description="The suggestion this call followed.")
    shadow: ShadowFacts | None = Field(default=None, exclude_if=lambda facts: facts is None)
    repaired_before: bool = Field(default=False, strict=True, exclude_if=lambda is_so: not is_so)
    """Whether it was repaired before it was made: the caller had asked for another call, which
    looked wrong."""
    trace_id: Annotated[Text | None, AfterValidator(_known_trace)] = Field(
        default=None,
        exclude_if=lambda trace: trace is None,
        description="The W3C Trace Context id of the trace that the call is part of, 32 hex "
        "digits; anything else is not kept.",
    )
    input_schema: Object | None = None
    """The tool's live input schema; one of more than 10,000 values or 262,144 characters of text is
    neither looked at nor kept."""

    @model_validator(mode="before")
    @classmethod
    def _text_is_no_object(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(text := given.get("parameters"), str):
            return given
        unread = {"parameters": {}, "parametersKnown": False, "argumentsText": text}
        return {**given, **unread}

    @model_validator(mode="after")
    def _unknown_parameters_are_none(self) -> Self:
        if self.parameters and not self.parameters_known:
            raise ValueError("parameters that are not known are sent as {}")
        return self


class Execution(Call):
    """One call of one tool, with its outcome. `execution_id` is the idempotency key."""

    model_config = ConfigDict(
        json_schema_extra={"allOf": [_UNKNOWN_PARAMETERS, _ERROR_FITS_OUTCOME]}
    )
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


def make_execution(*, agent: str, tool_name: str, **fields: Any) -> Execution | None:
    """Return an execution of these fields, its names and context cut to what is recorded.

    Recording must not fail a call that worked: None when the fields make none, with a warning that
    names them and holds no values.
    """
    names = ("server_name", "tool_version", "session_id", "result_status")
    fields |= {name: bounded_name(fields[name]) for name in names if name in fields}
    fields["agent"] = bounded_name(agent) or "unknown"
    fields["tool_name"] = bounded_name(tool_name) or "unknown"
    if context := fields.get("context"):
        fields["context"] = bounded_text(context, 4000)
    try:
        return Execution(**fields)
    except ValidationError as error:
        wrong = ", ".join(str(each["loc"]) for each in error.errors(include_input=False))
        _LOGGER.warning("a call of %s could not be recorded: %s", tool_name, wrong)
        return None


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
    # How many of the accepted are successes that the service's sampling did not keep.


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
Action = Literal["change_parameters", "retry_unchanged", "switch_tool", "call_first", "escalate"]
ChangeClass = Literal["lossless", "plausible", "lossy", "semantic"]
"""How much of what was asked a change keeps; see `aftercall.change_classes`."""
EvidenceSource = Literal[
    "schema", "error", "context", "repairs", "profile", "similar", "parameters", "session", "seed"
]
Flag = Annotated[bool, Strict()]
"""A JSON boolean: `"no"` and 0 are refused instead of read, for safety hangs on it."""


class ToolAnnotations(WireModel):
    """MCP tool annotations: claims of the tool's maker, not facts. Unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore")
    read_only_hint: Flag | None = None
    destructive_hint: Flag | None = None
    idempotent_hint: Flag | None = None
    open_world_hint: Flag | None = None


class SuggestRequest(WireModel):
    """Question of `POST /suggest`.

    In short, the call's fields stand next to `limit` and `annotations` instead of in `execution`;
    `agent` may be left out then, and `error` be a text.
    """

    execution: FailedCall
    limit: Annotated[int, Field(ge=1, le=20), *WHOLE] = 3
    annotations: ToolAnnotations | None = None
    """Claims about the tool; left out, the registered ones count; {} trusts none."""

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "execution" in given or "toolName" not in given:
            return given
        beside = {"limit", "annotations"} & given.keys()
        call = {"agent": "unknown"} | {name: given[name] for name in given.keys() - beside}
        if isinstance(call.get("error"), str):
            call["error"] = {"message": call["error"]}
        return {"execution": call} | {name: given[name] for name in beside}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return both forms."""
        made = super().__get_pydantic_json_schema__(core_schema, handler)
        whole = handler.resolve_ref_schema(made)
        full, call = dict(whole), handler.resolve_ref_schema(whole["properties"]["execution"])
        parts = {name: each for name, each in full["properties"].items() if name != "execution"}
        error = {"anyOf": [{"type": "string"}, call["properties"]["error"]]}
        short = call | {
            "properties": call["properties"] | parts | {"error": error},
            "required": ["toolName", "parameters", "error"],
            "title": "In short",
        }
        whole.clear()
        whole.update({"title": full["title"], "anyOf": [full | {"title": "In full"}, short]})
        return made


class CheckRequest(WireModel):
    """Question of `POST /check`: a call that is about to be made."""

    call: Call
    annotations: ToolAnnotations | None = None
    """Claims about the tool; left out, the registered ones count; {} trusts none."""


class Pattern(WireModel):
    """The service's reading of the error."""

    category: ErrorCategory
    signature: str = Field(description="The message with its variable parts masked.")
    confidence: Share = Field(description="Of the category; higher is surer.")


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
    sources: list[EvidenceSource] = Field(default_factory=list)
    """`seed` marks the shipped corpus, not own experience."""


class Example(WireModel):
    """The changed parameters, before and after."""

    failed: Object
    successful: Object


class AccountedValue(WireModel):
    """Where one value of a repaired call comes from, if it is not the caller's at its own place."""

    path: str = Field(description="JSON Pointer into the repaired parameters.")
    origin: Literal["moved", "recoded", "stated", "own", "setting", "unexplained"]
    """`moved`: the same bytes from another place. `recoded`: made from values of the call.
    `stated`: error, schema or task state it. `own`: from an earlier call of the session. `setting`:
    a constant that was learned for a parameter whose values repeat."""
    from_: str | None = Field(default=None, alias="from")
    """JSON Pointer into the failed call: the value, or what holds the values, that it was made
    from. Null where it comes from elsewhere."""
    why: str = Field(description="The reason in words, such as `another spelling`.")
    rivals: list[str] = Field(default_factory=list, exclude_if=lambda rivals: not rivals)
    """JSON Pointers of other open places that would take the value as well: it is a question."""


class DroppedValue(WireModel):
    """A value of the failed call that the repaired one does not hold."""

    path: str = Field(description="JSON Pointer into the failed call.")
    why: str


class Account(WireModel):
    """What a repair does with every value: those of the repaired call, and those that are gone."""

    kept: int = Field(ge=0, description="Values with the same bytes at the same place.")
    values: list[AccountedValue] = Field(default_factory=list)
    dropped: list[DroppedValue] = Field(default_factory=list)


class Suggestion(WireModel):
    """One proposed action for a failed call. `confidence` is the probability that it is right."""

    suggestion_id: Id
    action: Action
    changes: list[Change] = Field(default_factory=list)
    corrected_parameters: Object | None = None
    tool: Name | None = Field(default=None, description="For `switch_tool` and `call_first`.")
    parameters: Object | None = None
    """For `call_first`, where known: what to call `tool` with before this call."""
    split: list[Text] = Field(default_factory=list)
    """For a request that crosses a tool's boundary: the parts to split it into, in order. With
    `switch_tool` these are tools, and `tool` comes first; with `escalate` they are the tool's
    own words."""
    retry_after_ms: float | None = Field(default=None, ge=0)
    """For `retry_unchanged`: milliseconds to wait."""
    confidence: Share
    confidence_interval: tuple[Share, Share] | None = None
    """The 90 % interval of the confidence, low and high: the less evidence, the wider. Null where
    no calibration made it, as for a wait."""
    change_class: ChangeClass | None = Field(default=None, alias="class")
    """Of a change: how much of what was asked it keeps; the strictest of its changes."""
    safe: bool | None = None
    """Whether it may be followed without asking, if its confidence is above the caller's threshold;
    null from a service that does not say."""
    account: Account | None = Field(default=None, exclude_if=lambda account: account is None)
    """Of a change: where each value of the repaired call comes from, and what is gone."""
    reasons: list[str] = Field(default_factory=list, exclude_if=lambda reasons: not reasons)
    """Of a change: at most three sentences that say what made it more or less sure, first the one
    that counted most."""
    evidence: Evidence
    lesson: str
    example: Example | None = None


class RetryAdvice(WireModel):
    """Whether calling again can repeat a side effect."""

    safe: bool
    reason: str


class LikeCall(WireModel):
    """A call of the tool that worked, for an agent that has to decide itself."""

    execution_id: Id
    parameters: Object
    context: Text | None = None
    likeness: Share = Field(description="Cosine of the words of both calls, the rare ones first.")


class SuggestResponse(WireModel):
    """Answer of `POST /suggest`, best suggestion first."""

    pattern: Pattern
    suggestions: list[Suggestion]
    retry: RetryAdvice
    abstained: bool
    reason: str | None = Field(default=None, description="Why there are no suggestions.")
    similar: list[LikeCall] = Field(default_factory=list, exclude_if=lambda calls: not calls)
    """Where no suggestion is sure: at most three calls of the tool that worked, the likest first.
    A key without `read` sees its own alone."""
    took_ms: float = Field(ge=0)


class CheckResponse(WireModel):
    """Answer of `POST /check`."""

    verdict: Verdict
    changes: list[Change] = Field(default_factory=list)
    corrected_parameters: Object | None = None
    """With `repair` only. Masked values stay masked: apply `changes` to the call itself."""
    confidence: Share | None = Field(default=None, description="That the repair is right.")
    change_class: ChangeClass | None = Field(default=None, alias="class")
    reasons: list[str] = Field(default_factory=list)
    account: Account | None = Field(default=None, exclude_if=lambda account: account is None)
    """With `repair` only: where each value of the repaired call comes from, and what is gone."""
    ignored: list[Name] = Field(default_factory=list)
    """Parameters that the tool does not have, and may pass over in silence."""
    evidence: Evidence = Field(default_factory=Evidence)
    took_ms: float = Field(default=0.0, ge=0)


class OutcomeReport(WireModel):
    """What became of a suggestion: `POST /suggestions/{suggestionId}/outcome`."""

    outcome: Outcome
    execution_id: Id


class SimilarRequest(WireModel):
    """Question of `POST /similar`."""

    tool_name: Name
    server_name: Name | None = None
    context: Text | None = None
    parameters: Annotated[
        Object, _nothing_as({}, Object | None), WithJsonSchema({"type": ["object", "null"]})
    ] = Field(default_factory=dict)
    outcome: Outcome = "success"
    agent: Name | None = Field(default=None, description="Only calls of this agent.")
    signature: Text | None = None
    """Only failures of this signature of `/suggest`."""
    limit: Annotated[int, Field(ge=1, le=50), *WHOLE] = 5


class ErrorBody(WireModel):
    """What went wrong: a stable code, a sentence that names the cure, and details."""

    code: str = Field(examples=["invalid_request"])
    message: str
    details: Any = None


class ErrorResponse(WireModel):
    """Every error of the service has this form."""

    error: ErrorBody


class CalibrationStatus(WireModel):
    """How the workspace's confidence is calibrated.

    The log-odds of a confidence are those of the shipped calibration, times `slope`, plus `shift`.
    """

    source: Literal["shipped", "own"]
    """`own` once there are enough recorded outcomes of suggestions."""
    outcomes: int = Field(ge=0, description="Outcomes that it was fitted on; 0 when shipped.")
    shift: float = Field(description="Above 0 raises every confidence, below lowers it.")
    slope: float = Field(gt=0, description="Below 1 draws confidences together.")
    fitted_at: Timestamp | None = None


class Status(WireModel):
    """Answer of `GET /status`."""

    version: str
    ready: bool
    executions: int = Field(ge=0)
    tools: int = Field(ge=0, description="Registered tools; others are learned from calls alone.")
    pending_indexing: int = Field(ge=0, description="Durable but not yet usable in answers.")
    documents: int = Field(ge=0, description="Distinct documents, one vector each.")
    seed_patterns: int = Field(ge=0, description="Entries of the shipped corpus in use.")
    embedder: str
    log_store: str
    vector_index: str
    uptime_s: float = Field(ge=0)
    calibration: CalibrationStatus | None = None
    vectors: int | None = Field(default=None, ge=0)
    """Vectors in the index over all workspaces, those of the shipped corpus too; null when it does
    not answer."""
    consistent: bool = True
    """False when the vectors do not agree with the log store for good."""
    problem: str | None = None
    """What is wrong with the service, with its cure; null for nothing."""
    generation: int | None = Field(default=None, ge=1)
    """Grows by one with every rebuild of what was learned."""
    indexing: Literal["here", "workers"] | None = None
    """Who learns: this process too, or `aftercall worker` alone."""
    indexing_lag_s: float | None = Field(default=None, ge=0)
    """Seconds that the oldest execution has waited to be learned from; 0 for none."""
    missing: list[str] = Field(default_factory=list, exclude_if=lambda said: not said)
    """What calls of late leave out that could be learned from, in sentences."""
    linger_s: float | None = Field(default=None, ge=0)
    """Seconds that a service which a gateway started stays after the last gateway left."""


class SimilarExecution(WireModel):
    """One hit of `POST /similar`."""

    execution: Execution
    similarity: float = Field(
        description="Mean cosine of vectors and of words, -1 to 1; 1 for the same call."
    )


class SimilarResponse(WireModel):
    """Answer of `POST /similar`: different calls, the likest first."""

    executions: list[SimilarExecution]
