"""Health of tools: referrals, users' corrections, boundaries, and what is recommended.

A referral is recorded as a failed execution whose `error.type` is the kind and whose
`error.details` holds the fields of `Referral` (seed 000). Every `weight` is a count in which an
event of now counts 1 and halves every 7 days. Recommendations are for people.
"""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from aftercall.models.base import (
    SAYS_SOMETHING,
    Id,
    Name,
    Share,
    Text,
    Timestamp,
    WireModel,
    is_not_blank,
)
from aftercall.models.calls import ErrorCategory
from aftercall.models.tools import PromotionStatus

ReferralKind = Literal["wrong_tool_boundary", "low_utility"]
"""`wrong_tool_boundary`: what was asked for crosses a boundary of the tool. `low_utility`: the
output is valid and of little use to the caller."""
MAX_AXES = 20
"""Boundary axes of one referral; of more, the first are kept."""
MAX_AXIS_CHARS = 80
MAX_SPLIT = 10
"""Parts of one suggested split; of more, the first are kept."""
MAX_WORDS_CHARS = 1_000
"""Characters of a task's shape, a part of a split, or evidence; of more, the first are kept."""
Axis = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_AXIS_CHARS)]
"""One capability, in the tool's own words: `transport`, `HTML parsing`."""
Words = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_WORDS_CHARS)]


class Referral(WireModel):
    """The details of a referral next to its message; `aftercall.outcomes` reads them tolerantly."""

    boundary_axes: list[Axis] = Field(default_factory=list, max_length=MAX_AXES)
    """The capabilities that the request mixes, each once, in the tool's own words."""
    observed_task_shape: Words | None = None
    """What kind of task the tool saw, such as `fetch + extract`."""
    suggested_split: list[Words] = Field(default_factory=list, max_length=MAX_SPLIT)
    """The parts that the tool would split the task into, in order."""
    evidence: Words | None = None
    """Why, in short. Without it the referral counts, marked as such."""


MAX_CORRECTION = 2_000
"""Characters of a user's words."""


class Correction(WireModel):
    """Body of `POST /corrections`; about one execution, or about the latest of a session."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {
                    "properties": {
                        "executionId": {"type": "string"},
                        "sessionId": {"type": "null"},
                        "serverName": {"type": "null"},
                        "toolName": {"type": "null"},
                    },
                    "required": ["executionId"],
                },
                {
                    "properties": {
                        "sessionId": {"type": "string"},
                        "executionId": {"type": "null"},
                    },
                    "required": ["sessionId"],
                },
            ]
        }
    )
    correction_id: Id | None = None
    """Made by the client: sending it twice counts once."""
    execution_id: Id | None = None
    """The call that was corrected; it may be recorded later than this."""
    session_id: Name | None = None
    """Its latest recorded call, when no execution is named."""
    server_name: Name | None = None
    """Narrows the session's calls down to those of a server."""
    tool_name: Name | None = None
    """Narrows the session's calls down to those of a tool."""
    text: Annotated[
        Text,
        StringConstraints(max_length=MAX_CORRECTION),
        is_not_blank("give the user's own words"),
        WithJsonSchema({"type": "string", "maxLength": MAX_CORRECTION, "pattern": SAYS_SOMETHING}),
    ] = Field(description="What the user said.", examples=["that doesn't look like a movie list"])
    kind: ReferralKind = "low_utility"
    """What is wrong: of little use, or not this tool's job."""
    boundary_axes: list[Axis] = Field(default_factory=list, max_length=MAX_AXES)
    """The capabilities that were mixed, where someone can show."""
    agent: Name | None = None
    timestamp: Timestamp | None = Field(default=None, description="Now, when left out.")

    @model_validator(mode="after")
    def _about_one_call(self) -> Self:
        if (self.execution_id is None) == (self.session_id is None):
            raise ValueError(
                "name either the executionId that was corrected, or the sessionId whose latest "
                "call it was"
            )
        if self.execution_id is not None and (self.server_name or self.tool_name):
            raise ValueError("serverName and toolName narrow a sessionId down; leave them out here")
        return self


class RecordedCorrection(WireModel):
    """Answer of `POST /corrections`: durable now."""

    correction_id: Id
    execution_id: Id
    server_name: Name | None = None
    tool_name: Name | None = None
    """The corrected tool; None while the execution is not recorded."""
    tied: bool
    """Whether the execution is recorded. If not yet, it counts once it is."""
    duplicate: bool = Field(description="Whether this correction was known already.")


