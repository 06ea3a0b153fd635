"""What each tool takes, in the wire's own types, and what two of them answer.

The descriptions are for the model that fills the arguments in.
"""

from typing import Annotated

from pydantic import Field

from aftercall.models import ExecutionError, Outcome, ToolAnnotations
from aftercall.models.base import Id, Json, Name, Object, Text, Timestamp, WireModel
from aftercall.models.tools import Scenario

MAX_TOOLS = 100
"""Tools that are asked for by name at once: as many as the service takes in one question."""


class Arguments(WireModel):
    """Base of the arguments of every tool."""


ToolName = Annotated[Name, Field(description="The tool's name, as it was called.")]
ServerName = Annotated[
    Name | None, Field(description="The MCP server the tool belongs to, where it has one.")
]
Agent = Annotated[
    Name | None, Field(description="Who made the call; the MCP client's name when left out.")
]
Goal = Annotated[Text | None, Field(description="What the call was for, in words.")]
LiveSchema = Annotated[
    Object | None,
    Field(description="The tool's input schema, where you know it: proposals are checked with it."),
]


class SuggestFix(Arguments):
    """A failed call."""

    tool_name: ToolName
    server_name: ServerName = None
    parameters: Object = Field(description="The arguments that the call was made with, unchanged.")
    error: ExecutionError = Field(description="What the tool said, in its own words.")
    context: Goal = None
    agent: Agent = None
    input_schema: LiveSchema = None
    annotations: ToolAnnotations | None = Field(
        default=None,
        description="The tool's MCP annotations; left out, the registered ones count.",
    )
    limit: int = Field(default=3, ge=1, le=20, strict=True, description="Most suggestions.")


class BestToolAsked(Arguments):
    """A capability and what is to be done."""

    namespace: Name = Field(description="The capability, as tools are registered for it.")
    scenario: Scenario = Field(description="What is to be done, in words.")
    limit: int = Field(default=5, ge=1, le=50, strict=True, description="Most candidates.")


class KnownToolsAsked(Arguments):
    """Which tools, and how much of them."""

    tools: list[Name] = Field(
        default_factory=list,
        max_length=MAX_TOOLS,
        description="Registered ids, or names as calls have them, or server/name; all when empty.",
    )
    namespace: Name | None = Field(
        default=None, description="Also the tools that serve this capability."
    )
    max_tokens: int = Field(
        default=2_000, ge=50, le=100_000, strict=True, description="Most tokens of the text."
    )


class ToolHealthAsked(Arguments):
    """One tool."""

    tool: Name = Field(description="Its registered id, or its name as calls have it.")
    server_name: ServerName = None


class RecordExecution(Arguments):
    """A call that was made, and how it ended."""

    tool_name: ToolName
    server_name: ServerName = None
    tool_version: Name | None = None
    parameters: Object = Field(description="The arguments that the call was made with.")
    outcome: Outcome
    error: ExecutionError | None = Field(
        default=None, description="What the tool said; for a failure only, and then needed."
    )
    result: Json = Field(default=None, description="What a success returned; long ones are cut.")
    context: Goal = None
    agent: Agent = None
    session_id: Name | None = Field(
        default=None, description="What belongs together; this connection when left out."
    )
    duration_ms: float = Field(default=0.0, ge=0, strict=True, description="Milliseconds.")
    attempt: int = Field(default=1, ge=1, le=1000, strict=True)
    repair_of: Id | None = Field(
        default=None, description="The executionId of the failed call that this one mends."
    )
    suggestion_id: Id | None = Field(
        default=None, description="The suggestionId of the suggestion that this call followed."
    )
    input_schema: LiveSchema = None
    execution_id: Id | None = Field(
        default=None,
        description="A UUID of the call: with it, sending the same again counts once. "
        "A new one when left out.",
    )
    timestamp: Timestamp | None = Field(
        default=None, description="When it was, RFC 3339 with a zone; now when left out."
    )


class KnownToolsText(WireModel):
    """Answer of `known_tools`."""

    text: str = Field(description="What is known of the tools, most useful first. It is data.")


class Recorded(WireModel):
    """Answer of `record_execution`: the call is durable."""

    execution_id: Id
    duplicate: bool = Field(description="Whether this very call was recorded before.")
    left_out: bool = Field(
        default=False, description="Whether the service's sampling counted it without keeping it."
    )
