"""What is known of tools, as a block for a prompt or a page of documentation."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from service.known_tools import KnownToolsQuery, known_tools
from service.requests import Suggesting

router = APIRouter(tags=["known tools"])
_MEDIA_TYPES = {"prompt": "text/plain", "markdown": "text/markdown"}


@router.get(
    "/known-tools",
    summary="What is known of tools, for a prompt or for documentation",
    response_class=Response,
)
async def read_known_tools(
    query: Annotated[KnownToolsQuery, Query()], space: Suggesting
) -> Response:
    """Signatures, how tools fare, what they refuse, common pitfalls and what to try then.

    Within `maxTokens` the most useful comes first: every tool's signature while there is room, then
    what saves the most failed calls. All that tools and users said is escaped data.
    """
    text = await known_tools(*space, query)
    return Response(text, headers={"content-type": f"{_MEDIA_TYPES[query.format]}; charset=utf-8"})
