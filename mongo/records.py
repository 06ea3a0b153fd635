"""What a log store keeps: plain records, each with its workspace.

What the rooms above learn (`knowledge`, `documents`, `repairs`) is opaque here: bytes under a key.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, NamedTuple

from aftercall.json_values import JsonObject
from aftercall.models import (
    Execution,
    Outcome,
    Promotion,
    PromotionAction,
    RecommendationState,
    ReferralKind,
    Severity,
    Suggestion,
    Tool,
)

WITHOUT_STATISTICS = "executions without statistics"
"""The name of a store's fact: how many executions were learned from before all that is counted of
tools was counted: how they fared (statistics), and their health. Absent when there are none;
learning anew removes it."""


class ToolKey(NamedTuple):
    """A tool of a server in a workspace; `server_name` is None for a tool without a server."""

    workspace: str
    server_name: str | None
    tool_name: str


@dataclass(frozen=True, slots=True)
class NewExecution:
    """An execution to append: redacted and without its input schema.

    `content_hash` is SHA-256 over the canonical JSON of what the caller sent (after redaction);
    the same id with another hash is a conflict.
    """

    execution: Execution
    content_hash: str
    schema_hash: str | None = None
    input_schema: JsonObject | None = None
    stands_for: int = 1
    """Calls that it stands for: itself, and the successes that sampling left out before it."""


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """An execution as the store has it. `position` grows with arrival and is unique."""

    position: int
    workspace: str
    execution: Execution
    schema_hash: str | None
    received_at: datetime
    stands_for: int = 1
    """Calls that it stands for (`NewExecution.stands_for`)."""

    @property
    def tool_key(self) -> ToolKey:
        """The tool that was called."""
        return ToolKey(self.workspace, self.execution.server_name, self.execution.tool_name)


Appended = Literal["accepted", "duplicate", "conflict"]
"""What became of one appended execution: stored; already there; its id taken by other content."""


@dataclass(frozen=True, slots=True)
class KnowledgeRow:
    """All that is known of one tool, encoded by the room that learned it."""

    tool: ToolKey
    data: bytes


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One distinct document; its vector is in the vector index under the same id (a UUID).

    A commit that says `is_new` queues it for its vector (`LogStore.pending_vectors`): it is, or its
    text is another one. `position` is its place in that queue; 0 when it was not read from there.
    """

    workspace: str
    document_id: str
    data: bytes
    is_new: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RemovedDocument:
    """A document that is gone; its vector may still be there."""

    position: int
    workspace: str
    document_id: str


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A failed execution and the success that mended it; unique by the pair."""

    tool: ToolKey
    failed_id: str
    mended_id: str
    signature: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StatisticsRow:
    """How a tool has fared, encoded by the room that counted it."""

    tool: ToolKey
    data: bytes


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """A failure that somebody marked. `position` grows with arrival; 0 before it is stored.

    `version` is that of the tool that failed, None where none is known.
    """

    tool: ToolKey
    tool_id: str
    mark_id: str
    version: str | None
    scenario: str
    error_message: str
    severity: Severity
    marked_at: datetime
    negative_tags: tuple[str, ...] = ()
    execution_id: str | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class HealthRow:
    """What is known of a tool's health, encoded by the room that counted it.

    `troubled_at` is its latest referral, weak success, correction or failure of its own, if any.
    """

    tool: ToolKey
    data: bytes
    used_at: datetime
    troubled_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CorrectionRecord:
    """What a user said of an execution, which may be stored later than this.

    `position` grows with arrival; 0 before it is stored. `tool` is None until something was learned
    from it together with its execution.
    """

    workspace: str
    correction_id: str
    execution_id: str
    kind: ReferralKind
    text: str
    corrected_at: datetime
    boundary_axes: tuple[str, ...] = ()
    agent: str | None = None
    tool: ToolKey | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class StoredRecommendation:
    """What a tool builder did about a recommendation; `data` is the recommendation as it was then.

    One that nobody touched is not stored: it follows from the evidence.
    """

    workspace: str
    recommendation_id: str
    state: RecommendationState
    changed_at: datetime
    data: bytes
    reason: str | None = None
    changed_by: str | None = None


@dataclass(frozen=True, slots=True)
class ChangedTool:
    """A tool of that id and name was put or deleted, and its document does not say so yet.

    A tool that is put under another name has changed under both.
    """

    position: int
    tool: ToolKey
    tool_id: str


@dataclass(frozen=True, slots=True)
class StoredPromotion:
    """A promotion that holds. `inherited_quality` is the original's at that moment, 0 to 1."""

    workspace: str
    namespace: str
    promotion: Promotion
    inherited_quality: float = 1.0


@dataclass(frozen=True, slots=True)
class PromotionEvent:
    """A change of a namespace's promotion; `promoted` is what holds from then on, if anything."""

    workspace: str
    namespace: str
    at: datetime
    action: PromotionAction
    promoted: StoredPromotion | None


