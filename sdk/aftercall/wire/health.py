"""Health: how a tool fares, what it refers elsewhere, and how far its failures stay on one axis.

Every `weight` is a count in which an event of now counts 1 and halves every 7 days.
"""

from pydantic import Field

from aftercall.wire.base import Id, Name, Text, Timestamp, WireModel
from aftercall.wire.referral import ReferralKind
from aftercall.wire.suggestion import ErrorCategory


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
    """How one method of a tool fares; for a tool that is told what to do by a parameter."""

    method: Name
    successes: Count
    failures: Count
    categories: list[CategoryCount] = Field(default_factory=list, description="Most first.")


class RepairHealth(WireModel):
    """Attempts to repair failed calls: retries, and calls that followed a suggestion."""

    attempts: int = Field(ge=0)
    succeeded: int = Field(ge=0)


class AxisShare(WireModel):
    """One cluster of boundary axes, as far as a tool's boundary failures are about it."""

    cluster_id: Name
    name: Text = Field(description="Its most frequent member.")
    axes: list[Text] = Field(description="The tool's own words for it.")
    count: int = Field(ge=0)
    share: float = Field(
        ge=0,
        le=1,
        description="Recency-weighted share of the boundary failures that name it; a failure that "
        "names several counts whole for each.",
    )


class Cohesion(WireModel):
    """How far a tool's boundary failures stay on one axis, and whether that is a warning."""

    score: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="1: all on one axis; towards 0: scattered. None without boundary failures.",
    )
    warning: bool = False
    confidence: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability that at least two axes have the share that makes a warning.",
    )
    failures: int = Field(default=0, ge=0, description="Boundary failures that are remembered.")
    weight: float = Field(default=0.0, ge=0)
    without_evidence: int = Field(
        default=0, ge=0, description="Of these, how many came without evidence."
    )
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
    score: float = Field(
        ge=0,
        le=1,
        description="1: nobody ever complained; towards 0: every answer was of little use. A "
        "user's correction counts thrice as much as the tool's own word.",
    )
    recent_weak: list[WeakSuccess] = Field(default_factory=list, description="Latest first.")
    recent_corrections: list[CorrectionSeen] = Field(
        default_factory=list, description="Latest first."
    )


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
    recommendation_ids: list[Id] = Field(
        default_factory=list, description="Open ones about this tool; see `GET /recommendations`."
    )
