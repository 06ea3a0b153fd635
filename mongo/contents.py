"""What events hold: one dataclass for each kind, and the way from and to `mongo.records.Event`.

An event states all that learning from it needs: a mark or a correction carries what was known of
its call when it came, an outcome what its suggestion was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeVar
from uuid import uuid4

from aftercall import models as m
from aftercall.json_values import JsonObject
from aftercall.models.calls import Call
from mongo.records import OWNER, Event, StateRow, ToolKey, decode_json, encode_json, make_reader


@dataclass(frozen=True, slots=True)
class _Recorded:
    execution: m.Execution
    stands_for: int = 1


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """An execution as the log has it; without its input schema."""

    position: int
    workspace: str
    execution: m.Execution
    tool_key: ToolKey
    schema_hash: str | None
    received_at: datetime
    stands_for: int = 1
    """Calls that it stands for: itself, and the successes that sampling left out before it."""
    principal: str = OWNER


_recorded = make_reader(_Recorded)


def execution_event(
    workspace: str,
    execution: m.Execution,
    *,
    content_hash: str,
    schema_hash: str | None,
    input_schema: JsonObject | None,
    stands_for: int = 1,
    principal: str = OWNER,
) -> Event:
    """Return the event of an execution, which is redacted and has no input schema in it.

    `content_hash` is SHA-256 over the canonical JSON of what the caller sent, after redaction;
    `input_schema` is kept under `schema_hash` unless it is known.
    """
    return Event(
        kind="execution",
        id=execution.execution_id,
        data=encode_json(_Recorded(execution, stands_for), sparse=True),
        tool=ToolKey(workspace, execution.server_name, execution.tool_name),
        session=thread_of(as_named(execution, principal)),
        principal=principal,
        content_hash=content_hash,
        schema_hash=schema_hash,
        input_schema=input_schema,
    )


BETWEEN = "\x1e"
"""Between a principal and the name of its agent or session; no name holds it."""


def name_for_principal(principal: str, name: str) -> str:
    """Return the name of an agent or a session as learning knows it.

    Those of a key are shown apart.
    """
    name = name.replace(BETWEEN, " ")
    return name if principal == OWNER else f"{principal}{BETWEEN}{name}"


def name_as_given(name: str) -> str:
    """Return the name that was `named`."""
    return name.rpartition(BETWEEN)[2]


C = TypeVar("C", bound=Call)


def as_named(call: C, principal: str) -> C:
    """Return a call whose agent and session are shown apart from those of other principals."""
    if principal == OWNER and BETWEEN not in f"{call.agent}{call.session_id}":
        return call
    names = {"agent": name_for_principal(principal, call.agent)}
    if call.session_id is not None:
        names["session_id"] = name_for_principal(principal, call.session_id)
    return call.model_copy(update=names)


def thread_of(execution: m.Execution) -> str:
    """Return what ties an agent's calls together: its session, or its name where it has none."""
    return execution.session_id or f"\x1f{execution.agent}"


def execution_of(event: Event) -> StoredExecution:
    """Return the execution that an event holds."""
    recorded = _recorded(event.data)
    called = recorded.execution
    return StoredExecution(
        position=event.position,
        workspace=event.workspace,
        execution=called,
        tool_key=ToolKey(event.workspace, called.server_name, called.tool_name),
        schema_hash=event.schema_hash,
        received_at=event.received_at,
        stands_for=recorded.stands_for,
        principal=event.principal,
    )


def named_execution_of(event: Event) -> StoredExecution:
    """Return the same with agent and session after their principal: two keys' agents stay two."""
    stored = execution_of(event)
    call = as_named(stored.execution, event.principal)
    return stored if call is stored.execution else replace(stored, execution=call)


@dataclass(frozen=True, slots=True)
class Called:
    """What marks and corrections have to know of the call that they are about."""

    tool: ToolKey
    version: str | None
    context: str | None
    outcome: m.Outcome

    @classmethod
    def from_execution(cls, stored: StoredExecution) -> "Called":
        """Return what is kept of an execution."""
        execution = stored.execution
        return cls(stored.tool_key, execution.tool_version, execution.context, execution.outcome)


