"""The kinds of rows in a knowledge store: their names, their keys, and what they decode to.

Rows of one kind are written by one place: ingest writes what it learns from the log, the nightly
job what it consolidates. Answers read them through `retrieval.memory`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

from aftercall.models import Outcome
from mongo.contents import CorrectionRecord
from mongo.records import Row, ToolKey, decoded
from retrieval.fitness.statistics import ToolTrials
from retrieval.health.record import AxisBook, KnownHealth
from retrieval.knowledge.documents import Document
from retrieval.knowledge.rules import ToolKnowledge

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowKind(Generic[T]):
    """A kind of rows."""

    name: str
    type: type[T]

    def decode(self, row: Row) -> T:
        """What a row says."""
        return decoded(self.type, row.data)


class Registered(BaseModel):
    """Tools that are registered under one name, by id, the latest put last."""

    schema_hashes: dict[str, str | None] = Field(default_factory=dict)

    @property
    def schema_hash(self) -> str | None:
        """Of the tool that executions of this name mean."""
        return next(reversed(self.schema_hashes.values()), None)


class CallNotes(BaseModel):
    """What somebody said of one call, in a mark or a correction."""

    counted: dict[str, tuple[str, Outcome]] = Field(default_factory=dict)
    """As what it counts for a tool (by `tool_row`): the version, and the outcome."""
    waiting: list[CorrectionRecord] = Field(default_factory=list)
    """Corrections that came before it."""


class MendedFailure(BaseModel):
    """A failure and the success that mended it, by the times that callers gave them."""

    failed_id: str
    mended_id: str
    failed_at: datetime
    mended_at: datetime
    signature: str
    edit_key: str = ""
    followed_suggestion: bool = False
    """Whether the success followed a suggestion, and so teaches by its outcome."""


class JudgedSuggestion(BaseModel):
    """What a suggestion's confidence was, and what became of it; the agent where it is known."""

    outcome: Outcome
    confidence: float
    """What the caller was told, in [0, 1]."""
    estimate: float | None = None
    """As `mongo.contents.IssuedSuggestion.estimate`."""
    agent: str | None = None


class Followed(BaseModel):
    """A call that says that it followed a suggestion, recorded before the suggestion was."""

    execution_id: str
    outcome: Outcome
    agent: str
    worked_at: datetime
    failed_id: str | None = None
    failed_at: datetime | None = None
    """Of the failure that it repairs, where that is known."""


class FollowedCalls(BaseModel):
    """All such calls of one suggestion."""

    calls: list[Followed] = Field(default_factory=list)


class Names(BaseModel):
    """Names that are told apart; of further ones the calls are counted together."""

    names: list[str] = Field(default_factory=list)


KNOWLEDGE = RowKind("knowledge", ToolKnowledge)
"""Of a tool; the workspace's own, under `retrieval.recovery.workspace_wide`."""
STATISTICS = RowKind("statistics", ToolTrials)
HEALTH = RowKind("health", KnownHealth)
USED = RowKind("used", dict[str, Any])
"""Tools that were called, ranked by the latest use, in milliseconds. Empty, as the next one: names
are asked for without what is known of them."""
TROUBLE = RowKind("trouble", dict[str, Any])
"""Tools that have trouble, ranked by the latest."""
AXES = RowKind("axes", AxisBook)
"""All boundary axes of the workspace, under the key ''."""
DOCUMENT = RowKind("document", Document)
VECTOR = RowKind("vector", dict[str, Any])
"""Documents (by id) whose vector is to be made; to be removed, when the row has any data. Ranked by
the position that asks for it."""
REPAIR = RowKind("repair", MendedFailure)
"""Ranked by position."""
JUDGED = RowKind("judged", JudgedSuggestion)
"""By the id of the outcome's event, ranked by position."""
REGISTERED = RowKind("registered", Registered)
"""Of the name of a tool."""
CALL = RowKind("call", CallNotes)
"""By execution id."""
FOLLOWED = RowKind("followed", FollowedCalls)
"""By the id of a suggestion that is not known yet."""
AGENTS = RowKind("agents", Names)
"""Agents that counters tell apart, under the key ''."""
SIGNATURES = RowKind("signatures", Names)
"""Signatures of a tool that counters tell apart."""
SKIPPED = RowKind("skipped", dict[str, Any])
"""Events that nothing could be learned from, by position."""

PATTERN = "pattern"
"""Made by the nightly job, by id, ranked by failures and then the latest."""
CALIBRATION, CLASSIFIER, AXIS_CLUSTERS, CONSOLIDATED = (
    "calibration", "classifier", "axis_clusters", "consolidated",
)  # fmt: skip
"""Results of the nightly job for the workspace, each one row under the key ''."""
NIGHTLY = (PATTERN, CALIBRATION, CLASSIFIER, AXIS_CLUSTERS, CONSOLIDATED)


def tool_row(tool: ToolKey) -> str:
    """The key of a tool's row."""
    return f"{tool.server_name or ''}\x1f{tool.tool_name}"


def tool_of_row(workspace: str, key: str) -> ToolKey:
    """The reverse of `tool_row`."""
    server, _, name = key.partition("\x1f")
    return ToolKey(workspace, server or None, name)
