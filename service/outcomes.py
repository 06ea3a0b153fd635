"""Outcomes: what became of a suggestion, kept so that it teaches the next one."""

from aftercall.models import OutcomeReport
from mongo.contents import SuggestionOutcome, outcome_event
from retrieval.log import executions, suggestion
from service.context import Context


class UnknownSuggestionError(LookupError):
    """No suggestion of this id was made in this workspace."""


async def record_outcome(
    context: Context, workspace: str, suggestion_id: str, report: OutcomeReport
) -> bool:
    """Keep an outcome; False when this suggestion already has one for this execution.

    It carries what the suggestion was, so that it teaches whatever becomes of the log.

    Raises:
        UnknownSuggestionError: no such suggestion was made here.
        StoreError: it cannot be stored.
    """
    log = context.store.events
    known = context.suggester.issued(workspace, suggestion_id) or await suggestion(
        log, workspace, suggestion_id
    )
    if known is None:
        raise UnknownSuggestionError(
            f"no suggestion {suggestion_id} was made here; send the suggestionId that /suggest gave"
        )
    followed = await executions(log, workspace, [report.execution_id])
    outcome = SuggestionOutcome(
        suggestion_id=suggestion_id,
        execution_id=report.execution_id,
        outcome=report.outcome,
        issued=known,
        agent=followed[0].execution.agent if followed else None,
    )
    verdicts = await log.append(workspace, [outcome_event(outcome)])
    context.indexer.wake()
    return verdicts == ["accepted"]
