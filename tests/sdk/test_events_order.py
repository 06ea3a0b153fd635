"""Events: their order, and that nothing comes twice, whatever calls, threads and sinks do."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercall.events import FinishedCall, PlannedCall, ToolCallEvent, ToolCallPlanned, ToolCalls
from aftercall.events.calls import COMPLAINTS
from tests.sdk.event_records import Events, Kept, check_order

ENDINGS = ["ok", "error", "abandon"]
steps = st.one_of(
    st.just(("plan", 0)),
    st.just(("unreadable", 0)),
    st.tuples(st.sampled_from(ENDINGS), st.integers(0, 9)),
)
"""What a caller does: plan, or end one of the calls that were planned, perhaps once more."""


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Complaints are made once a minute; here, once a test."""
    COMPLAINTS.forget()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


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
    assert [(call.seq, call.status) for call in kept.calls] == [(r.seq, r.status) for r in known]


@settings(max_examples=30)
@given(scripts=st.lists(st.lists(steps, max_size=12), min_size=2, max_size=4))
def test_threads_give_ordered_events(scripts: list[list[tuple[str, int]]]) -> None:
    """Several threads in one request: the same promise, and all sinks have the same order."""
    first, second = Events(), Events()
    calls = ToolCalls("r", [first, second])
    start = threading.Barrier(len(scripts))

    def run(script: list[tuple[str, int]]) -> int:
        start.wait()
        return walk(calls, script)

    with ThreadPoolExecutor(len(scripts)) as pool:
        ended = sum(pool.map(run, scripts))
    check_order(first.events)
    assert first.events == second.events
    assert sum(not isinstance(event, ToolCallPlanned) for event in first.events) == ended


@pytest.mark.usefixtures("hasty")
def test_hasty_threads_give_ordered_events() -> None:
    """Many calls of four threads that change places in the middle of them."""
    kept = Events()
    calls = ToolCalls("r", [kept])
    start = threading.Barrier(4)

    def run(_: int) -> None:
        start.wait()
        for _ in range(300):
            calls.planned("t", {}).ok()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    check_order(kept.events)
    assert len(kept.events) == 2400


@pytest.mark.usefixtures("hasty")
def test_threads_that_end_one_call_end_it_once() -> None:
    """Of many words at a time the first counts."""
    kept = Kept()
    calls = ToolCalls("r", [kept])
    start = threading.Barrier(8)
    for _ in range(20):
        call = calls.planned("t", {})

        def run(how: str, call: PlannedCall = call) -> None:
            start.wait()
            end(call, how)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, (ENDINGS * 3)[:8]))
    check_order(kept.events)
    assert len(kept.results) == 20


def test_when_planned_returns_the_sinks_have_the_event() -> None:
    """Whoever asks a sink after a call has said something finds it there, in any thread."""
    kept = Events()
    calls = ToolCalls("r", [kept])

    def run(number: int) -> None:
        call = calls.planned("t", {})
        assert call.seq in {event.seq for event in list(kept.events)}
        call.ok()
        mine = [event for event in list(kept.events) if event.seq == call.seq]
        assert len(mine) == 2

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(100)))


def test_a_sink_may_plan_the_next_call() -> None:
    """Its event follows when all sinks have the present one, and nothing hangs."""
    last = Events()

    class Chaining:
        def emit(self, event: ToolCallEvent) -> None:
            if isinstance(event, ToolCallPlanned) and event.seq < 3:
                calls.planned("next", {}).ok()

    calls = ToolCalls("r", [Chaining(), last])
    calls.planned("first", {}).ok()
    check_order(last.events)
    assert Counter(type(event).__name__ for event in last.events) == {
        "ToolCallPlanned": 4,
        "ToolCallResult": 4,
    }


class Broken:
    def emit(self, event: ToolCallEvent) -> None:
        raise ValueError(f"secret words of {event}")

    def finished(self, call: FinishedCall) -> None:
        raise ValueError(f"secret words of {call}")


def test_a_sink_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Call and other sinks go on; it is logged by its type, once, whatever the request."""
    kept = Kept()
    for _ in range(5):
        calls = ToolCalls("r", [Broken(), kept, Broken()])
        calls.planned("t", {}).ok("result")
        calls.unreadable("t", "{", error_type="E", message="m")
    assert (len(kept.events), len(kept.calls)) == (20, 5)
    (record,) = caplog.records
    assert record.getMessage().startswith("Broken failed with ValueError")
    assert "secret" not in caplog.text


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