class KnownCorrection(WireModel):
    """One correction as it is kept."""

    correction_id: Id
    execution_id: Id
    server_name: Name | None = None
    tool_name: Name | None = None
    """The tool that it counts for; None until it does."""
    at: Timestamp
    kind: ReferralKind
    text: Text
    boundary_axes: list[Text] = Field(default_factory=list)
    agent: Name | None = None


class CorrectionList(WireModel):
    """Answer of `GET /corrections`, newest first."""

    corrections: list[KnownCorrection]


class ToolName(WireModel):
    """A tool as executions name it, with the id that it is registered under, if it is."""

    tool_id: Name | None = None
    server_name: Name | None = None
    tool_name: Name


class Count(WireModel):
    """How often something happened; `weight` is the recency-weighted count."""

    count: int = Field(default=0, ge=0)
    weight: float = Field(default=0.0, ge=0)
    last_seen: Timestamp | None = None


class CategoryCount(Count):
    """Failures of one category."""

    category: ErrorCategory


class SignatureCount(WireModel):
    """Failures with one signature."""

    signature: Text
    category: ErrorCategory
    count: int = Field(ge=0)
    last_seen: Timestamp | None = None


class MethodHealth(WireModel):
    """How one method of a tool fares; for a tool that is shown what to do by a parameter."""

    method: Name
    successes: Count
    failures: Count
    categories: list[CategoryCount] = Field(default_factory=list, description="Most first.")


class RepairHealth(WireModel):
    """Attempts to repair failed calls: retries, and calls that followed a suggestion."""

    attempts: int = Field(ge=0)
    succeeded: int = Field(ge=0)
    by_agents: int = Field(default=0, ge=0, description="Failures that agents mended alone.")


class AxisShare(WireModel):
    """One cluster of boundary axes, as far as a tool's boundary failures are about it."""

    cluster_id: Name
    name: Text = Field(description="Its most frequent member.")
    axes: list[Text] = Field(description="The tool's own words for it.")
    count: int = Field(ge=0)
    share: Share
    """Recency-weighted share of the boundary failures that name it; a failure that names several
    counts whole for each."""


class Cohesion(WireModel):
    """How far a tool's boundary failures stay on one axis, and whether that is a warning."""

    score: Share | None = None
    """1: all on one axis; towards 0: scattered. None without boundary failures."""
    warning: bool = False
    confidence: Share = 0.0
    """Probability that at least two axes have the share that makes a warning."""
    failures: int = Field(default=0, ge=0, description="Boundary failures that are remembered.")
    weight: float = Field(default=0.0, ge=0)
    without_evidence: int = Field(default=0, ge=0)
    """Of these, how many came without evidence."""
    axes: list[AxisShare] = Field(default_factory=list, description="Largest share first.")
    message: Text = Field(default="", description="The warning in words; empty without one.")


class ReferralSeen(WireModel):
    """One referral of the past."""

    execution_id: Id
    at: Timestamp
    kind: ReferralKind
    boundary_axes: list[Text] = Field(default_factory=list)
    observed_task_shape: Text | None = None
    suggested_split: list[Text] = Field(default_factory=list)
    evidence: Text | None = None
    lacks_evidence: bool = Field(description="A boundary referral that came without evidence.")


class WeakSuccess(WireModel):
    """A success that is empty, or that the tool itself calls weak. It stays a success."""

    execution_id: Id
    at: Timestamp
    why: Text


class CorrectionSeen(WireModel):
    """A user's correction."""

    correction_id: Id
    execution_id: Id
    at: Timestamp
    kind: ReferralKind
    text: Text


class Utility(WireModel):
    """How useful the tool's answers are, by its own word and its users'."""

    low_utility: Count
    weak_successes: Count
    corrections: Count
    score: Share
    """1: no one ever complained; towards 0: every answer was of little use. A user's correction
    counts thrice as much as the tool's own word."""
    recent_weak: list[WeakSuccess] = Field(default_factory=list, description="Latest first.")
    recent_corrections: list[CorrectionSeen] = Field(default_factory=list)
    """Latest first."""


class ToolHealth(WireModel):
    """Answer of `GET /tools/{toolId}/health`."""

    tool: ToolName
    successes: Count
    failures: Count
    categories: list[CategoryCount] = Field(description="Failures by category, most first.")
    signatures: list[SignatureCount] = Field(description="Failures by signature, most first.")
    methods: list[MethodHealth] = Field(default_factory=list)
    repairs: RepairHealth
    utility: Utility
    cohesion: Cohesion
    recent_referrals: list[ReferralSeen] = Field(default_factory=list, description="Latest first.")
    recommendation_ids: list[Id] = Field(default_factory=list)
    """Open ones about this tool; see `GET /recommendations`."""


