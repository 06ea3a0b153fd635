"""Events: what they hold, and what they never hold."""

import asyncio
import hashlib
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.errors import ConfigurationError
from aftercall.events import (
    CANCELLED,
    PAYLOAD_PARSE_ERROR,
    PAYLOAD_TOO_LARGE,
    EventObserver,
    PlannedCall,
    ToolCallEvent,
    ToolCallPlanned,
    ToolCalls,
)
from aftercall.json_values import JsonObject, canonical_json
from aftercall.redaction import Redactor
from aftercall.reflection import call_with_reflection, call_with_reflection_sync
from aftercall.reflection.results import CallFacts, PlannedAttempt
from tests.sdk.event_records import Events, Kept, args_preview_hash, check_order
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


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def dumped(kept: Kept | Events) -> list[dict[str, Any]]:
    return [event.model_dump(mode="json", exclude_none=True) for event in kept.events]


@pytest.mark.parametrize("error_type", [PAYLOAD_TOO_LARGE, PAYLOAD_PARSE_ERROR])
def test_a_payload_that_cannot_be_read_is_planned_and_fails_at_once(error_type: str) -> None:
    """With the hash of its text and without a latency, for nothing was run."""
    kept = Kept()
    payload = '{"tool":"a","arguments":{' + "x" * 9000
    ToolCalls("r", [kept]).unreadable(None, payload, error_type=error_type, message="cut off")
    (planned,), (result,) = kept.planned, kept.results
    assert planned.tool == result.tool == "unknown"
    assert planned.args_preview_hash == sha256(payload[:200])
    assert (result.status, result.error_type, result.message) == ("error", error_type, "cut off")
    assert result.latency_ms is None
    assert (kept.events, kept.calls) == ([planned, result], [])


def test_latency_is_measured_unless_it_is_given() -> None:
    """Also for errors and for what is given up; nonsense becomes nothing, never a lost result."""
    kept = Kept()
    calls = ToolCalls("r", [kept])
    calls.planned("a", {}).ok()
    calls.planned("a", {}).error("E", "m")
    calls.planned("a", {}).abandon()
    for latency_ms in (-1.0, math.nan, math.inf):
        calls.planned("a", {}).ok(latency_ms=latency_ms)
    measured = [result.latency_ms for result in kept.results]
    assert all(latency is not None and latency >= 0 for latency in measured[:3])
    assert measured[3:] == [0.0, None, None]


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("", "unknown"),
        (" \n", "unknown"),
        (None, "unknown"),
        ("n" * 300, "n" * 256),
        ("a\x00\ud800b ", "a��b"),
    ],
)
def test_names_are_bounded_and_clean(said: str | None, tool: str) -> None:
    """`unknown` when empty; cut to 256 characters; no NUL and no half of a character."""
    kept = Kept()
    calls = ToolCalls("r", [kept])
    calls.unreadable(said, "", error_type="", message="")
    calls.planned(said or "", {}, args_schema_version=said).error(said or "", "")
    assert {event.tool for event in kept.events} == {tool}
    assert kept.results[0].error_type == "Error"


def test_a_request_has_a_name() -> None:
    """An empty one gets a fresh id; a secret becomes its hash; a long one is cut."""
    first, second = ToolCalls("", []), ToolCalls("", [])
    assert first.request_id
    assert first.request_id != second.request_id
    assert TOKEN not in ToolCalls(TOKEN, []).request_id
    assert ToolCalls(TOKEN, []).request_id == ToolCalls(TOKEN, []).request_id
    assert ToolCalls("r" * 300, []).request_id == "r" * 256


def test_a_message_is_masked_and_bounded() -> None:
    """By form, by the masked arguments it repeats, and to 500 characters, however long it was."""
    kept = Kept()
    call = ToolCalls("r", [kept]).planned("login", {"password": "hunter22", "user": "ada"})
    call.error(TOKEN, f"{TOKEN}: ada may not use hunter22\x00 " + "x" * 100_000)
    (result,) = kept.results
    assert "hunter22" not in result.message
    assert TOKEN not in result.message
    assert "ada may not use [redacted:string:1-8]� xxx" in result.message
    assert len(result.message) == 500
    assert result.message.endswith("…")
    assert TOKEN not in str(result.error_type)
    (whole,) = kept.calls
    assert len(whole.error.message) > 100_000  # the recorder masks it


@given(arguments=st.dictionaries(st.text(min_size=8), st.text(min_size=8)), result=st.text())
def test_no_event_holds_an_argument_or_a_result(arguments: JsonObject, result: str) -> None:
    """The fields of a success are names, numbers and a hash, whatever was sent and came back."""
    kept = Kept()
    call = ToolCalls("r", [kept]).planned("a", arguments, args_schema_version="2")
    call.ok(result, latency_ms=1)
    hashed = args_preview_hash(arguments, tool="a")
    assert dumped(kept) == [
        {"event": "ToolCallPlanned", "request_id": "r", "tool": "a", "seq": 0,
         "args_preview_hash": hashed, "args_schema_version": "2"},
        {"event": "ToolCallResult", "request_id": "r", "tool": "a", "seq": 0,
         "status": "ok", "latency_ms": 1.0},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": list(range(300))}, {"a": "é" * 300}, {"a": ["x" * 30] * 9, "b": {}},
        {f"{n * 7 % 251}": n for n in range(300)}, {"a": {f"{n * 7 % 251}": 0 for n in range(300)}},
        {"a": [[["y"] * 210] * 3] * 210},
    ],
)  # fmt: skip
def test_only_the_head_is_needed(arguments: JsonObject) -> None:
    """However wide or deep: the first 200 characters of canonical JSON are those of the whole."""
    assert args_preview_hash(arguments) == sha256(canonical_json(arguments)[:200])


