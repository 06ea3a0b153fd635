"""What is known of tools, as a block for a prompt or a page of documentation."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aftercall.models import WireModel
from aftercall.models.base import Name
from service.http import known_tools_examples as examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers
from service.known_tools import KnownToolsForm

router = APIRouter(tags=["known tools"])

_MAX_TOOLS = 100
"""Names in one question; whoever wants more leaves them out and gets all."""

_MEDIA_TYPES: dict[KnownToolsForm, str] = {"prompt": "text/plain", "markdown": "text/markdown"}


class _KnownTools(WireModel):
    tool: list[Name] = Field(
        default_factory=list,
        max_length=_MAX_TOOLS,
        description="A registered id, else a recorded toolName or serverName/toolName; repeatable. "
        "Without tool and namespace it is all tools.",
    )
    namespace: Name | None = Field(default=None, description="Also the tools that serve it.")
    max_tokens: int = Field(
        default=2_000,
        ge=50,
        le=100_000,
        description="Tokens of the answer at most, by an estimate that is an upper bound.",
    )
    format: KnownToolsForm = Field(
        default="prompt", description="A `<known_tools>` block, or Markdown for documentation."
    )


KnownToolsQuery = Annotated[_KnownTools, Query()]

_RESPONSES = answers(200, None, errors=(414, 422, 503), own={404: examples.UNKNOWN})
_RESPONSES[200] = {
    "description": "The block or the page; what did not fit is counted at its end.",
    "content": {
        "text/plain": {"schema": {"type": "string"}, "example": examples.PROMPT},
        "text/markdown": {"schema": {"type": "string"}, "example": examples.MARKDOWN},
    },
}


@router.get(
    "/known-tools",
    summary="What is known of tools, for a prompt or for documentation",
    response_class=Response,
    responses=_RESPONSES,
)
async def known_tools(
    query: KnownToolsQuery, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """Signatures, how tools fare, what they refuse, common pitfalls and what to try then.

    Within `maxTokens` the most useful comes first: every tool's signature while there is room, then
    what saves the most failed calls. All that tools and users said is escaped data.
    """
    text = await services.known_tools.tell(
        workspace,
        tools=query.tool,
        namespace=query.namespace,
        max_tokens=query.max_tokens,
        form=query.format,
    )
    media_type = f"{_MEDIA_TYPES[query.format]}; charset=utf-8"
    return Response(text, headers={"content-type": media_type})
