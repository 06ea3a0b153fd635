"""Failure patterns: like failures of a tool as one, as the latest nightly run consolidated them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from aftercall.models import FailurePatternList
from service.openapi import answers
from service.patterns import PatternsQuery, failure_patterns
from service.routes import nightly_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, answer

router = APIRouter(tags=["statistics"])


@router.get(
    "/patterns",
    summary="Ways in which tools fail, with what helps",
    response_model=FailurePatternList,
    responses=answers(200, examples.PATTERNS, errors=(422, 503)),
)
async def patterns(
    query: Annotated[PatternsQuery, Query()], context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Most failures first; made by the nightly run, so that those of today come tomorrow.

    Failures of one tool that say one thing are one pattern, whatever their wording. A pattern keeps
    its id as long as any of it is there. What tools said is quoted as data.
    """
    found = await failure_patterns(context, workspace, query)
    return answer(found)
