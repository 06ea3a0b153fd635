"""A rehearsal is the answer that an agent would get, of which nothing stays."""

from typing import Any

from aftercall.models import FailedCall, Suggestion, SuggestRequest
from retrieval.log import suggestion
from tests.ingest.conftest import WORKSPACE, Brain, brain
from tests.retrieval.cases import object_schema

__all__ = ["brain"]

REQUEST = SuggestRequest(
    execution=FailedCall.model_validate(
        {
            "agent": "ada", "server_name": "srv", "tool_name": "now",
            "parameters": {"time_zone": "UTC", "style": "long"},
            "error": {"message": "Input validation error: 'zone' is a required property"},
            "input_schema": object_schema(zone="string", style="string"),
        }
    )
)  # fmt: skip


def told(given: Suggestion) -> dict[str, Any]:
    """All of a suggestion but its id, which is new each time."""
    return given.model_dump(exclude={"suggestion_id"})


async def test_a_rehearsal_answers_the_same_and_leaves_no_suggestion(brain: Brain) -> None:
    """So whoever tries a call out is not counted among those who ask, nor does it teach."""
    rehearsed = await brain.suggester.preview(WORKSPACE, REQUEST)
    assert rehearsed.suggestions
    assert rehearsed.took_ms > 0
    answered = await brain.suggester.suggest(WORKSPACE, REQUEST)
    assert [told(each) for each in rehearsed.suggestions] == [
        told(each) for each in answered.suggestions
    ]
    await brain.suggester.close()  # what is to be stored is stored then
    for each in rehearsed.suggestions:
        assert brain.suggester.issued(WORKSPACE, each.suggestion_id) is None
        assert await suggestion(brain.store.events, WORKSPACE, each.suggestion_id) is None
    for each in answered.suggestions:
        assert await suggestion(brain.store.events, WORKSPACE, each.suggestion_id) is not None
