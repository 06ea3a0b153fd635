"""Outcomes: what became of a suggestion, kept so that it teaches the next one."""

from collections.abc import Callable

from aftercall.models import OutcomeReport
from mongo.protocol import LogStore
from mongo.records import SuggestionOutcome
from retrieval.suggest import Suggester


class UnknownSuggestionError(LookupError):
    """No suggestion of this id was made in this workspace."""


async def record_outcome(
    workspace: str,
    suggestion_id: str,
    report: OutcomeReport,
    *,
    store: LogStore,
    suggester: Suggester,
    on_stored: Callable[[], None],
) -> bool:
    """Keep an outcome; False when this suggestion already has one for this execution.

    Raises:
        UnknownSuggestionError: when no such suggestion was made here.
    """
    known = suggester.issued(workspace, suggestion_id) or await store.get_suggestion(
        workspace, suggestion_id
    )
    if known is None:
        raise UnknownSuggestionError(
            f"no suggestion {suggestion_id} was made here; send the suggestionId that /suggest gave"
        )
    outcome = SuggestionOutcome(workspace, suggestion_id, report.execution_id, report.outcome)
    added = await store.add_outcomes([outcome])
    on_stored()
    return added == 1
