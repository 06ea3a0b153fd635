"""Recommendations: a queue that tool builders work off, out of the way of calls."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from aftercall.models import (
    Recommendation,
    RecommendationChange,
    RecommendationKind,
    RecommendationList,
    WireModel,
)
from aftercall.models.base import Id, Name
from service.http import recommendation_examples as examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers, json_body
from service.http.queries import NoQuery
from service.http.requests import read_model
from service.http.responses import answer
from service.recommending import RecommendationFilter, RecommendationStates

router = APIRouter(tags=["boundaries"])


class _Recommendations(WireModel):
    state: RecommendationStates | None = Field(
        default=None, description="Only those in that state; open and taken ones when left out."
    )
    tool_id: Name | None = Field(
        default=None,
        description="Only those about a tool (its id, or the name of its calls) or a namespace.",
    )
    kind: RecommendationKind | None = Field(default=None, description="Only those of that kind.")
    limit: int = Field(default=100, ge=1, le=1000)


RecommendationsQuery = Annotated[_Recommendations, Query()]

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
    query: RecommendationsQuery, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """Greatest priority first. The service reports and changes nothing by itself.

    They are made from the evidence when they are asked for: open ones come and go with it. What
    tools and users said is quoted as data.
    """
    asked = RecommendationFilter(state=query.state, tool_id=query.tool_id, kind=query.kind)
    return answer(await services.recommendations.queue(workspace, asked, query.limit))


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
async def change_recommendation(
    recommendation_id: RecommendationId,
    request: Request,
    _query: NoQuery,
    services: OpenServices,
    workspace: CurrentWorkspace,
) -> Response:
    """Any state may follow any other; of two changes the later one counts.

    It needs a `reason` to be dismissed, and stays dismissed. One that is done opens again
    (`reopened`) when evidence later than that speaks for it; one that is opened by hand lives and
    ends with its evidence, as if nobody had touched it.
    """
    change = await read_model(request, RecommendationChange, services.parsers)
    return answer(await services.recommendations.change(workspace, recommendation_id, change))
