"""Suggestions for failed calls, and what became of them."""

from fastapi import APIRouter, Request, Response

from aftercall.models import OutcomeReport, SuggestRequest, SuggestResponse
from ingest.outcomes import record_outcome
from service.bodies import read_model
from service.middleware import count
from service.openapi import answers, json_body
from service.routes import examples
from service.routes.parameters import CurrentContext, CurrentWorkspace, SuggestionId, answer

router = APIRouter(tags=["suggesting"])


@router.post(
    "/suggest",
    summary="What to do about a failed call",
    response_model=SuggestResponse,
    responses=answers(200, examples.SUGGESTED, errors=(400, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(SuggestRequest, examples.SUGGESTING),
)
async def suggest(
    request: Request, context: CurrentContext, workspace: CurrentWorkspace
) -> Response:
    """Suggestions come best first; `confidence` is the probability of doing what the caller meant.

    An empty list is an honest "I don't know", with its reason.
    """
    question = await read_model(request, SuggestRequest, context.parsers)
    response = await context.suggester.suggest(workspace, question)
    context.metrics.answered(response)
    context.statistics.answered(workspace, response)
    count(request, suggestions=len(response.suggestions))
    return answer(response)


@router.post(
    "/suggestions/{suggestionId}/outcome",
    summary="What became of a suggestion",
    status_code=204,
    response_class=Response,
    responses=answers(204, None, errors=(400, 404, 408, 413, 415, 422, 503)),
    openapi_extra=json_body(OutcomeReport, examples.REPORTING),
)
async def report_outcome(
    suggestion_id: SuggestionId,
    request: Request,
    context: CurrentContext,
    workspace: CurrentWorkspace,
) -> Response:
    """An execution recorded with `suggestionId` says the same; saying it twice changes nothing."""
    report = await read_model(request, OutcomeReport, context.parsers)
    is_new = await record_outcome(
        workspace,
        suggestion_id,
        report,
        store=context.store,
        suggester=context.suggester,
        on_stored=context.indexer.wake,
    )
    if is_new:
        context.metrics.reported(suggestion_id, report)
        context.statistics.news.tell(workspace)
    return Response(status_code=204)
