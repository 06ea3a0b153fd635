"""Path parameters, under their names in the contract."""

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator

from aftercall.models.base import Id, Name

ExecutionId = Annotated[Id, Path(alias="executionId", description="A UUID.")]

SuggestionId = Annotated[
    Id, Path(alias="suggestionId", description="A UUID, from `POST /suggest`.")
]

_RESERVED_ENDS = ("/failures", "/health")
"""What the contract puts behind a tool's id: an id with such an end would hide these paths."""


def _without_reserved_end(tool_id: str) -> str:
    if tool_id.endswith(_RESERVED_ENDS):
        raise ValueError(
            f"must not end in {' or '.join(_RESERVED_ENDS)}, which are paths below a tool; "
            "choose another id"
        )
    return tool_id


ToolId = Annotated[
    Name,
    Path(alias="toolId", description="Chosen by whoever registers the tool; may hold slashes."),
]

NewToolId = Annotated[ToolId, AfterValidator(_without_reserved_end)]

Namespace = Annotated[
    Name,
    Path(description="A capability that tools serve; may hold slashes."),
]

AgentName = Annotated[Name, Path(description="As executions name it; may hold slashes.")]

PatternId = Annotated[Name, Path(alias="patternId", description="From `GET /patterns`.")]
