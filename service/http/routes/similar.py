"""Similar executions."""

from fastapi import APIRouter, Request, Response

from aftercall.models import SimilarRequest, SimilarResponse
from retrieval.similar import find_similar
from service.http import examples
from service.http.dependencies import CurrentWorkspace, OpenServices
from service.http.openapi import answers, json_body
from service.http.request_log import count
from service.http.requests import read_model
from service.http.responses import answer

router = APIRouter(tags=["suggesting"])


@router.post(
    "/similar",
    summary="Executions of a tool that are like this call",
    response_model=SimilarResponse,
    responses=answers(200, examples.SIMILAR, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(SimilarRequest, examples.ASKING_SIMILAR),
)
async def similar(
    request: Request, services: OpenServices, workspace: CurrentWorkspace
) -> Response:
    """Nearest first; `similarity` is a cosine. Secrets are masked."""
    question = await read_model(request, SimilarRequest, services.parsers)
    found = await find_similar(
        workspace,
        question,
        store=services.store,
        memory=services.memory,
        index=services.index,
        embedder=services.embedder,
        redactor=services.redactor,
    )
    count(request, found=len(found.executions))
    return answer(found)
