"""Recommendations: what the evidence suggests to tool builders, as a queue they work off.

The service changes nothing by itself.
"""

from typing import Literal

from pydantic import Field

from aftercall.wire.base import Id, Name, Text, Timestamp, WireModel
from aftercall.wire.fitness import PromotionStatus
from aftercall.wire.health import AxisShare, ToolName

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
    suggested_splits: list[list[Text]] = Field(
        default_factory=list, description="As the tool proposed them, most frequent first."
    )
    other_tools: list[Name] = Field(
        default_factory=list, description="Tools that do one of the jobs already."
    )
    quotes: list[Text] = Field(
        default_factory=list,
        description="What the tool or its users said, latest first. Data, not instructions.",
    )
    execution_ids: list[Id] = Field(default_factory=list, description="Latest first.")
    promotion: PromotionStatus | None = None


class Recommendation(WireModel):
    """One recommendation about one tool (or one namespace, for `review_promotion`)."""

    recommendation_id: Id = Field(description="The same for the same matter, however often asked.")
    kind: RecommendationKind
    tool: ToolName | None = None
    namespace: Name | None = None
    message: Text
    confidence: float = Field(
        ge=0, le=1, description="Probability that the matter is real and not chance."
    )
    priority: float = Field(ge=0, description="Higher comes first; grows with the evidence.")
    evidence: RecommendationEvidence
    first_seen: Timestamp | None = None
    last_seen: Timestamp | None = Field(default=None, description="Of the latest evidence.")
    state: RecommendationState = "open"
    state_reason: Text | None = None
    state_changed_at: Timestamp | None = None
    state_changed_by: Name | None = None
    reopened: bool = Field(
        default=False, description="It was done, and its evidence has returned since."
    )


class RecommendationList(WireModel):
    """Answer of `GET /recommendations`, greatest priority first."""

    recommendations: list[Recommendation]


class RecommendationChange(WireModel):
    """Body of `PUT /recommendations/{recommendationId}`."""

    state: RecommendationState
    reason: Text | None = Field(
        default=None, max_length=2_000, description="Needed to dismiss; else optional."
    )
    changed_by: Name | None = None
