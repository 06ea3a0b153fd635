"""`POST /v1/traces` with the real OpenTelemetry SDK and exporter: their spans are learned from."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status as SpanStatus
from opentelemetry.trace import StatusCode, Tracer, format_span_id, format_trace_id

from ingest.formats.otlp.reading import execution_id_of
from mongo.errors import StoreError
from service.api.executions import PassedOverSpans
from tests.ingest.otlp_samples import START_NS, Json, in_protobuf, request, span, tool_span
from tests.service.running_service import RunningService

pytestmark = pytest.mark.real

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
GZIP = {"content-encoding": "gzip"}


def provider_to(
    service: RunningService, compression: Compression = Compression.Gzip
) -> TracerProvider:
    """Of tracers whose spans go to the service in batches, by OpenTelemetry's own exporter."""
    url = service.url + "/v1/traces"
    provider = TracerProvider(resource=Resource.create({"service.name": "helpdesk"}))
    exporter = OTLPSpanExporter(url, compression=compression, timeout=20)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@pytest.fixture(params=[Compression.Gzip, Compression.NoCompression], ids=["gzip", "plain"])
def tracer(
    request: pytest.FixtureRequest, service: RunningService
) -> Iterator[tuple[Tracer, TracerProvider]]:
    provider = provider_to(service, request.param)
    yield provider.get_tracer("tests"), provider
    provider.shutdown()


def call_tool(tracer: Tracer, session: str, top_k: int, **more: str) -> str:
    """One call of a tool that takes at most 10, traced as instrumentations do; its span's id."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "otel_query",
        "gen_ai.tool.call.arguments": json.dumps({"query": f"about {session}", "topK": top_k}),
        "gen_ai.conversation.id": session,
        **more,
    }
    with tracer.start_as_current_span("execute_tool otel_query", attributes=attributes) as span:
        if top_k > 10:
            problem = ValueError("Invalid parameter: topK must be <= 10")
            span.record_exception(problem)
            span.set_attribute("error.type", "ValueError")
            span.set_status(SpanStatus(StatusCode.ERROR, str(problem)))
        else:
            span.set_attribute("gen_ai.tool.call.result", json.dumps({"matches": top_k}))
        context = span.get_span_context()
    return execution_id_of(format_trace_id(context.trace_id), format_span_id(context.span_id))


def stored(service: RunningService, execution_id: str) -> Json:
    """An execution as the service has it."""
    response = service.client.get(f"/executions/{execution_id}")
    assert response.status_code == 200, response.text
    execution: Json = response.json()
    return execution


def test_what_the_exporter_sends_is_recorded(
    service: RunningService, tracer: tuple[Tracer, TracerProvider]
) -> None:
    """Failures with their exception, successes with their result, the agent from the span above."""
    trace, provider = tracer
    with trace.start_as_current_span("invoke_agent", attributes={"gen_ai.agent.name": "ada"}):
        failed = call_tool(trace, "s-1", 50)
        right = call_tool(trace, "s-1", 7)
    assert provider.force_flush()
    failure, success = stored(service, failed), stored(service, right)
    assert failure["error"]["type"] == "ValueError"
    assert failure["error"]["message"] == "Invalid parameter: topK must be <= 10"
    assert "ValueError" in failure["error"]["stack"]
    assert failure["parameters"]["topK"] == 50
    assert (success["outcome"], success["result"]) == ("success", {"matches": 7})
    assert {failure["agent"], success["agent"]} == {"ada"}
    assert {failure["sessionId"], success["sessionId"]} == {"s-1"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "its calls were reported without them"),
        ({"gen_ai.tool.call.arguments": '{"query": "x"}'}, "one caller's own so far"),
    ],
)
def test_a_tool_of_whose_parameters_none_is_told_says_why(
    service: RunningService, more: dict[str, str], why: str
) -> None:
    """Instead of an empty frame."""
    provider = provider_to(service)
    tool = f"silent_query_{len(more)}"
    name = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, **more}
    with provider.get_tracer("tests").start_as_current_span("execute_tool", attributes=name):
        pass
    provider.shutdown()
    service.learned()
    known = service.client.get("/known-tools", params={"tool": tool}).text
    assert f"parameters not known: {why}" in known
    assert "(?)" in known


def finished_spans() -> tuple[ReadableSpan, ...]:
    """Three calls of the real SDK, not exported."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for number in range(3):
        call_tool(provider.get_tracer("tests"), f"memory-{number}", 2)
    provider.shutdown()
    return memory.get_finished_spans()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_whole_success_is_an_empty_message(service: RunningService, packed: bool) -> None:
    """In the encoding of the request; `partial_success` is not set."""
    body = encode_spans(finished_spans()).SerializeToString()
    extra = GZIP if packed else {}
    body = gzip.compress(body) if packed else body
    response = service.client.post("/v1/traces", content=body, headers=PROTOBUF | extra)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == "application/x-protobuf"
    value = json.dumps(request(tool_span(77))).encode()
    value = gzip.compress(value) if packed else value
    response = service.client.post("/v1/traces", content=value, headers=JSON | extra)
    assert (response.status_code, response.json()) == (200, {})
    assert response.headers["content-type"] == "application/json"


