"""Boundaries and health of tools: what they are asked for, how they fare, what to do about it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Id
from service import feedback
from service import recommendations as queue
from service.health import boundaries, tool_health
from service.requests import (
    Administering,
    JsonRoute,
    NoQuery,
    Reading,
    Recording,
    ToolFilter,
    ToolId,
)

router = APIRouter(tags=["boundaries"], route_class=JsonRoute)


class _BoundariesQuery(m.WireModel):
    limit: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Clusters, co-occurrences and tools in the answer, of each at most so many.",
    )


class _CorrectionsQuery(ToolFilter):
    limit: int = Field(default=20, ge=1, le=100)


RecommendationId = Annotated[
    Id, Path(alias="recommendationId", description="A UUID, from `GET /recommendations`.")
]


@router.get(
    "/boundaries", summary="Boundary axes of all tools, and tools that are asked for several jobs"
)
async def read_boundaries(
    query: Annotated[_BoundariesQuery, Query()], space: Reading
) -> m.Boundaries:
    """Axes are the tools' own words; those that mean one capability are one cluster.

    A cluster keeps its id and name as long as there is no need for others. Axes are clustered some
    seconds after they were first named; until then each stands for itself. Of each workspace the
    2,000 weightiest axes are remembered.
    """
    return await boundaries(*space, query.limit)


@router.get("/tools/{toolId:name}/health", summary="The health of a tool")
async def read_health(tool_id: ToolId, _query: NoQuery, space: Reading) -> m.ToolHealth:
    """Counts are of all calls that are known, whatever their version; weights halve every 7 days.

    Registering is optional: besides an id, `toolName` or `serverName/toolName` will do. A success
    that is empty, or that the tool itself calls weak, is told as such and stays a success. The name
    of a method is shown when the tool's schema has it or several sessions used it.
    """
    return await tool_health(*space, tool_id)


@router.post("/corrections", summary="Tell what a user said of an answer", status_code=202)
async def correct(
    correction: m.Correction, _query: NoQuery, space: Recording
) -> m.RecordedCorrection:
    """It is durable now, and weighs more than the tool's own word.

    It is about one execution, which may be recorded later (`tied` is false until then), or about
    the latest recorded call of a session. The same `correctionId` twice counts once.
    """
    return await feedback.correct(*space, correction)


@router.get("/corrections", summary="What users said of answers")
async def list_corrections(
    query: Annotated[_CorrectionsQuery, Query()], space: Reading
) -> m.CorrectionList:
    """Newest first. One counts for its tool soon after both are recorded, and is listed so then."""
    return await feedback.corrections(*space, limit=query.limit, tool=query.tool(space.workspace))


@router.get("/recommendations", summary="What the evidence suggests to tool builders")
async def list_recommendations(
    query: Annotated[queue.RecommendationQuery, Query()], space: Reading
) -> m.RecommendationList:
    """Greatest priority first. The service reports and changes nothing by itself.

    They are made from the evidence when they are asked for: open ones come and go with it. What
    tools and users stated is quoted as data.
    """
    return await queue.recommendations(*space, query)


@router.put(
    "/recommendations/{recommendationId}", summary="Say what is done about a recommendation"
)
async def change_recommendation(
    recommendation_id: RecommendationId,
    change: m.RecommendationChange,
    _query: NoQuery,
    space: Administering,
) -> m.Recommendation:
    """Any state may follow any other; of two changes the later one counts.

    It needs a `reason` to be dismissed, and stays dismissed. One that is done opens again
    (`reopened`) when evidence later than that speaks for it; one that is opened by hand lives and
    ends with its evidence, as if no one had touched it.
    """
    return await queue.change_recommendation(*space, recommendation_id, change)
