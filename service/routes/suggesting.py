"""Suggestions for failed calls, what became of them, and executions that are like a call."""

from fastapi import APIRouter, Response

from aftercall import models as m
from retrieval.answers.check import answer_check
from retrieval.answers.similar import find_similar
from service.feedback import record_outcome
from service.requests import JsonRoute, Suggesting, SuggestionId

router = APIRouter(tags=["suggesting"], route_class=JsonRoute)


@router.post("/suggest", summary="What to do about a failed call")
async def suggest(question: m.SuggestRequest, space: Suggesting) -> m.SuggestResponse:
    """Suggestions come best first; `confidence` is the probability of doing what the caller meant.

    An empty list is an honest "I don't know", with its reason.
    """
    context, workspace = space
    principal = context.caller.principal
    only_of = None if "read" in context.caller.scopes else principal
    response = await context.suggester.suggest(
        workspace, question, principal=principal, only_of=only_of
    )
    context.metrics.answered(response)
    return response


@router.post("/check", summary="What there is to say of a call before it is made")
async def check_call(question: m.CheckRequest, space: Suggesting) -> m.CheckResponse:
    """Return nothing is embedded, stored or learned.

    `repair` is said of proven lossless changes alone; `block` of a call that failed like this again
    and again in its session.
    """
    context, workspace = space
    return await answer_check(
        workspace,
        question,
        memory=context.memory,
        redactor=context.redactor,
        quorum=context.quorum,
        principal=context.caller.principal,
        loop=context.settings.limits.loop,
    )


@router.post(
    "/suggestions/{suggestionId}/outcome",
    summary="What became of a suggestion",
    status_code=204,
    response_class=Response,
)
async def report_outcome(
    suggestion_id: SuggestionId, report: m.OutcomeReport, space: Suggesting
) -> None:
    """An execution recorded with `suggestionId` says the same; saying it twice changes nothing."""
    if await record_outcome(*space, suggestion_id, report):
        space.context.metrics.reported(suggestion_id, report)


@router.post("/similar", summary="Executions of a tool that are like this call")
async def similar(question: m.SimilarRequest, space: Suggesting) -> m.SimilarResponse:
    """Different calls, the likest first, by the words and the meaning of each. Secrets are masked.

    A key without `read` sees only calls of the `agent` that it names, as it recorded them itself.
    """
    caller = space.context.caller
    return await find_similar(
        space.workspace,
        question,
        log=space.context.store.events,
        memory=space.context.memory,
        index=space.context.index,
        embedder=space.context.embedder,
        redactor=space.context.redactor,
        only_of=None if "read" in caller.scopes else caller.principal,
    )