def test_partial_success_counts_and_explains(service: RunningService) -> None:
    """The same in both encodings: how many, the first five with their places, how many more."""
    bad = [tool_span(n, more={"gen_ai.tool.name": n}) for n in range(1, 9)]
    value = request(tool_span(101), *bad, tool_span(102))
    response = service.client.post("/v1/traces", json=value)
    partial = response.json()["partialSuccess"]
    assert (response.status_code, partial["rejectedSpans"]) == (200, "8")
    message = partial["errorMessage"]
    assert message.count("spans[") == 5
    assert "scopeSpans[0].spans[1]: gen_ai.tool.name is a number" in message
    assert message.endswith("and 3 more")
    response = service.client.post("/v1/traces", content=in_protobuf(value), headers=PROTOBUF)
    answered = ExportTraceServiceResponse.FromString(response.content).partial_success
    assert (answered.rejected_spans, answered.error_message) == (8, message)
    assert len(message) < 2_000


def test_what_is_passed_over_is_said_once_by_instrumentation(service: RunningService) -> None:
    """The first time, and not in each answer: exporters warn of every one that says something."""
    chat = span(1, {"gen_ai.operation.name": "chat"}, spanId="00000000000000aa")
    value = request(chat, tool_span(110))
    value["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "some.instrumentation"}
    told = service.client.post("/v1/traces", json=value).json()["partialSuccess"]
    said = "passed over, as they are no calls of tools: 1 of some.instrumentation"
    assert told == {"errorMessage": said}
    assert service.client.post("/v1/traces", json=value).json() == {}


def test_counts_are_said_an_hour_later_and_of_each_workspace_alone() -> None:
    """Nothing of what another workspace sent; names beyond a bound are others."""
    now = [0.0]
    spans = PassedOverSpans(clock=lambda: now[0])
    assert spans.count_spans("one", {"a": 2, "b": 1}).endswith(": 2 of a, 1 of b")
    assert spans.count_spans("one", {"a": 5}) is None
    assert spans.count_spans("two", {"a": 1}).endswith(": 1 of a")
    now[0] = 3600.0
    assert spans.count_spans("one", {"a": 1}).endswith(": 6 of a")
    for number in range(1000):
        spans.count_spans("one", {f"name {number}": 1})
    assert spans.count_spans("three", {"z": 4}).endswith(": 4 of others")


def test_another_span_with_the_same_ids_is_rejected(service: RunningService) -> None:
    """Such as of two processes with one random seed: the first one stays, the reason is placed."""
    first = tool_span(104)
    other = tool_span(104, startTimeUnixNano=str(START_NS + 10**9))
    service.client.post("/v1/traces", json=request(first))
    partial = service.client.post("/v1/traces", json=request(other)).json()["partialSuccess"]
    assert partial["rejectedSpans"] == "1"
    assert partial["errorMessage"].startswith("resourceSpans[0].scopeSpans[0].spans[0]: ")
    assert "other content" in partial["errorMessage"]
    kept = stored(service, execution_id_of(first["traceId"], first["spanId"]))
    assert (kept["result"], kept["traceId"]) == ({"matches": 5}, first["traceId"])


def test_when_the_store_fails_midway_sending_again_completes(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with Retry-After, which exporters retry; what was stored before stays stored once."""
    spans = [tool_span(n, more={"gen_ai.tool.call.id": "x"}) for n in range(5_000, 5_900)]
    body = gzip.compress(in_protobuf(request(*spans)))
    before = service.client.get("/status").json()["executions"]
    log = type(service.context.store.events)
    append, calls = log.append, 0

    async def failing(self: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreError("the disk is away")
        return await append(self, *arguments, **more)

    monkeypatch.setattr(log, "append", failing)
    response = service.client.post("/v1/traces", content=body, headers=PROTOBUF | GZIP)
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert response.headers["content-type"] == "application/x-protobuf"
    assert "log store" in Status.FromString(response.content).message
    response = service.client.post("/v1/traces", content=body, headers=PROTOBUF | GZIP)
    assert (response.status_code, response.content) == (200, b"")
    assert service.client.get("/status").json()["executions"] == before + 900
