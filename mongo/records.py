"""What a log store keeps: plain records, each with its workspace.

What the rooms above learn (`knowledge`, `documents`, `repairs`) is opaque here: bytes under a key.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from aftercall.json_values import JsonObject
from aftercall.wire import Execution, Outcome, Suggestion, Tool


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


@dataclass(frozen=True, slots=True)
class StoredExecution:
    """An execution as the store has it. `position` grows with arrival and is unique."""

    position: int
    workspace: str
    execution: Execution
    schema_hash: str | None
    received_at: datetime

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

    A commit that says `is_new` queues it for its vector (`LogStore.pending_vectors`).
    """

    workspace: str
    document_id: str
    data: bytes
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class RepairRow:
    """A failed execution and the success that mended it; unique by the pair."""

    tool: ToolKey
    failed_id: str
    mended_id: str
    signature: str
    data: bytes


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """What one indexing batch learned; applied whole or not at all.

    `positions` and `outcomes` are marked as learned from in the same transaction, so that a crash
    at any point neither loses nor doubles a count.
    """

    positions: list[int]
    knowledge: list[KnowledgeRow] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    repairs: list[RepairRow] = field(default_factory=list)
    outcomes: "list[SuggestionOutcome]" = field(default_factory=list)


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

    `pending` counts executions and outcomes that nothing was learned from yet, and documents that
    have no vector yet.
    """

    executions: int
    pending: int
    tools: int
    documents: int
