"""Boundaries of all tools: what the axes are called, which co-occur, which tools mix them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from aftercall.models import Boundaries, WireModel
from service.health import boundaries
from service.openapi import answers
from service.routes import boundary_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, answer

router = APIRouter(tags=["boundaries"])


class _Asked(WireModel):
    limit: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Clusters, co-occurrences and tools in the answer, of each at most so many.",
    )


BoundariesQuery = Annotated[_Asked, Query()]


@router.get(
    "/boundaries",
    summary="Boundary axes of all tools, and tools that are asked for several jobs",
    response_model=Boundaries,
    responses=answers(200, examples.BOUNDARIES, errors=(422, 503)),
)
async def read_boundaries(
    query: BoundariesQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Axes are the tools' own words; those that mean one capability are one cluster.

    A cluster keeps its id and name as long as there is no need for others. Axes are clustered some
    seconds after they were first named; until then each stands for itself. Of each workspace the
    2,000 weightiest axes are remembered.
    """
    return answer(await boundaries(context, workspace, query.limit))
