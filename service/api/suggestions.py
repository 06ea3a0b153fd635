"""Suggestions for failed calls, their outcomes, checks of calls, and similar executions."""

from fastapi import APIRouter, Response

from aftercall import models as m
from mongo import contents
from retrieval.answers.check import answer_check
from retrieval.answers.similar import find_similar
from retrieval.knowledge.rows.log import load_execution, read_suggestion
from service.errors import NotRecordedError
from service.requests import JsonRoute, Suggest, SuggestionId

router = APIRouter(tags=["suggesting"], route_class=JsonRoute)


@router.post("/suggest", summary="What to do about a failed call", name="suggest")
async def suggest_repairs(space: Suggest, question: m.SuggestRequest) -> m.SuggestResponse:
    """Return suggestions, the best first; `confidence` is the probability of doing what was meant.

    An empty list is an honest "I don't know", with its reason.
    """
    context, workspace = space
    principal = context.caller.principal
    only_of = None if "read" in context.caller.scopes else principal
    response = await context.suggester.suggest(
        workspace, question, principal=principal, only_of=only_of
    )
    context.metrics.count_answer(response)
    return response


@router.post("/check", summary="What there is to say of a call before it is made")
async def check_call(space: Suggest, question: m.CheckRequest) -> m.CheckResponse:
    """Check a call before it is made; nothing is embedded, stored or learned.

    The verdict `repair` is given for proven lossless changes only; `block` for a call that failed
    like this again and again in its session.
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
    space: Suggest, suggestion_id: SuggestionId, report: m.OutcomeReport
) -> None:
    """Note the outcome of a suggestion; repeating it changes nothing.

    An execution that is recorded with `suggestionId` reports the same.

    Raises:
        NotRecordedError: no such suggestion was made in the workspace.
    """
    context, workspace = space
    log = context.store.events
    known = context.suggester.issued(workspace, suggestion_id) or await read_suggestion(
        log, workspace, suggestion_id
    )
    if known is None:
        raise NotRecordedError(
            f"no suggestion {suggestion_id} was made here; send the suggestionId that /suggest gave"
        )
    followed = await load_execution(log, workspace, report.execution_id)
    outcome = contents.SuggestionOutcome(
        suggestion_id=suggestion_id,
        execution_id=report.execution_id,
        outcome=report.outcome,
        issued=known,
        agent=followed.agent if followed else None,
    )
    verdicts = await log.append(
        workspace, [contents.outcome_event(outcome, context.caller.principal)]
    )
    context.indexer.wake_learner()
    if verdicts == ["accepted"]:  # else the execution has an outcome of it already
        context.metrics.count_report(suggestion_id, report)


@router.post("/similar", summary="Executions of a tool that are like this call", name="similar")
async def find_similar_calls(space: Suggest, question: m.SimilarRequest) -> m.SimilarResponse:
    """Return different calls, the most similar first, by words and meaning; secrets are masked.

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
