"""Failure patterns: like failures of a tool, consolidated over their wordings."""

from pydantic import Field

from aftercall.wire.base import Name, Text, Timestamp, WireModel
from aftercall.wire.health import ToolName
from aftercall.wire.suggestion import ErrorCategory


class FailurePattern(WireModel):
    """One way in which calls of a tool fail, whatever its wording. Its id lasts over time."""

    pattern_id: Name
    tool: ToolName
    category: ErrorCategory
    signature: Text = Field(description="Its most frequent wording, variable parts masked.")
    wordings: list[Text] = Field(
        default_factory=list, description="Its most frequent wordings, most frequent first."
    )
    count: int = Field(ge=0, description="Failures.")
    mended: int = Field(default=0, ge=0, description="Of them, those that agents mended.")
    agents: list[Name] = Field(default_factory=list, description="Some of those it happened to.")
    examples: list[Name] = Field(
        default_factory=list, description="Executions, the latest last; they may have expired."
    )
    lesson: Text = Field(default="", description="What helps, in words; empty if nothing is known.")
    first_seen: Timestamp | None = None
    last_seen: Timestamp | None = None


class FailurePatternList(WireModel):
    """Answer of `GET /patterns`."""

    patterns: list[FailurePattern] = Field(description="Most failures first.")
    consolidated_at: Timestamp | None = Field(
        default=None, description="When the latest nightly run did so; None before the first."
    )