@dataclass(frozen=True, slots=True)
class QueuedPromotion:
    """A promotion of the past or present that has no document yet."""

    position: int
    promoted: StoredPromotion


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may do a thing at the moment, over all processes; see `mongo.upkeep`.

    No clock is in it: whoever waits for it watches whether `beat` changes, by a clock of its own.
    """

    name: str
    holder: str
    """Host, process and a random part, so that who looks can tell a process that is gone."""
    token: int
    """Grows by one with every holder: what a former one still writes is refused by it (fencing)."""
    beat: int = 0
    """Grows while the holder lives."""
    held: bool = True
    """False when its last holder gave it back."""


@dataclass(frozen=True, slots=True)
class Change:
    """What another process may have at hand of a workspace, and is no longer so."""

    workspace: str
    learned: tuple[ToolKey, ...] = ()
    """Tools whose knowledge, statistics or health was learned anew."""
    documents: tuple[str, ...] = ()
    """Documents that were changed or removed."""
    registry: bool = False
    """Tools or promotions were put or deleted."""
    facts: tuple[str, ...] = ()
    """Facts that were set."""
    everything: bool = False
    """More than can be told: forget all that is kept of the workspace."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened in a store since it was asked last, and the generation that holds now."""

    generation: int
    changes: "list[Change]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What a tool was asked for on one day (UTC), encoded by the room that counted it."""

    tool: ToolKey
    day: date
    data: bytes


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A consolidated pattern of failures, encoded by the room that consolidated it."""

    workspace: str
    pattern_id: str
    data: bytes
    last_seen: datetime
    count: int
    """Failures it stands for."""


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """What one indexing batch of one workspace learned; applied whole or not at all.

    `positions`, `outcomes`, `marks`, `corrections`, `changed_tools` and `promotions` are taken off
    their queues in the same step, so that a crash at any point neither loses nor doubles a count.
    All that is in it belongs to `workspace`.
    """

    workspace: str
    generation: int
    """Of the store when the batch was read (`mongo.upkeep.Upkeep.generation`)."""
    lease: "Lease | None" = None
    """Held by whoever learned it; a store refuses the commit of one who lost it. None: no check."""
    positions: list[int] = field(default_factory=list)
    knowledge: list[KnowledgeRow] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    repairs: list[RepairRow] = field(default_factory=list)
    outcomes: "list[SuggestionOutcome]" = field(default_factory=list)
    statistics: list[StatisticsRow] = field(default_factory=list)
    health: list[HealthRow] = field(default_factory=list)
    corrections: list[tuple[int, ToolKey | None]] = field(default_factory=list)
    """Positions of `CorrectionRecord`s that are off the queue from now on, each with the tool whose
    execution it is about; None while that execution is not stored."""
    marks: list[int] = field(default_factory=list)
    """Positions of `FailureRecord`s that were learned from."""
    changed_tools: list[int] = field(default_factory=list)
    """Positions of `ChangedTool`s whose documents are in this commit."""
    promotions: list[int] = field(default_factory=list)
    """Positions of `QueuedPromotion`s whose documents are in this commit."""
    removed: list[tuple[str, str]] = field(default_factory=list)
    """Documents (workspace, id) that stand for nothing any more; none that is in `documents`."""


@dataclass(frozen=True, slots=True)
class IssuedSuggestion:
    """A suggestion that was answered, kept so that its outcome can teach."""

    workspace: str
    suggestion: Suggestion
    tool: ToolKey
    signature: str
    edit_key: str
    issued_at: datetime
    estimate: float | None = None
    """Its confidence by the shipped calibration alone, in [0, 1]: what a new one is fitted on."""


@dataclass(frozen=True, slots=True)
class JudgedSuggestion:
    """What a suggestion's confidence was, and what became of it; the agent where it is known."""

    estimate: float
    outcome: Outcome
    agent: str | None
    confidence: float
    """What the caller was told, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class MendedFailure:
    """A failure and the success that mended it, by the times that callers gave them.

    A store may know times to the millisecond only.
    """

    failed_at: datetime
    mended_at: datetime
    followed_suggestion: bool
    """Whether the success followed a suggestion."""


@dataclass(frozen=True, slots=True)
class AnswerCount:
    """How often something was answered on one day (UTC).

    `kind` is any text but the empty one: it belongs to the room that counts.
    """

    day: date
    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class SuggestionOutcome:
    """What became of a suggestion; one per suggestion and execution."""

    workspace: str
    suggestion_id: str
    execution_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A registered tool of a workspace."""

    workspace: str
    tool: Tool

    @property
    def tool_key(self) -> ToolKey:
        """The tool as executions name it."""
        return ToolKey(self.workspace, self.tool.server_name, self.tool.name)


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How much a store holds, over all workspaces or in one.

    `pending` counts executions, outcomes, marks, corrections, changes of tools and promotions that
    nothing was learned from yet, documents that have no vector yet, and vectors that are to be
    removed.
    """

    executions: int
    pending: int
    tools: int
    documents: int
