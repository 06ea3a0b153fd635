"""What routes share: the context, the caller's workspace, parameters of paths and queries."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from aftercall.models import RankingMode, UsageWindow, WireModel
from aftercall.models.base import Id, Name
from aftercall.models.tools import Scenario
from service.context import Context, Lifecycle
from service.errors import UnavailableError

DEFAULT_WORKSPACE = "default"


async def current_workspace() -> str:
    """The workspace of the caller: one for all until there are keys; no route names it itself."""
    return DEFAULT_WORKSPACE


async def current_lifecycle(request: Request) -> Lifecycle:
    """Where the process is between its start and its end."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    return lifecycle


async def open_context(request: Request) -> Context:
    """The open services.

    Raises:
        UnavailableError: while they are being opened or closed.
    """
    lifecycle = await current_lifecycle(request)
    if lifecycle.context is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    return lifecycle.context


CurrentWorkspace = Annotated[str, Depends(current_workspace)]
CurrentLifecycle = Annotated[Lifecycle, Depends(current_lifecycle)]
CurrentContext = Annotated[Context, Depends(open_context)]


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


class _Best(WireModel):
    scenario: Scenario = Field(description="What is to be done, in words.")
    use_rag: bool = Field(
        default=True,
        description="Look for semantic matches and past failures too; else the promoted version "
        "and the original are compared by base and quality.",
    )
    mode: RankingMode = Field(default="fitness", description="How candidates are ranked.")
    limit: int = Field(default=10, ge=1, le=50, description="Candidates shown at most.")


class _Failures(WireModel):
    scenario: Scenario | None = Field(
        default=None, description="Failures in scenarios like this one come first."
    )
    limit: int = Field(default=20, ge=1, le=100)


class _History(WireModel):
    limit: int = Field(default=50, ge=1, le=500)


class _Tool(WireModel):
    use_evolved: bool = Field(
        default=False, description="The promoted version, where there is one, in its place."
    )


class _Window(WireModel):
    window: UsageWindow = Field(default="24h", description="Up to now.")


class _List(_Window):
    limit: int = Field(
        default=100, ge=1, le=500, description="Entries of each list in the answer, at most."
    )


class _Nothing(WireModel):
    pass


BestQuery = Annotated[_Best, Query()]
FailuresQuery = Annotated[_Failures, Query()]
HistoryQuery = Annotated[_History, Query()]
ToolQuery = Annotated[_Tool, Query()]
WindowQuery = Annotated[_Window, Query()]
ListQuery = Annotated[_List, Query()]
NoQuery = Annotated[_Nothing, Query()]
"""Of routes that take no parameters, so that what is meant for another route is not passed over."""


def answer(model: BaseModel, *, status: int = 200) -> Response:
    """A wire model as JSON. FastAPI would validate it again; it was valid when it was made."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")
