"""Failure patterns: like failures of a tool as one, as the latest nightly run consolidated them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aftercall.models import ErrorCategory, FailurePatternList, WireModel
from aftercall.models.base import Name
from service.http import nightly_examples as examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers
from service.http.responses import answer
from service.patterns import failure_patterns

router = APIRouter(tags=["statistics"])


class _Asked(WireModel):
    tool_name: Name | None = Field(
        default=None, description="Only those of the tool that calls name so."
    )
    server_name: Name | None = Field(default=None, description="Its server, if it is meant.")
    category: ErrorCategory | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)


PatternsQuery = Annotated[_Asked, Query()]


@router.get(
    "/patterns",
    summary="Ways in which tools fail, with what helps",
    response_model=FailurePatternList,
    responses=answers(200, examples.PATTERNS, errors=(422, 503)),
)
async def patterns(
    query: PatternsQuery, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """Most failures first; made by the nightly run, so that those of today come tomorrow.

    Failures of one tool that say one thing are one pattern, whatever their wording. A pattern keeps
    its id as long as any of it is there. What tools said is quoted as data.
    """
    found = await failure_patterns(
        workspace,
        tool_name=query.tool_name,
        server_name=query.server_name,
        category=query.category,
        limit=query.limit,
        store=services.store,
        memory=services.memory,
        redactor=services.redactor,
    )
    return answer(found)
