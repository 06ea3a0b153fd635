"""What is known of tools, as a block for a prompt or a page of documentation."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.known_tools import KnownToolsQuery, known_tools
from service.openapi import answers
from service.routes import known_tools_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace

router = APIRouter(tags=["known tools"])

_MEDIA_TYPES: dict[str, str] = {"prompt": "text/plain", "markdown": "text/markdown"}


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
async def read_known_tools(
    query: Annotated[KnownToolsQuery, Query()], context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Signatures, how tools fare, what they refuse, common pitfalls and what to try then.

    Within `maxTokens` the most useful comes first: every tool's signature while there is room, then
    what saves the most failed calls. All that tools and users said is escaped data.
    """
    text = await known_tools(context, workspace, query)
    media_type = f"{_MEDIA_TYPES[query.format]}; charset=utf-8"
    return Response(text, headers={"content-type": media_type})