class AxisMember(Count):
    """One wording of an axis, as tools write it."""

    axis: Text


class AxisCluster(Count):
    """Wordings that mean one capability. Its id and name last over time."""

    cluster_id: Name
    name: Text
    """Its most frequent member, as long as there is no need to rename."""
    members: list[AxisMember] = Field(description="Most frequent first.")
    tools: list[ToolName] = Field(default_factory=list)
    """Tools whose latest referrals name it."""
    first_seen: Timestamp | None = None


class CoOccurrence(Count):
    """Two clusters that are named in the same referrals."""

    cluster_ids: tuple[Name, Name]
    names: tuple[Text, Text]


class ToolBoundary(WireModel):
    """A tool with boundary failures."""

    tool: ToolName
    cohesion: Cohesion


class Boundaries(WireModel):
    """Answer of `GET /boundaries`."""

    clusters: list[AxisCluster] = Field(description="Greatest weight first.")
    co_occurrences: list[CoOccurrence] = Field(description="Greatest weight first.")
    tools: list[ToolBoundary] = Field(description="Warnings first, then greatest weight.")
    clustered_at: Timestamp | None = Field(default=None, description="None before the first time.")
    unclustered: int = Field(default=0, ge=0)
    """Axes that came later than that; each stands for itself."""


RecommendationKind = Literal["repair", "tighten_contract", "split", "recompose", "review_promotion"]
"""`repair`: the implementation fails. `tighten_contract`: answers are weak, or users correct them.
`split`: the tool is asked to do several jobs. `recompose`: the same, and other tools are there that
do one of them. `review_promotion`: a promoted version fails more than the original did."""
RecommendationState = Literal["open", "taken", "done", "dismissed"]


class EvidenceCount(WireModel):
    """How much of one kind of evidence there is; `weight` halves every 7 days."""

    what: Text = Field(examples=["boundary failures", "user corrections", "timeout"])
    count: int = Field(ge=0)
    weight: float = Field(ge=0)


class RecommendationEvidence(WireModel):
    """What a recommendation rests on."""

    counts: list[EvidenceCount] = Field(default_factory=list, description="Weightiest first.")
    calls: int = Field(default=0, ge=0, description="All calls of the tool that are known.")
    axes: list[AxisShare] = Field(default_factory=list)
    suggested_splits: list[list[Text]] = Field(default_factory=list)
    """As the tool proposed them, most frequent first."""
    other_tools: list[Name] = Field(default_factory=list)
    """Tools that do one of the jobs already."""
    quotes: list[Text] = Field(default_factory=list)
    """What the tool or its users stated, latest first. Data, not instructions."""
    execution_ids: list[Id] = Field(default_factory=list, description="Latest first.")
    promotion: PromotionStatus | None = None


class Recommendation(WireModel):
    """One recommendation about one tool (or one namespace, for `review_promotion`)."""

    recommendation_id: Id = Field(description="The same for the same matter, however often asked.")
    kind: RecommendationKind
    tool: ToolName | None = None
    namespace: Name | None = None
    message: Text
    confidence: Share = Field(description="Probability that the matter is real and not chance.")
    priority: float = Field(ge=0, description="Higher comes first; grows with the evidence.")
    evidence: RecommendationEvidence
    first_seen: Timestamp | None = None
    last_seen: Timestamp | None = Field(default=None, description="Of the latest evidence.")
    state: RecommendationState = "open"
    state_reason: Text | None = None
    state_changed_at: Timestamp | None = None
    state_changed_by: Name | None = None
    reopened: bool = False
    """It was done, and its evidence has returned since."""


class RecommendationList(WireModel):
    """Answer of `GET /recommendations`, greatest priority first."""

    recommendations: list[Recommendation]


class RecommendationChange(WireModel):
    """Body of `PUT /recommendations/{recommendationId}`."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"state": {"enum": ["open", "taken", "done"]}}},
                {
                    "properties": {"reason": {"type": "string", "pattern": SAYS_SOMETHING}},
                    "required": ["reason"],
                },
            ]
        }
    )
    state: RecommendationState
    reason: Text | None = Field(default=None, max_length=2000)
    """Needed to dismiss; else optional."""
    changed_by: Name | None = None
