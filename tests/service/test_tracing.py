"""The service's own spans: of requests and their stages, sent away, and never in anybody's way."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from aftercall import AsyncClient, Client
from aftercall.reflection import call_with_reflection
from aftercall.span_export import export_spans
from aftercall.stages import measured_by
from aftercall.tracing import TracingObserver
from service.context import Context, Lifecycle, open_context
from service.server import create_app, open_tracing
from service.spans import RequestSpans, StageSpans
from tests.sdk.scripted_advice import PickyTool, Records
from tests.sdk.tracing_collector import Collector, Spans, id_of, parent_of, trace_of
from tests.service.running_service import (
    ROOT,
    eventually,
    execution,
    failure,
    hashing_settings,
    serving,
)

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}

STAGES = {"suggest.answer", "suggest.read_context", "suggest.read_tool"}


@dataclass
class Traced:
    """An app with spans, and who asks it."""

    spans: Spans
    client: httpx2.AsyncClient
    context: Context

    def requests(self) -> list[ReadableSpan]:
        return [span for span in self.spans.ended if span.kind is SpanKind.SERVER]


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Traced]:
    """The service's own app in this process, whose spans are kept in memory."""
    spans, lifecycle, settings = Spans(), Lifecycle(), hashing_settings(tmp_path)
    stages = StageSpans(spans.tracer)
    spanned = RequestSpans(create_app(settings, lifecycle), spans.tracer, stages)
    with measured_by(stages):
        async with open_context(settings) as context:
            lifecycle.context = context
            transport = httpx2.ASGITransport(app=spanned)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://127.0.0.1:8799"
            ) as client:
                yield Traced(spans, client, context)


def _question(**fields: Any) -> dict[str, Any]:
    asked = failure(**fields)
    return {"execution": asked}


async def test_a_request_has_a_span_by_the_stable_conventions(app: Traced) -> None:
    """Named by the route's template, below the caller's span."""
    answered = await app.client.post("/suggest", json=_question(), headers=CALLER)

    assert answered.status_code == 200
    (span,) = app.requests()
    assert span.name == "POST /suggest"
    assert f"{trace_of(span):032x}" == TRACE
    assert f"{parent_of(span):016x}" == PARENT
    assert span.context.trace_state.get("vendor") == "1"
    assert span.attributes == {
        "http.request.method": "POST", "http.route": "/suggest", "http.response.status_code": 200,
        "url.scheme": "http", "server.address": "127.0.0.1", "server.port": 8799,
    }  # fmt: skip
    assert span.status.status_code is StatusCode.UNSET


async def test_the_stages_of_an_answer_are_below_its_request(app: Traced) -> None:
    """What takes time on the way of an answer, and what the answer was."""
    answered = (await app.client.post("/suggest", json=_question())).json()

    (request,) = app.requests()
    inner = {span.name: span for span in app.spans.ended if span.name.startswith("suggest.")}
    assert set(inner) == STAGES
    assert {parent_of(span) for span in inner.values()} == {id_of(request)}
    told = inner["suggest.answer"].attributes or {}
    assert told["aftercall.category"] == answered["pattern"]["category"]
    assert told["aftercall.abstained"] == answered["abstained"]
    assert told["aftercall.suggestions"] == len(answered["suggestions"])
    assert told["aftercall.confidence"] == answered["suggestions"][0]["confidence"]


async def test_recording_and_learning_are_seen(app: Traced) -> None:
    """The write of an intake is below its request; a batch of the indexer is a trace of its own."""
    records = [execution(), failure()]
    await app.client.post("/executions", json=records)
    await asyncio.to_thread(eventually, lambda: app.spans.named("indexer.embed"))

    appended = app.spans.one("intake.append")
    assert parent_of(appended) == id_of(app.requests()[0])
    assert appended.attributes == {"aftercall.executions": 2, "aftercall.accepted": 2}
    learned = app.spans.named("indexer.learn")
    assert sum(int((span.attributes or {})["aftercall.records"]) for span in learned) == 2
    assert all(parent_of(span) is None for span in learned)


async def test_nothing_of_a_call_is_in_the_spans(app: Traced) -> None:
    """Neither values nor messages nor ids in paths, whatever comes of the request."""
    private = "who-is-ill"
    call = {
        "parameters": {"query": private, "topK": 50},
        "context": private,
        "error": {"type": "ValidationError", "message": f"{private}: topK must be <= 10"},
        "sessionId": private,
        "agent": private,
    }
    await app.client.post("/executions", json=failure(**call))
    await app.client.post("/suggest", json=_question(**call))
    await app.client.get(f"/executions/{private}")
    await app.client.get(f"/{private}?q={private}")
    await app.client.post("/suggest", content=private, headers={"x-request-id": private})
    await app.client.request(private.upper(), "/suggest")

    assert len(app.requests()) == 6
    assert private not in app.spans.text.casefold()
    assert not any(span.events or span.status.description for span in app.spans.ended)
    assert [span.name for span in app.requests()] == [
        "POST /executions", "POST /suggest", "GET /executions/{executionId}", "GET",
        "POST /suggest", "HTTP /suggest",
    ]  # fmt: skip


