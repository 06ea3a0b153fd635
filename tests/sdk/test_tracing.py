"""Spans of attempts, and where the caller is in its trace on the way to the service."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.baggage import set_baggage
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from aftercall import AsyncClient, Client
from aftercall import span_export as sending
from aftercall.adapters.hooks import CallHooks
from aftercall.reflection import ReflectedResult, call_with_reflection, call_with_reflection_sync
from aftercall.span_export import export_spans
from aftercall.tracing import TracingObserver
from tests.sdk.loopback import Loopback
from tests.sdk.scripted_advice import (
    TWINS,
    AsyncScripted,
    PickyTool,
    Records,
    ScriptedService,
    SyncScripted,
    answer,
    change,
    reflected_by,
    suggestion,
)
from tests.sdk.tracing_collector import Collector, Spans, id_of, parent_of, trace_of

ATTEMPT, ASKED = "execute_tool rag_query", "aftercall.suggest"
BAD: dict[str, Any] = {"query": "who-is-ill", "topK": 50}
GOOD: dict[str, Any] = {"query": "who-is-ill", "topK": 10}
LIMIT = suggestion(change("/topK", 10, before=50), confidence=0.93)

Run = Callable[..., Awaitable[tuple[ReflectedResult[str], ScriptedService, Records]]]


@pytest.fixture
def spans() -> Spans:
    return Spans()


def given(spans: Spans) -> dict[str, Any]:
    """What a call is given besides its tool and client."""
    return {
        "tool_name": "rag_query", "parameters": BAD, "agent": "a", "recorder": Records(),
        "observers": [TracingObserver(spans.provider)],
    }  # fmt: skip


@pytest.fixture(params=TWINS)
def run(request: pytest.FixtureRequest, spans: Spans) -> Run:
    """Calls a tool through one of the twins, with a tracing observer."""
    return partial(
        reflected_by, request.param, parameters=dict(BAD), server_name="library", session_id="s-1",
        context="find the ill one", observers=[TracingObserver(spans.provider)],
    )  # fmt: skip


async def test_a_repaired_call_has_a_span_per_attempt_by_the_conventions(
    run: Run, spans: Spans
) -> None:
    """Names, ids, numbers and the type of the error are in them."""
    reflected, _, records = await run(PickyTool(GOOD), answer(LIMIT))
    assert reflected.repaired
    first, second = spans.named(ATTEMPT)
    failed, mended = records.executions
    shared = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "rag_query",
        "gen_ai.agent.name": "librarian",
        "gen_ai.conversation.id": "s-1",
        "aftercall.server_name": "library",
    }
    assert first.attributes == {
        **shared,
        "aftercall.execution_id": failed.execution_id,
        "aftercall.attempt": 1,
        "error.type": "ValueError",
    }
    assert second.attributes == {
        **shared,
        "aftercall.execution_id": mended.execution_id,
        "aftercall.attempt": 2,
        "aftercall.repair_of": failed.execution_id,
        "aftercall.suggestion.id": LIMIT.suggestion_id,
        "aftercall.suggestion.confidence": 0.93,
    }
    kinds = [each.kind for each in (first, second, spans.one(ASKED))]
    assert kinds == [SpanKind.INTERNAL, SpanKind.INTERNAL, SpanKind.CLIENT]
    codes = [each.status.status_code for each in (first, second)]
    assert codes == [StatusCode.ERROR, StatusCode.UNSET]


async def test_nothing_of_a_call_is_in_its_spans(run: Run, spans: Spans) -> None:
    """No argument, result, context or message: neither as attribute nor event nor description."""
    await run(PickyTool(GOOD, message="not for who-is-ill"), answer(LIMIT))
    await run(PickyTool(message="not for who-is-ill"), RuntimeError("who-is-ill unanswered"))
    assert len(spans.ended) == 5
    for private in ("who-is-ill", "topK", "done", "find the ill one", "unanswered", "hard limit"):
        assert private not in spans.text
    assert not any(span.events or span.status.description for span in spans.ended)


@pytest.mark.parametrize("has_caller", [True, False])
async def test_a_call_is_in_one_trace(run: Run, spans: Spans, has_caller: bool) -> None:
    """The caller's, with the attempts below its span; or the first attempt's own."""
    if has_caller:
        with spans.tracer.start_as_current_span("caller"):
            _, _, records = await run(PickyTool(GOOD), answer(LIMIT))
    else:
        _, _, records = await run(PickyTool(GOOD), answer(LIMIT))
    first, second = spans.named(ATTEMPT)
    asked = spans.one(ASKED)
    [trace_id] = {trace_of(span) for span in spans.ended}
    assert {each.trace_id for each in records.executions} == {f"{trace_id:032x}"}
    assert parent_of(asked) == id_of(first)
    if has_caller:
        assert parent_of(first) == parent_of(second) == id_of(spans.one("caller"))
    else:
        assert parent_of(first) is None
        assert parent_of(second) == id_of(first)


async def test_two_calls_at_once_do_not_mix(spans: Spans) -> None:
    """Each has its own trace, and its own tool below it."""
    meet = asyncio.Barrier(2)

    async def tool(parameters: Any) -> str:
        await meet.wait()
        with spans.tracer.start_as_current_span(f"inside {parameters['n']}"):
            await meet.wait()
        return "done"

    def called(name: str) -> Awaitable[Any]:
        named = {"tool_name": name, "parameters": {"n": name}}
        return call_with_reflection(tool, client=AsyncScripted(), **given(spans) | named)

    await asyncio.gather(called("one"), called("two"))
    for name in ("one", "two"):
        assert parent_of(spans.one(f"inside {name}")) == id_of(spans.one(f"execute_tool {name}"))


async def test_a_call_that_is_given_up_ends_its_span(spans: Spans) -> None:
    """Cancelled in the middle: nobody says how it ended, and the span is sent all the same."""
    is_running = asyncio.Event()

    async def tool(_: Any) -> str:
        is_running.set()
        await asyncio.Event().wait()
        return "never"

    calling = asyncio.ensure_future(
        call_with_reflection(tool, client=AsyncScripted(), **given(spans))
    )
    await is_running.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    span = spans.one(ATTEMPT)
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["error.type"] == "CancelledError"


async def test_the_end_may_be_told_elsewhere(
    spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    """Hooks of a gateway run in tasks of their own: nothing is complained of, nothing lingers."""
    hooks = CallHooks(
        client=AsyncScripted(), recorder=Records(), observers=[TracingObserver(spans.provider)]
    )
    key = await asyncio.to_thread(hooks.pre, "rag_query", BAD)
    await hooks.post("done", key=key)
    assert spans.one(ATTEMPT)
    assert not caplog.records
    assert not trace.get_current_span().get_span_context().is_valid


TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]")
"""Sampled; a trace id may be said to be random, too."""


async def test_every_request_carries_the_callers_place(
    call: Any, service: Loopback, spans: Spans
) -> None:
    """`traceparent` of the current span, in both clients; baggage stays at home."""
    token = attach(set_baggage("patient", "who-is-ill"))
    try:
        with spans.tracer.start_as_current_span("caller") as span:
            await call("status")
    finally:
        detach(token)
    headers = service.requests[-1].headers
    found = TRACEPARENT.fullmatch(headers["traceparent"])
    assert int(found[1], 16) == span.get_span_context().trace_id
    assert int(found[2], 16) == span.get_span_context().span_id
    assert "baggage" not in headers


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_the_question_is_asked_below_the_failed_attempt(
    service: Loopback, spans: Spans, kind: str
) -> None:
    """Also by the synchronous twin, which asks in a thread of its own."""
    settings = given(spans) | {"parameters": dict(BAD)}
    if kind == "async":
        async with AsyncClient(service.url) as client:
            await call_with_reflection(PickyTool().run_async, client=client, **settings)
    else:
        with Client(service.url) as blocking:
            call_with_reflection_sync(PickyTool().run, client=blocking, **settings)
    (asked,) = [each for each in service.requests if each.path == "/suggest"]
    found = TRACEPARENT.fullmatch(asked.headers["traceparent"])
    assert int(found[1], 16) == trace_of(spans.one(ATTEMPT))
    assert int(found[2], 16) == id_of(spans.one(ASKED))


def test_a_question_that_is_not_answered_says_so(spans: Spans) -> None:
    """The service is away: the span of the question has the type of what was raised."""
    with Client("http://127.0.0.1:1", retries=0) as client:
        call_with_reflection_sync(PickyTool().run, client=client, **given(spans))
    asked = spans.one(ASKED)
    assert asked.status.status_code is StatusCode.ERROR
    assert (asked.attributes or {})["error.type"] == "ServiceUnreachableError"


def test_spans_are_sent_by_the_real_exporter() -> None:
    """OTLP over HTTP, packed; all that was traced has arrived when the block ends."""
    with Collector() as collector:
        with export_spans(
            {"service.name": "mine"}, url=collector.url, close_within_s=10
        ) as provider:
            call_with_reflection_sync(
                PickyTool(BAD).run, tool_name="rag_query", parameters=BAD, agent="a",
                client=SyncScripted(), recorder=Records(), observers=[TracingObserver(provider)],
            )  # fmt: skip
        (span,) = collector.spans
    assert (span.service, span.name, span.kind) == ("mine", ATTEMPT, "INTERNAL")
    assert span.attributes["gen_ai.operation.name"] == "execute_tool"
    assert collector.encodings == {"gzip"}
    assert not isinstance(trace.get_tracer_provider(), TracerProvider)


def test_a_collector_that_hangs_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The block ends while the exporter still waits, which nothing releases before."""
    begun, release = threading.Event(), threading.Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            begun.set()
            release.wait()
            return super().export(spans)

    monkeypatch.setattr(sending, "OTLPSpanExporter", lambda **_: Hanging())
    with export_spans({"service.name": "mine"}, url="http://x/", close_within_s=0.05) as provider:
        provider.get_tracer("t").start_span("s").end()
    assert begun.wait(10)
    assert "not delivered in time" in caplog.text
    release.set()
