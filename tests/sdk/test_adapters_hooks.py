"""Hooks before and after a call: matched, recorded, advised on, bounded."""

from types import SimpleNamespace
from typing import Any

import pytest

from aftercall import Outcome, ToolAnnotations
from aftercall.adapters.hooks import CallHooks
from aftercall.adapters.reflector import KnownTool
from aftercall.events import CallbackSink, EventObserver
from aftercall.reflection import ReflectionPolicy
from tests.sdk.scripted_advice import (
    AsyncScripted,
    Records,
    SyncScripted,
    answer,
    change,
    suggestion,
)

ADVICE = suggestion(change("/topK", 10, before=50))
FAILED = {"content": [{"type": "text", "text": "topK must be <= 10"}], "isError": True}
DONE = {"content": [{"type": "text", "text": "3 hits"}], "isError": False}


def hooks_for(*answers: Any, **options: Any) -> tuple[CallHooks, Records, AsyncScripted]:
    records, service = Records(), AsyncScripted(*answers)
    return CallHooks(client=service, recorder=records, **options), records, service


async def test_a_failure_gets_advice_and_is_never_called_again() -> None:
    """Arguments come from the first hook, the outcome from the second, however sure the advice."""
    hooks, records, service = hooks_for(answer(ADVICE), server_name="rag")
    key = hooks.pre("rag_query", {"topK": 50}, agent="ada", session_id="s", context="look it up")
    ended = await hooks.post(FAILED, key=key)
    assert 'replace "/topK": 50 -> 10' in ended.advice
    (execution,) = records.executions
    assert execution.parameters == {"topK": 50}
    assert (execution.error.type, execution.error.message) == ("ToolError", "topK must be <= 10")
    assert (execution.agent, execution.server_name, execution.session_id, execution.context) == (
        "ada",
        "rag",
        "s",
        "look it up",
    )
    assert len(service.asked) == 1


async def test_a_success_is_recorded_and_nobody_is_asked() -> None:
    """The summary is the structured content, or else the text; a call that nobody began is none."""
    hooks, records, service = hooks_for()
    assert await hooks.post(DONE, key=hooks.pre("rag_query", {"topK": 3})) is not None
    structured = {**DONE, "structuredContent": {"hits": 3}, "_meta": {"aftercall/status": "weak"}}
    await hooks.post(structured, key=hooks.pre("rag_query", {}))
    assert [e.result for e in records.executions] == ["3 hits", {"hits": 3}]
    assert [e.result_status for e in records.executions] == [None, "weak"]
    assert await hooks.post(DONE, key="lost") is None
    assert (len(records.executions), service.asked) == (2, [])


@pytest.mark.parametrize(
    "told",
    [
        {"error": ValueError("topK must be <= 10")},
        {"error": "topK must be <= 10"},
        {"result": Outcome.error("ValueError", "topK must be <= 10")},
        {"result": SimpleNamespace(**{**FAILED, "is_error": True})},
    ],
    ids=["exception", "text", "outcome", "model"],
)
async def test_a_failure_is_read_in_any_form(told: dict[str, Any]) -> None:
    """Exceptions, the gateway's own words, typed outcomes, models of an MCP library."""
    records = Records()
    hooks = CallHooks(client=SyncScripted(answer(ADVICE)), recorder=records)
    ended = await hooks.post(**told, key=hooks.pre("rag_query", {"topK": 50}))
    assert ended.advice
    assert records.executions[0].error.message == "topK must be <= 10"


async def test_a_first_hook_without_a_second_is_dropped_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table is bounded in number and time; what was dropped is not recorded."""
    now = [0.0]
    monkeypatch.setattr("aftercall.adapters.hooks.MAX_OPEN", 2)
    hooks, records, _ = hooks_for()
    monkeypatch.setattr("aftercall.adapters.hooks.time.monotonic", lambda: now[0])
    for number in range(3):
        hooks.pre("t", {"n": number}, key=f"k{number}")
    assert [hooks.is_open(f"k{number}") for number in range(3)] == [False, True, True]
    now[0] = 601
    hooks.pre("t", {}, key="k3")
    assert [hooks.is_open(f"k{number}") for number in range(4)] == [False, False, False, True]
    hooks.drop("k3")
    assert not hooks.is_open("k3")
    assert records.executions == []


async def test_what_the_gateway_knows_of_the_tool_goes_with_the_question() -> None:
    """Schema and claims; claims count for nothing where they are not trusted."""
    tool = KnownTool(
        schema=lambda: {"type": "object"}, annotations=ToolAnnotations(read_only_hint=True)
    )
    hooks, _, service = hooks_for(answer(), answer())
    await hooks.post(FAILED, key=hooks.pre("t", {}, tool=tool))
    assert service.asked[0].input_schema == {"type": "object"}
    assert service.annotations == [tool.annotations]
    hooks, _, service = hooks_for(policy=ReflectionPolicy(trust_annotations=False))
    await hooks.post(FAILED, key=hooks.pre("t", {}, tool=tool))
    assert service.annotations == [ToolAnnotations()]


async def test_observers_see_each_call_once() -> None:
    """A planned event and a result, also where the hooks run in different tasks."""
    events: list[Any] = []
    hooks, _, _ = hooks_for(observers=[EventObserver([CallbackSink(events.append)])])
    await hooks.post(DONE, key=hooks.pre("t", {}, session_id="s"))
    assert [event.event for event in events] == ["ToolCallPlanned", "ToolCallResult"]


@pytest.mark.parametrize(
    ("text", "parameters"), [("{'top_k': 5,}", {"top_k": 5}), ('{"top_k": 5', {})]
)
async def test_arguments_may_be_the_text_that_a_model_wrote(
    text: str, parameters: dict[str, Any]
) -> None:
    """Loose JSON is recorded as its object, what is cut off as it came."""
    records = Records()
    hooks = CallHooks(client=AsyncScripted(answer()), recorder=records)
    await hooks.post(key=hooks.pre("search", text), error="Invalid JSON")
    (recorded,) = records.executions
    assert (recorded.parameters, recorded.arguments_text) == (parameters, text)
    assert recorded.parameters_known is bool(parameters)
