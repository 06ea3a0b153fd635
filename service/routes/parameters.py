"""What routes share: the context, the caller's workspace, names in paths, queries.

Dependencies are coroutines although they await nothing: FastAPI sends plain functions to a thread
pool.
"""

from typing import Annotated, NamedTuple

from fastapi import Depends, Path, Query, Request
from pydantic import Field
from starlette.convertors import Convertor, register_url_convertor

from aftercall.models import UsageWindow, WireModel
from aftercall.models.base import Id, Name
from mongo.records import ToolKey
from service.context import Context, Lifecycle
from service.errors import NotFoundProblemError, UnavailableError

DEFAULT_WORKSPACE = "default"


class Space(NamedTuple):
    """Where a request is answered: the open context, and the workspace of its caller."""

    context: Context
    workspace: str


async def current_lifecycle(request: Request) -> Lifecycle:
    """Where the process is between its start and its end."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    return lifecycle


async def current_space(request: Request) -> Space:
    """The workspace is one for all until there are keys; no route names it itself."""
    lifecycle = await current_lifecycle(request)
    if lifecycle.context is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    return Space(lifecycle.context, DEFAULT_WORKSPACE)


CurrentLifecycle = Annotated[Lifecycle, Depends(current_lifecycle)]
CurrentSpace = Annotated[Space, Depends(current_space)]


class _NameInPath(Convertor[str]):
    """`:name` in a path: any text; a client percent-encodes a slash, and the server decodes it."""

    regex = "(?s:.+)"  # with line breaks, before which `.` would stop

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _ToolInPath(_NameInPath):
    """`:tool` in a path: not what the contract puts behind a tool's id."""

    regex = "(?!(?s:.+)/(?:failures|health)$)(?s:.+)"


register_url_convertor("name", _NameInPath())
register_url_convertor("tool", _ToolInPath())
ExecutionId = Annotated[Id, Path(alias="executionId", description="A UUID.")]

SuggestionId = Annotated[
    Id, Path(alias="suggestionId", description="A UUID, from `POST /suggest`.")
]

ToolId = Annotated[
    Name,
    Path(
        alias="toolId",
        description="Chosen by the one that registers the tool; may hold slashes.",
        json_schema_extra={"not": {"pattern": "./(failures|health)$"}},
    ),
]

Namespace = Annotated[
    Name,
    Path(description="A capability that tools serve; may hold slashes."),
]


class Window(WireModel):
    """Of which time."""

    window: UsageWindow = Field(default="24h", description="Up to now.")


class _List(Window):
    limit: int = Field(
        default=100, ge=1, le=500, description="Entries of each list in the answer, at most."
    )


class _Nothing(WireModel):
    pass


NoQuery = Annotated[_Nothing, Query()]
"""Of routes that take no parameters, so that what is meant for another route is not passed over."""
WindowQuery = Annotated[Window, Query()]
ListQuery = Annotated[_List, Query()]


class ToolFilter(WireModel):
    """A tool as calls name it, in a query."""

    tool_name: Name | None = Field(
        default=None, description="Only what is about the tool that calls name so."
    )
    server_name: Name | None = Field(
        default=None, description="Its server; left out, the tool without one is meant."
    )

    def tool(self, workspace: str) -> ToolKey | None:
        """The tool that is meant; None for all."""
        if self.tool_name is not None:
            return ToolKey(workspace, self.server_name, self.tool_name)
        if self.server_name is not None:
            raise NotFoundProblemError("serverName needs toolName; a server alone is no tool")
        return None
