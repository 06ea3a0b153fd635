"""Finding tools for a scenario, and how tools were evolved for one like it."""

from fastapi import APIRouter, Request, Response

from aftercall.models import EvolutionList, EvolutionRequest, FindRequest, FoundTools
from service.bodies import read_model
from service.middleware import count
from service.openapi import answers, json_body
from service.routes import fitness_examples as examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, answer

router = APIRouter(tags=["choosing a tool"])


@router.post(
    "/tools/find",
    summary="Tools for a scenario, best first",
    response_model=FoundTools,
    responses=answers(200, examples.FOUND, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(FindRequest, examples.FINDING),
)
async def find_tools(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Of all namespaces; empty when no tool fits. With tags, tools that have at least one."""
    question = await read_model(request, FindRequest, context.parsers)
    found = await context.chooser.find(workspace, question)
    count(request, candidates=len(found.candidates))
    return answer(found)


@router.post(
    "/evolutions/find",
    summary="How tools were evolved for scenarios like one",
    response_model=EvolutionList,
    responses=answers(200, examples.EVOLUTIONS, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(EvolutionRequest, examples.FINDING_EVOLUTIONS),
)
async def find_evolutions(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Promotions of the past and present, nearest first, by namespace, reason and mutation."""
    question = await read_model(request, EvolutionRequest, context.parsers)
    return answer(await context.history.evolutions(workspace, question))
