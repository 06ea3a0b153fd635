"""Tools: what a gateway registers so that proposals can be verified."""

from pydantic import Field

from aftercall.wire.base import Json, Name, Object, Text, Timestamp, WireModel
from aftercall.wire.suggestion import ToolAnnotations


class ToolSpec(WireModel):
    """Body of `PUT /tools/{toolId}`."""

    namespace: Name | None = Field(default=None, description="The capability the tool serves.")
    name: Name = Field(examples=["git_log"])
    server_name: Name | None = Field(default=None, examples=["git"])
    version: Name | None = None
    description: Text = ""
    input_schema: Object | None = None
    annotations: ToolAnnotations = Field(default_factory=ToolAnnotations)
    tags: list[Name] = Field(default_factory=list, max_length=100)
    negative_tags: list[Name] = Field(
        default_factory=list,
        max_length=100,
        description="What it is not to be offered for, such as `not-for-code-blocks`.",
    )
    implementation: Json = None
    evolved_from: Name | None = Field(
        default=None, description="The id of the tool that this one is a newer version of."
    )


class Tool(ToolSpec):
    """A registered tool."""

    tool_id: Name
    schema_hash: str | None = Field(
        default=None, description="SHA-256 of the canonical input schema."
    )
    updated_at: Timestamp
    is_evolved: bool = Field(
        default=False, description="A promoted version, which stands in for the tool as registered."
    )


class ToolList(WireModel):
    """Answer of `GET /tools`."""

    tools: list[Tool]
