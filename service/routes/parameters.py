"""What routes share: the context, the caller's workspace, names in paths, queries.

Dependencies are coroutines although they await nothing: FastAPI sends plain functions to a thread
pool.
"""

import re
from dataclasses import replace
from typing import Annotated, NamedTuple

from fastapi import Depends, Path, Query, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from pydantic import Field
from starlette.convertors import Convertor, register_url_convertor

from aftercall.models import ALL_WORKSPACES, WORKSPACE_HEADER, Scope, UsageWindow, WireModel
from aftercall.models.base import Id, Name
from mongo.records import ToolKey
from service.context import Context, Lifecycle
from service.errors import NotFoundProblemError, ProblemError, UnavailableError
from service.keys import DEFAULT_WORKSPACE, Access
from service.middleware import access_of


class Space(NamedTuple):
    """Where a request is answered: the open context, and the workspace of its caller."""

    context: Context
    workspace: str


async def current_lifecycle(request: Request) -> Lifecycle:
    """Where the process is between its start and its end."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    return lifecycle


class SpaceFor(SecurityBase):
    """The space of a request whose key has a scope; the routes' annotations name it."""

    def __init__(self, scope: Scope) -> None:
        self.model = HTTPBearer(bearerFormat="ac_<id>_<secret>")
        self.scheme_name = "key"
        self._scope = scope

    async def __call__(self, request: Request) -> Space:
        """No route names the workspace itself: it is that of the key."""
        context, access = opened(request), access_of(request.scope)
        if access is None:  # it came in while the keys were not known yet
            raise UnavailableError("not_ready", "the service has just started; try again")
        check_scope(access, self._scope)
        named = request.headers.get(WORKSPACE_HEADER)
        workspace = named or DEFAULT_WORKSPACE
        if access.workspace != ALL_WORKSPACES:
            workspace = access.workspace
        if named not in (None, workspace) or not _WORKSPACE.fullmatch(workspace):
            raise NotFoundProblemError("there is no such workspace for this key")
        return Space(replace(context, caller=access), workspace)


def check_scope(access: Access, scope: Scope) -> None:
    """Refuse a key without a scope."""
    if scope not in access.scopes:
        has = ", ".join(sorted(access.scopes))
        message = f"this wants a key with the scope {scope}; yours has {has}"
        raise ProblemError(403, "outside_scope", message)


def opened(request: Request) -> Context:
    """The context, once it is open."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    if lifecycle.context is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    return lifecycle.context


_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
CurrentLifecycle = Annotated[Lifecycle, Depends(current_lifecycle)]
Recording = Annotated[Space, Security(SpaceFor("record"), scopes=["record"])]
Suggesting = Annotated[Space, Security(SpaceFor("suggest"), scopes=["suggest"])]
Reading = Annotated[Space, Security(SpaceFor("read"), scopes=["read"])]
Administering = Annotated[Space, Security(SpaceFor("admin"), scopes=["admin"])]


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