@dataclass(frozen=True, slots=True)
class IssuedSuggestion:
    """A suggestion that was answered, kept so that its outcome can teach.

    The first one of an answer carries the answer's counts. An answer without suggestions is kept as
    one event without a suggestion.
    """

    tool: ToolKey
    category: m.ErrorCategory
    signature: str
    issued_at: datetime
    suggestion: m.Suggestion | None = None
    edit_key: str = ""
    estimate: float | None = None
    """Its confidence by the shipped calibration alone, in [0, 1]: what a new one is fitted on."""
    answered: tuple[str, ...] = ()
    """What is counted of the answer, such as `asked` and `action:switch_tool`."""
    agent: str | None = None
    session: str | None = None
    failed_at: datetime | None = None
    """When the call failed, where the asker states so."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """What the error states is wrong, by place: its outcome may come before the failed call."""


def suggestion_event(suggestion_id: str, issued: IssuedSuggestion, principal: str = OWNER) -> Event:
    """Return the event of a suggestion, or under an id of its own of an answer without one."""
    return Event(
        "suggestion", suggestion_id, encode_json(issued), tool=issued.tool, principal=principal
    )


@dataclass(frozen=True, slots=True)
class SuggestionOutcome:
    """What became of a suggestion; one for each suggestion and execution, the first that is stated.

    It carries what the suggestion was, so that it teaches whatever is still in the log.
    """

    suggestion_id: str
    execution_id: str
    outcome: m.Outcome
    issued: IssuedSuggestion
    agent: str | None = None
    """Of the execution that followed it, where that is known."""


def outcome_event(outcome: SuggestionOutcome, principal: str = OWNER) -> Event:
    """Return the event of an outcome."""
    return Event(
        kind="outcome",
        id=f"{outcome.suggestion_id}\x1f{outcome.execution_id}",
        data=encode_json(outcome),
        tool=outcome.issued.tool,
        principal=principal,
    )


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """A failure that someone marked. `version` is the tool's that failed, where one is known."""

    tool: ToolKey
    mark_id: str
    version: str | None
    scenario: str
    error_message: str
    severity: m.Severity
    marked_at: datetime
    negative_tags: tuple[str, ...] = ()
    execution_id: str | None = None
    called: Called | None = None
    """The call that it is about, where that was recorded before it."""
    principal: str = OWNER
    """As its event states, once it is read from there."""


def mark_event(mark: FailureRecord, principal: str = OWNER) -> Event:
    """Return the event of a mark; the same id counts once, whatever else it states."""
    return Event("mark", mark.mark_id, encode_json(mark), tool=mark.tool, principal=principal)


@dataclass(frozen=True, slots=True)
class CorrectionRecord:
    """What a user stated of an execution, which may be recorded later than this."""

    correction_id: str
    execution_id: str
    kind: m.ReferralKind
    text: str
    corrected_at: datetime
    boundary_axes: tuple[str, ...] = ()
    agent: str | None = None
    called: Called | None = None
    """The call that it is about, where that was recorded before it."""
    principal: str = OWNER
    """As its event states, once it is read from there."""


def correction_event(correction: CorrectionRecord, principal: str = OWNER) -> Event:
    """Return the event of a correction."""
    called = correction.called
    return Event(
        kind="correction",
        id=correction.correction_id,
        data=encode_json(correction),
        tool=called.tool if called else None,
        principal=principal,
    )


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A registered tool of a workspace. `position` is that of the event that put it.

    `principals` put it so, the latest last: for others it only advises.
    """

    workspace: str
    tool: m.Tool
    position: int = field(default=0, compare=False)
    principals: tuple[str, ...] = (OWNER,)

    def is_registered_by(self, principal: str) -> bool:
        """Return whether a principal has registered it."""
        return principal in self.principals

    @property
    def tool_key(self) -> ToolKey:
        """Tool as executions name it."""
        return ToolKey(self.workspace, self.tool.server_name, self.tool.name)


_MAX_PRINCIPALS = 8


@dataclass(frozen=True, slots=True)
class _Registration:
    tool: m.Tool
    principals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool was put, or deleted when `after` is `None`."""

    tool_id: str
    before: m.Tool | None
    after: m.Tool | None


