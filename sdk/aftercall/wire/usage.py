"""Usage: how often tools were called within a window of time, by whom, and how that went."""

from typing import Literal

from pydantic import Field

from aftercall.wire.base import Name, Timestamp, WireModel
from aftercall.wire.health import ToolName
from aftercall.wire.suggestion import ErrorCategory

UsageWindow = Literal["24h", "7d", "30d"]
"""Up to now; see `aftercall.wire.statistics` for where each begins."""


class CallCounts(WireModel):
    """Calls and how they went; a success counts for those that sampling left out beside it."""

    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class DurationQuantiles(WireModel):
    """How long calls took, in milliseconds, within 5 % of themselves; of those that say so."""

    p50: float = Field(ge=0)
    p95: float = Field(ge=0)
    p99: float = Field(ge=0)


class CallUsage(CallCounts):
    """Calls with what was done about failures and how long they took."""

    retries: CallCounts = Field(
        default_factory=CallCounts, description="Second and later attempts."
    )
    suggested: CallCounts = Field(
        default_factory=CallCounts, description="Calls that followed a suggestion."
    )
    duration_ms: DurationQuantiles | None = Field(
        default=None, description="None where no call says how long it took."
    )


class ToolUsage(CallUsage):
    """Calls of one tool."""

    tool: ToolName


class AgentUsage(CallCounts):
    """Calls by one agent."""

    agent: Name


class CategoryUsage(WireModel):
    """Failures of one kind."""

    category: ErrorCategory
    failures: int = Field(ge=0)


class Usage(WireModel):
    """Answer of `GET /stats/usage`: a window up to now."""

    window: UsageWindow
    computed_at: Timestamp | None = Field(default=None, description="As `until`.")
    since: Timestamp | None = Field(
        default=None, description="The beginning of an hour for 24h, else of a day (UTC)."
    )
    until: Timestamp | None = None
    is_complete: bool = Field(
        default=True, description="False while what arrived lately is still being counted."
    )
    totals: CallUsage = Field(default_factory=CallUsage)
    by_tool: list[ToolUsage] = Field(default_factory=list, description="Most calls first.")
    by_agent: list[AgentUsage] = Field(default_factory=list, description="Most calls first.")
    by_category: list[CategoryUsage] = Field(
        default_factory=list, description="Most failures first."
    )
    other_tools: CallCounts = Field(
        default_factory=CallCounts, description="Calls of tools beyond those of the list."
    )
    other_agents: CallCounts = Field(
        default_factory=CallCounts, description="Calls by agents beyond those of the list."
    )
