"""Path parameters, under their names in the contract."""

from typing import Annotated

from fastapi import Path

from aftercall.wire.base import Id, Name

ExecutionId = Annotated[Id, Path(alias="executionId", description="A UUID.")]

SuggestionId = Annotated[
    Id, Path(alias="suggestionId", description="A UUID, from `POST /suggest`.")
]

ToolId = Annotated[
    Name,
    Path(alias="toolId", description="Chosen by whoever registers the tool; may hold slashes."),
]
