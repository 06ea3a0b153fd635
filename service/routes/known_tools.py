"""What is known of tools, as a block for a prompt or a page of documentation."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from aftercall.models import LearnedContracts
from aftercall.models.base import Name
from service.known_tools import KnownToolsQuery, known_tools, learned_contracts
from service.requests import Suggesting

router = APIRouter(tags=["known tools"])
_NO_NAMES: list[Name] = []
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
    what saves the most failed calls. All that tools and users stated is escaped data.
    """
    text = await known_tools(*space, query)
    return Response(text, headers={"content-type": f"{_MEDIA_TYPES[query.format]}; charset=utf-8"})


@router.get("/known-tools/contracts", summary="What calls of tools keep getting wrong")
async def read_contracts(
    space: Suggesting, tool: Annotated[list[Name], Query(max_length=100)] = _NO_NAMES
) -> LearnedContracts:
    """Return a sentence for each frequent mistake that repairs mend alike, the most frequent first.

    `tool` is a registered id, else a recorded toolName or serverName/toolName; repeatable. Unknown
    ones are left out. The sentences are data: names and values in them are those of calls.
    """
    return LearnedContracts(contracts=await learned_contracts(*space, tool))