def test_the_hash_is_the_seeds_where_there_is_no_secret() -> None:
    """SHA-256 of the canonical JSON's first 200 characters: equal calls, whatever their order."""
    arguments: JsonObject = {"b": [1, 2.0, None], "a": "é" * 300}
    assert args_preview_hash({"topK": 5, "query": "x"}) == sha256('{"query":"x","topK":5}')
    assert args_preview_hash(arguments) == sha256(canonical_json(arguments)[:200])
    assert args_preview_hash(dict(reversed(arguments.items()))) == args_preview_hash(arguments)
    assert args_preview_hash({"a": 1}) != args_preview_hash({"a": 2})
    assert args_preview_hash({"a": "x" * 300}) == args_preview_hash({"a": "x" * 301})


def test_the_hash_tells_nothing_of_a_secret() -> None:
    """Calls that differ only in a secret have one hash, so none can be found by trying."""
    redactor = Redactor.create(extra_names=["pin"], allowlists={"strict": ["query"]})

    def hashed(arguments: JsonObject, tool: str = "t") -> str:
        return args_preview_hash(arguments, tool, redactor)

    assert hashed({"user": "ada", "password": "1234"}) == hashed(
        {"user": "ada", "password": "9999"}
    )
    assert hashed({"user": "ada", "pin": "1234"}) == hashed({"user": "ada", "pin": "9999"})
    assert hashed({"user": "ada", "pin": "1234"}) != hashed({"user": "ben", "pin": "1234"})
    assert hashed({"q": TOKEN}) == hashed({"q": TOKEN[:-1] + "x"})
    assert hashed({"query": "a", "other": "b"}) != hashed({"query": "a", "other": "b"}, "strict")
    kept = Events()
    for token in (TOKEN, TOKEN[:-1] + "x"):
        calls = ToolCalls("r", [kept], redactor=redactor)
        calls.unreadable("t", '{"q":' + token, error_type="E", message="m")
    first, second = (event for event in kept.events if isinstance(event, ToolCallPlanned))
    assert first.args_preview_hash == second.args_preview_hash


def test_what_is_no_sink_is_refused() -> None:
    """With the cure, before anything is called."""
    with pytest.raises(ConfigurationError, match="CallbackSink"):
        ToolCalls("r", [print])  # type: ignore[list-item]  # the mistake


ENDINGS = ["ok", "error", "abandon"]
steps = st.one_of(
    st.just(("plan", 0)),
    st.just(("unreadable", 0)),
    st.tuples(st.sampled_from(ENDINGS), st.integers(0, 9)),
)
"""What a caller does: plan, or end one of the calls that were planned, perhaps once more."""


def end(call: PlannedCall, how: str) -> None:
    if how == "ok":
        call.ok()
    elif how == "error":
        call.error("E", "m")
    else:
        call.abandon()


def walk(calls: ToolCalls, script: list[tuple[str, int]]) -> int:
    """Do what it says; how many of the calls were ended."""
    planned: list[PlannedCall] = []
    ended: set[int] = set()
    for step, which in script:
        if step == "plan":
            planned.append(calls.planned("t", {"n": len(planned)}))
        elif step == "unreadable":
            calls.unreadable("t", "{", error_type="unreadable", message="m")
        elif which < len(planned):
            end(planned[which], step)
            ended.add(which)
    return len(ended) + sum(step == "unreadable" for step, _ in script)


@given(script=st.lists(steps, max_size=30))
def test_any_order_of_calls_gives_ordered_events(script: list[tuple[str, int]]) -> None:
    """Planned 0, 1, 2, ...; every result once, after its plan; whole calls with their results."""
    kept = Kept()
    ended = walk(ToolCalls("r", [kept]), script)
    check_order(kept.events)
    assert len(kept.results) == ended
    known = [result for result in kept.results if result.error_type in {None, "E"}]
    told = [(call.sequence, "ok" if call.error is None else "error") for call in kept.calls]
    assert told == [(result.seq, result.status) for result in known]


def test_a_program_that_is_stopped_in_a_sink_can_go_on() -> None:
    """Ctrl-C reaches the program, and later events are handed over as before."""
    kept = Events()

    class Stopping:
        def emit(self, event: ToolCallEvent) -> None:
            if event.seq == 0:
                raise KeyboardInterrupt

    calls = ToolCalls("r", [kept, Stopping()])
    with pytest.raises(KeyboardInterrupt):
        calls.planned("t", {})
    calls.planned("t", {}).ok()
    check_order(kept.events)
    assert len(kept.events) == 3


# Of reflected calls: every attempt, and what was given up.


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