async def test_mcps_trace_context_is_followed(app: Traced) -> None:
    """Of `_meta` of a call at `/mcp` (SEP-414); without one, the stages are below the request."""
    failed = {"message": "Invalid parameter: topK must be <= 10"}
    arguments = {"tool_name": "rag_query", "parameters": {"topK": 50}, "error": failed}
    call = {"name": "suggest_fix", "arguments": arguments}
    for params in (call, {**call, "_meta": CALLER}):
        answered = await app.client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            headers={"accept": "application/json", "mcp-protocol-version": "2025-11-25"},
        )
        assert not answered.json()["result"]["isError"]

    by_http, _ = app.requests()
    below, followed = app.spans.named("suggest.answer")
    assert parent_of(below) == id_of(by_http)
    assert (f"{trace_of(followed):032x}", f"{parent_of(followed):016x}") == (TRACE, PARENT)


async def test_what_machines_ask_all_the_time_is_not_traced(app: Traced) -> None:
    """And what takes spans, or a service that sends its own to itself would never rest."""
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await app.client.get(path, headers=CALLER)).status_code == 200
    for path in ("/v1/traces", "/v1/traces/"):
        await app.client.post(path, headers=CALLER)
    assert app.spans.ended == []


async def test_the_log_line_names_the_trace(app: Traced, caplog: pytest.LogCaptureFixture) -> None:
    """So that whoever has one finds the other; a request that is not traced has none."""
    with caplog.at_level(logging.DEBUG, logger="service.middleware"):
        await app.client.get("/status", headers=CALLER)
        await app.client.get("/healthz", headers=CALLER)
    traced, quiet = (record.__dict__["aftercall_fields"] for record in caplog.records)
    assert traced["trace_id"] == TRACE
    assert "trace_id" not in quiet


async def test_an_error_of_ours_is_one(app: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 500 marks the span, by its status alone; a 404 is the caller's."""

    def broken(*_: Any) -> Any:
        raise RuntimeError("who-is-ill")

    await app.client.get(f"/executions/{execution()['executionId']}")
    monkeypatch.setattr(type(app.context.store.events), "find_events", broken)
    await app.client.get(f"/executions/{execution()['executionId']}")

    missing, failed = app.requests()
    assert missing.status.status_code is StatusCode.UNSET
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "500"
    assert "who-is-ill" not in app.spans.text


@contextmanager
def _sending(collector: Collector) -> Iterator[TracingObserver]:
    with export_spans({"service.name": "agent"}, url=collector.url, close_within_s=10) as provider:
        yield TracingObserver(provider)


@pytest.mark.real
async def test_one_trace_from_the_agents_call_to_the_services_stages(tmp_path: Path) -> None:
    """The real SDK, service, exporters and a collector: attempt, question, request and stages."""
    with Collector() as collector:
        environ = {"AFTERCALL_TRACING_URL": collector.url}
        with serving(tmp_path / "data", environ=environ) as service:
            with _sending(collector) as observer:
                async with AsyncClient(service.url) as client:
                    reflected = await call_with_reflection(
                        PickyTool().run_async, tool_name="rag_query",
                        parameters={"query": "who-is-ill", "topK": 50}, agent="librarian",
                        client=client, recorder=Records(), observers=[observer], may_repeat=True,
                    )  # fmt: skip
            assert service.stop() == 0

    attempts = collector.named("execute_tool rag_query")
    asked = collector.named("aftercall.suggest")
    requests = collector.named("POST /suggest")
    assert len(attempts) == len(reflected.attempts) >= 2
    assert len(asked) == len(requests) >= 1
    assert {span.service for span in attempts} == {"agent"}
    assert {span.service for span in requests} == {"aftercall"}
    family = [span for span in collector.spans if span.trace_id == attempts[0].trace_id]
    assert {"suggest.read_tool", "suggest.answer"} <= {s.name for s in family}
    assert requests[0].trace_id == attempts[0].trace_id
    assert requests[0].parent_id in {span.span_id for span in asked}
    assert {span.parent_id for span in asked} <= {span.span_id for span in attempts}
    (answered, *_) = collector.named("suggest.answer")
    assert answered.parent_id in {span.span_id for span in requests}
    assert not any(b"who-is-ill" in body for body in collector.bodies)


async def test_only_a_share_is_sent_and_a_callers_choice_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a share of 0 nothing is sent but what a caller samples."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    unsampled = {"traceparent": CALLER["traceparent"][:-2] + "00"}
    with Collector() as collector:
        settings = hashing_settings(tmp_path, tracing={"url": collector.url})
        with open_tracing(settings) as with_spans:
            app = with_spans(create_app(settings, Lifecycle()))  # its services are not open: 503
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                await client.get("/status")
                await client.get("/boundaries", headers=CALLER)
                await client.get("/tools", headers=unsampled)
    (span,) = collector.spans
    assert (span.service, span.name, span.trace_id) == ("aftercall", "GET /boundaries", TRACE)
    assert span.attributes["error.type"] == "503"
    assert collector.encodings == {"gzip"}


@pytest.mark.real
def test_a_collector_that_is_away_harms_nobody(tmp_path: Path) -> None:
    """Requests are answered, and the service ends in order, within its time."""
    environ = {
        "AFTERCALL_TRACING_URL": "http://127.0.0.1:1/v1/traces",
        "AFTERCALL_SERVER_SHUTDOWN_S": "1",
    }
    with serving(tmp_path / "data", environ=environ) as service, Client(service.url) as client:
        assert client.status().executions == 0
        assert service.stop() == 0


@pytest.mark.real
def test_without_the_extra_the_start_says_what_to_install(tmp_path: Path) -> None:
    """In one line, before anything is opened."""
    source = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from aftercall.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, "serve", "--port", "0", "--data-dir", str(tmp_path / "d")],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={"AFTERCALL_TRACING_URL": "http://127.0.0.1:1/v1/traces", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "./sdk '.[otel]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists()
