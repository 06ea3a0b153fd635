"""Similar executions."""

from fastapi import APIRouter, Request, Response

from aftercall.models import SimilarRequest, SimilarResponse
from retrieval.similar import find_similar
from service.bodies import read_model
from service.middleware import count
from service.openapi import answers, json_body
from service.routes import examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, answer

router = APIRouter(tags=["suggesting"])


@router.post(
    "/similar",
    summary="Executions of a tool that are like this call",
    response_model=SimilarResponse,
    responses=answers(200, examples.SIMILAR, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(SimilarRequest, examples.ASKING_SIMILAR),
)
async def similar(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Nearest first; `similarity` is a cosine. Secrets are masked."""
    question = await read_model(request, SimilarRequest, context.parsers)
    found = await find_similar(
        workspace,
        question,
        store=context.store,
        memory=context.memory,
        index=context.index,
        embedder=context.embedder,
        redactor=context.redactor,
    )
    count(request, found=len(found.executions))
    return answer(found)
