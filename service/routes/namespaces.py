"""Namespaces: who serves a capability, and who serves it best."""

from fastapi import APIRouter, Response

from aftercall.models import BestTool, NamespaceList
from service.openapi import answers
from service.routes import fitness_examples as examples
from service.routes.parameters import BestQuery, CurrentContext, CurrentWorkspace, Namespace, answer

router = APIRouter(tags=["choosing a tool"])


@router.get(
    "/namespaces",
    summary="All namespaces, by name",
    response_model=NamespaceList,
    responses=answers(200, examples.NAMESPACES, errors=(503,)),
)
async def list_namespaces(context: CurrentContext, workspace: CurrentWorkspace) -> Response:
    """A tool without a namespace serves the one that is called like its id."""
    return answer(await context.chooser.namespaces(workspace))


@router.get(
    "/namespaces/{namespace:path}/best",
    summary="The fittest tool of a namespace for a scenario",
    response_model=BestTool,
    responses=answers(
        200, examples.BEST, errors=(414, 422, 503), own={404: examples.UNKNOWN_NAMESPACE}
    ),
)
async def best_tool(
    namespace: Namespace, query: BestQuery, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """With every factor of its score, all candidates, and what was left out and why.

    The score is base x quality x failure demotion; `belowThreshold` marks one that is hardly fit.
    """
    found = await context.chooser.best(
        workspace,
        namespace,
        query.scenario,
        use_rag=query.use_rag,
        mode=query.mode,
        limit=query.limit,
    )
    return answer(found)
