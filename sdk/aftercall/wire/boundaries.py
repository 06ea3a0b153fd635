"""Boundary axes over all tools: what they are called, which belong together, which co-occur."""

from pydantic import Field

from aftercall.wire.base import Name, Text, Timestamp, WireModel
from aftercall.wire.health import Cohesion, Count, ToolName


class AxisMember(Count):
    """One wording of an axis, as tools write it."""

    axis: Text


class AxisCluster(Count):
    """Wordings that mean one capability. Its id and name last over time."""

    cluster_id: Name
    name: Text = Field(
        description="Its most frequent member, as long as there is no need to rename."
    )
    members: list[AxisMember] = Field(description="Most frequent first.")
    tools: list[ToolName] = Field(
        default_factory=list, description="Tools whose latest referrals name it."
    )
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
    unclustered: int = Field(
        default=0, ge=0, description="Axes that came later than that; each stands for itself."
    )