def tool_command(
    workspace: str,
    tool_id: str,
    before: StoredTool | None,
    after: m.Tool | None,
    principal: str = OWNER,
) -> tuple[Event, StateRow]:
    """Return the event of a put or a deletion, and the state that it leaves."""
    known = after or (before.tool if before else None)
    event = Event(
        kind="tool",
        id=str(uuid4()),
        data=encode_json(ToolChange(tool_id, before.tool if before else None, after)),
        tool=ToolKey(workspace, known.server_name, known.name) if known else None,
        principal=principal,
        schema_hash=after.schema_hash if after else None,
        input_schema=after.input_schema if after and after.schema_hash else None,
    )
    same = before is not None and after is not None and is_same_tool(after, before.tool)
    others = (each for each in (before.principals if before and same else ()) if each != principal)
    by = (*list(others)[1 - _MAX_PRINCIPALS :], principal)
    data = None if after is None else encode_json(_Registration(after, by))
    return event, StateRow("tool", tool_id, data, expected=before.position if before else 0)


def is_same_tool(one: m.Tool, other: m.Tool) -> bool:
    """Return whether two say the same, whenever they were put. By their JSON.

    To Python, `1 == True`.
    """
    at = {"updated_at": other.updated_at}
    return one.model_copy(update=at).model_dump_json() == other.model_dump_json()


def tool_of(workspace: str, row: StateRow) -> StoredTool:
    """Return the registered tool that a state row holds."""
    known = decode_json(_Registration, row.data or b"")
    return StoredTool(workspace, known.tool, row.position, known.principals)


@dataclass(frozen=True, slots=True)
class StoredPromotion:
    """A promotion that holds. `inherited_quality` is the original's at that moment, 0 to 1."""

    workspace: str
    namespace: str
    promotion: m.Promotion
    inherited_quality: float = 1.0
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class PromotionEvent:
    """A change of a namespace's promotion; `promoted` is what holds from then on, if anything."""

    workspace: str
    namespace: str
    at: datetime
    action: m.PromotionAction
    promoted: StoredPromotion | None


def promotion_command(
    change: PromotionEvent, before: StoredPromotion | None, principal: str = OWNER
) -> tuple[Event, StateRow]:
    """Return the event of a change of a promotion, and the state that it leaves."""
    event = Event(
        kind="promotion",
        id=str(uuid4()),
        data=encode_json(change),
        tool=ToolKey(change.workspace, None, change.namespace),
        principal=principal,
    )
    data = None if change.promoted is None else encode_json(change.promoted)
    return event, StateRow(
        "promotion", change.namespace, data, expected=before.position if before else 0
    )


@dataclass(frozen=True, slots=True)
class StoredRecommendation:
    """What a tool builder did about a recommendation; `data` is the recommendation as it was then.

    One that no one touched is not stored: it follows from the evidence.
    """

    workspace: str
    recommendation_id: str
    state: m.RecommendationState
    changed_at: datetime
    data: bytes
    reason: str | None = None
    changed_by: str | None = None


@dataclass(frozen=True, slots=True)
class StoredPatternReview:
    """What someone stated of a failure pattern."""

    pattern_id: str
    state: m.PatternState
    changed_at: datetime
    counted: int = 0
    """Its failures that were counted by then in the hour of `changed_at`."""
    version: str | None = None
    """The tool's latest one then."""
    reason: str | None = None
    changed_by: str | None = None


def review_command(
    review: StoredRecommendation | StoredPatternReview, principal: str = OWNER
) -> tuple[Event, StateRow]:
    """Return the event of a review, and the state that it leaves: the last word."""
    data = encode_json(review)
    event = Event(kind="review", id=str(uuid4()), data=data, principal=principal)
    if isinstance(review, StoredPatternReview):
        return event, StateRow("pattern", review.pattern_id, data)
    return event, StateRow("review", review.recommendation_id, data)


RuleChange = Literal["remove", "off", "on"]


@dataclass(frozen=True, slots=True)
class RuleRemoval:
    """A learned repair was struck out, and may be taught again; or it was switched off, or on."""

    tool: ToolKey
    signature: str
    edit_key: str
    change: RuleChange = "remove"


def removal_event(removal: RuleRemoval) -> Event:
    """Return the event of it."""
    return Event("rule", str(uuid4()), encode_json(removal), tool=removal.tool)


def hour_of(moment: datetime) -> int:
    """Hours since 1970 (UTC) until the hour of a moment."""
    return int(moment.timestamp() // 3600)
