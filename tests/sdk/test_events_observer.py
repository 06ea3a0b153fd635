"""Events of reflected calls: every attempt, and what was given up."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.events import CANCELLED, EventObserver
from aftercall.json_values import JsonObject
from aftercall.reflection import call_with_reflection, call_with_reflection_sync
from aftercall.reflection.results import CallFacts, PlannedAttempt
from tests.sdk.event_records import Events, check_order
from tests.sdk.scripted_advice import (
    BAD,
    GOOD,
    TWINS,
    AsyncScripted,
    PickyTool,
    Records,
    SyncScripted,
    answer,
    change,
    reflected_by,
    suggestion,
)

TOKEN = "ghp_" + "a1B2c3D4" * 5


def attempt(session_id: str | None = None, *, number: int = 1) -> PlannedAttempt:
    return PlannedAttempt(
        facts=CallFacts(tool_name="t", agent="a", session_id=session_id),
        execution_id=str(uuid4()),
        parameters={},
        number=number,
    )


@pytest.mark.parametrize("session_id", ["s-1", None])
@pytest.mark.parametrize("twin", TWINS)
async def test_every_attempt_is_told(twin: str, session_id: str | None) -> None:
    """A failed attempt and its repair are two calls of one request, in order."""
    events = Events()
    advice = answer(suggestion(change("/topK", 10)))
    observers = [EventObserver([events])]
    result, _, _ = await reflected_by(
        twin, PickyTool(GOOD), advice, session_id=session_id, observers=observers
    )
    assert result.repaired
    check_order(events.events)
    assert len({event.request_id for event in events.events}) == 1
    assert events.events[0].request_id == session_id or session_id is None
    assert {event.tool for event in events.events} == {"rag_query"}
    first, second = events.results
    assert (first.seq, first.status, second.seq, second.status) == (0, "error", 1, "ok")
    assert first.error_type == result.attempts[0].error.type  # type: ignore[union-attr]  # it failed
    assert first.latency_ms == result.attempts[0].duration_ms


async def test_a_cancelled_call_is_told() -> None:
    """A tool that hangs is the failure that one most wants to see; no outcome is recorded."""
    events, records, service = Events(), Records(), AsyncScripted()

    class Hanging(PickyTool):
        async def run_async(self, _: JsonObject) -> str:
            await asyncio.Event().wait()
            return "never"

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await call_with_reflection(
                Hanging().run_async, tool_name="t", parameters={}, agent="a", client=service,
                recorder=records, observers=[EventObserver([events])],
            )  # fmt: skip
    assert (records.executions, service.asked) == ([], [])
    check_order(events.events)
    (result,) = events.results
    assert (result.status, result.error_type, result.message) == ("error", CANCELLED, None)
    assert result.latency_ms is not None


def test_a_call_inside_the_handling_of_a_cancellation_is_not_cancelled() -> None:
    """Cleaning up after Ctrl-C calls tools too, and these end as they end."""
    events = Events()
    try:
        raise KeyboardInterrupt  # noqa: TRY301  # what is handled is the point
    except KeyboardInterrupt:
        call_with_reflection_sync(
            PickyTool(BAD).run, tool_name="t", parameters=dict(BAD), agent="a", recorder=Records(),
            client=SyncScripted(), observers=[EventObserver([events])],
        )  # fmt: skip
    assert [result.status for result in events.results] == ["ok"]


@given(
    sessions=st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=40),
    max_requests=st.integers(1, 3),
)
def test_seq_rises_within_a_session_also_when_it_was_forgotten(
    sessions: list[str | None], max_requests: int
) -> None:
    """No number is given twice, however many sessions come between."""
    events = Events()
    observer = EventObserver([events])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aftercall.events.MAX_REQUESTS", max_requests)
        for session_id in sessions:
            observer.planned(attempt(session_id)).ended(duration_ms=1, error=None)
    for request_id in {event.request_id for event in events.planned}:
        numbers = [event.seq for event in events.planned if event.request_id == request_id]
        assert all(earlier < later for earlier, later in pairwise(numbers))
    if len(sessions) <= max_requests:
        for name in set(sessions) - {None}:
            check_order([event for event in events.events if event.request_id == name])


def test_calls_without_a_session_are_requests_of_their_own() -> None:
    """Two calls are two requests; two attempts of one call are one."""
    events = Events()
    observer = EventObserver([events])
    first = attempt()
    observer.planned(first)
    observer.planned(replace(first, execution_id="another", number=2, repair_of=first.execution_id))
    observer.planned(attempt())
    a, b, c = events.events
    assert (a.request_id == b.request_id, a.request_id == c.request_id) == (True, False)
    assert [event.seq for event in events.events] == [0, 1, 0]


def test_sessions_that_look_alike_in_events_are_one() -> None:
    """What is cut or hashed to one name counts under one name, so no number comes twice."""
    events = Events()
    observer = EventObserver([events])
    for session_id in ("s" * 300, "s" * 301, TOKEN, TOKEN):
        observer.planned(attempt(session_id))
    assert [event.seq for event in events.events] == [0, 1, 0, 1]
    assert TOKEN not in str(events.events)


def test_a_recorder_would_record_twice() -> None:
    """So it is refused, with the reason."""
    with pytest.raises(ConfigurationError, match="records every attempt by itself"):
        EventObserver([Records()])  # type: ignore[list-item]  # the mistake
