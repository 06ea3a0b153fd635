"""The suggester over the real store and index: what it trusts, and what it does in trouble."""

from typing import Any
from uuid import UUID

import pytest

from aftercall.change_classes import reads_only
from aftercall.json_values import content_hash
from aftercall.models import FailedCall, SuggestRequest, SuggestResponse, ToolAnnotations
from mongo.contents import StoredTool
from mongo.errors import StoreUnavailableError
from mongo.records import ToolKey
from retrieval.answers.judge.trust import trusted_hints
from retrieval.knowledge.memory import KNOWLEDGE, tool_row
from retrieval.knowledge.rows.log import read_suggestion
from tests.ingest.conftest import WORKSPACE, Brain, brain
from tests.retrieval.cases import an_execution, object_schema, tool

__all__ = ["brain"]

MISSING = "Input validation error: 'zone' is a required property"
SCHEMA = object_schema(zone="string", style="string")


def failed(server: str | None = "srv", message: str = MISSING, **fields: Any) -> FailedCall:
    """A call of `now` that gave the zone another name, or whatever is said."""
    return FailedCall.model_validate(
        {
            "agent": "ada", "server_name": server, "tool_name": "now", "session_id": "s",
            "parameters": {"time_zone": "UTC", "style": "long"}, "error": {"message": message},
        } | fields
    )  # fmt: skip


async def ask(memory: Brain, call: FailedCall, annotations: Any = None) -> SuggestResponse:
    request = SuggestRequest(execution=call, annotations=annotations)
    return await memory.suggester.suggest(WORKSPACE, request)


async def register(memory: Brain, **fields: Any) -> None:
    await memory.put_tool(tool("now", "n", **{"toolId": "t"} | fields))


async def succeed(memory: Brain, count: int, start: int = 1, **fields: Any) -> None:
    given = {"tool_name": "now", "parameters": {"zone": "UTC", "style": "long"}} | fields
    await memory.learn(
        *(
            an_execution(execution_id=str(UUID(int=n)), session_id=f"s{n}", **given)
            for n in range(start, start + count)
        )
    )


async def test_a_suggestion_is_found_by_id_at_once_and_stored_soon(brain: Brain) -> None:
    """Nobody waits for the store, and an outcome may come before it has finished."""
    issued = (await ask(brain, failed(input_schema=SCHEMA))).suggestions[0].suggestion_id
    assert brain.suggester.issued(WORKSPACE, issued) is not None
    assert brain.suggester.issued("elsewhere", issued) is None
    await brain.suggester.close()
    assert brain.suggester.issued(WORKSPACE, issued) is None
    assert await read_suggestion(brain.store.events, WORKSPACE, issued) is not None


async def test_a_suggestion_that_could_not_be_stored_is_stored_with_the_next(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away for a moment loses no suggestion."""

    async def away(*_: object) -> None:
        raise StoreUnavailableError("away")

    with monkeypatch.context() as patch:
        patch.setattr(brain.store.events, "append", away)
        first = (await ask(brain, failed(input_schema=SCHEMA))).suggestions[0].suggestion_id
        await brain.suggester.close()
    await ask(brain, failed(input_schema=SCHEMA))
    await brain.suggester.close()
    assert await read_suggestion(brain.store.events, WORKSPACE, first) is not None


async def test_the_registered_schema_counts_and_its_hints_only_tighten(brain: Brain) -> None:
    """Any program of the machine may register that a payment only reads; its caller knows."""
    claims = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
    await register(brain, inputSchema=SCHEMA, annotations=claims)
    response = await ask(brain, failed(message="zone is required"))
    assert response.suggestions[0].corrected_parameters == {"style": "long", "zone": "UTC"}
    assert "only reads" not in response.retry.reason
    assert not response.retry.safe
    live = await ask(
        brain, failed(message="zone is required"), ToolAnnotations(read_only_hint=True)
    )
    assert "only reads" in live.retry.reason


@pytest.mark.parametrize("hints", [{"readOnlyHint": False}, {"destructiveHint": True}])
def test_a_registered_hint_takes_a_retry_back(hints: dict[str, bool]) -> None:
    """A tool whose name reads only is not believed to, where its registration says otherwise."""
    stored = StoredTool(WORKSPACE, tool("get_time", "n", toolId="t", annotations=hints))
    assert not reads_only("get_time", trusted_hints(None, stored, binds=True))
    assert reads_only("get_time", trusted_hints(None, None, binds=True))


async def test_empty_annotations_trust_none(brain: Brain) -> None:
    """The caller's word stands above what was registered: `{}` says that no claim is believed."""
    await register(brain, inputSchema=SCHEMA, annotations={"readOnlyHint": True})
    response = await ask(brain, failed(message="zone is required"), ToolAnnotations())
    assert not response.retry.safe


async def test_a_profile_of_another_schema_is_only_a_hint(brain: Brain) -> None:
    """What was usual under the old schema is proposed with less confidence under the new one."""
    await succeed(brain, 10, input_schema=SCHEMA)
    call = failed(parameters={"style": "long"}, input_schema=SCHEMA)
    reads = ToolAnnotations(read_only_hint=True)
    now = (await ask(brain, call, reads)).suggestions[0]
    newer = SCHEMA | {"description": "version 2"}
    assert content_hash(newer) != content_hash(SCHEMA)
    later = (await ask(brain, call.model_copy(update={"input_schema": newer}), reads)).suggestions
    assert now.corrected_parameters == {"style": "long", "zone": "UTC"}
    assert all(each.confidence < now.confidence for each in later)


async def test_a_tool_of_that_name_on_another_server_is_another_tool(brain: Brain) -> None:
    """Neither its values nor its counts are evidence."""
    await succeed(brain, 10, server_name="other")
    response = await ask(
        brain, failed(server=None, input_schema=SCHEMA), ToolAnnotations(read_only_hint=True)
    )
    assert response.suggestions[0].evidence.successes == 0
    assert response.suggestions[0].evidence.execution_ids == []
    row = tool_row(ToolKey(WORKSPACE, None, "now"))
    assert await brain.store.knowledge.get(WORKSPACE, KNOWLEDGE.name, [row]) == []


async def test_a_preview_answers_the_same_and_leaves_no_suggestion(brain: Brain) -> None:
    """So trying a call out is not counted among what is asked, nor does it teach."""
    request = SuggestRequest(execution=failed(input_schema=SCHEMA))
    preview = await brain.suggester.preview(WORKSPACE, request)
    answered = await brain.suggester.suggest(WORKSPACE, request)
    told, said = (
        [each.model_dump(exclude={"suggestion_id"}) for each in response.suggestions]
        for response in (preview, answered)
    )
    assert told == said != []
    assert preview.took_ms > 0
    await brain.suggester.close()  # what is to be stored is stored then
    for response, is_stored in ((preview, False), (answered, True)):
        for each in response.suggestions:
            assert brain.suggester.issued(WORKSPACE, each.suggestion_id) is None
            found = await read_suggestion(brain.store.events, WORKSPACE, each.suggestion_id)
            assert (found is not None) == is_stored
