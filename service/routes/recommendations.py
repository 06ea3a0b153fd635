"""Recommendations: a queue that tool builders work off, out of the way of calls."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from aftercall.models import (
    Recommendation,
    RecommendationChange,
    RecommendationList,
)
from aftercall.models.base import Id
from service.bodies import read_model
from service.openapi import answers, json_body
from service.recommendations import (
    RecommendationQuery,
    change_recommendation,
    recommendations,
)
from service.routes import recommendation_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, NoQuery, answer

router = APIRouter(tags=["boundaries"])


RecommendationId = Annotated[
    Id, Path(alias="recommendationId", description="A UUID, from `GET /recommendations`.")
]


@router.get(
    "/recommendations",
    summary="What the evidence suggests to tool builders",
    response_model=RecommendationList,
    responses=answers(
        200,
        examples.RECOMMENDATIONS,
        errors=(422, 503),
        own={404: examples.UNKNOWN_TOOL},
    ),
)
async def list_recommendations(
    query: Annotated[RecommendationQuery, Query()],
    context: CurrentContext,
    workspace: CurrentWorkspace,
) -> Response:
    """Greatest priority first. The service reports and changes nothing by itself.

    They are made from the evidence when they are asked for: open ones come and go with it. What
    tools and users said is quoted as data.
    """
    return answer(await recommendations(context, workspace, query))


@router.put(
    "/recommendations/{recommendationId}",
    summary="Say what is done about a recommendation",
    response_model=Recommendation,
    responses=answers(
        200,
        examples.CHANGED,
        errors=(400, 408, 413, 415, 422, 503),
        own={404: examples.UNKNOWN_RECOMMENDATION},
    ),
    openapi_extra=json_body(RecommendationChange, examples.CHANGING),
)
async def put_recommendation(
    recommendation_id: RecommendationId,
    request: Request,
    _query: NoQuery,
    context: CurrentContext,
    workspace: CurrentWorkspace,
) -> Response:
    """Any state may follow any other; of two changes the later one counts.

    It needs a `reason` to be dismissed, and stays dismissed. One that is done opens again
    (`reopened`) when evidence later than that speaks for it; one that is opened by hand lives and
    ends with its evidence, as if nobody had touched it.
    """
    change = await read_model(request, RecommendationChange, context.parsers)
    return answer(await change_recommendation(context, workspace, recommendation_id, change))
