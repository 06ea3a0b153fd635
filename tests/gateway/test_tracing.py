"""Traces through the gateway: `_meta` in, a span of each attempt, `_meta` out (SEP-414)."""

import json
import sys
from pathlib import Path

import pytest

from aftercall.gateway.server import _observe_calls
from aftercall.tracing import TracingObserver
from tests.gateway.conftest import OpenGateway
from tests.gateway.contract_service import ContractService
from tests.gateway.speaking import HELLO, answers, command, request, started
from tests.sdk.tracing_collector import Collector, Spans, id_of, parent_of, trace_of

SERVER = {"command": sys.executable, "args": ["-m", "tests.gateway.meta_server"]}
TOOL, ATTEMPT = "sent_meta", "execute_tool sent_meta"

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
META = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1", "baggage": "team=blue"}


@pytest.mark.real
async def test_context_goes_through_the_gateway(open_gateway: OpenGateway) -> None:
    """The caller's span is the attempt's parent, and the server is sent the attempt's; once."""
    spans = Spans()
    observers = [TracingObserver(spans.provider)]
    async with open_gateway({"echo": SERVER}, observers=observers) as client:
        result = await client.call_tool_mcp(TOOL, {}, meta=META)

    (span,) = spans.ended  # FastMCP's and MCP's own spans go elsewhere, as they may hold messages
    assert span.name == ATTEMPT
    assert f"{trace_of(span):032x}" == TRACE
    assert f"{parent_of(span):016x}" == PARENT
    assert span.attributes["aftercall.server_name"] == "echo"
    sent = (result.structured_content or {})["meta"]
    assert sent["traceparent"] == f"00-{TRACE}-{id_of(span):016x}-01"
    assert sent["tracestate"] == "vendor=1"
    assert sent["baggage"] == "team=blue"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "servers.json"
    root = str(Path(__file__).parents[2])
    server = {**SERVER, "cwd": root}
    file.write_text(json.dumps({"mcpServers": {"echo": server}}))
    return file


@pytest.mark.real
async def test_the_command_sends_spans_where_opentelemetrys_variables_say(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """Under the name they give it; standard output stays MCP's; all has arrived at the end."""
    call = request(2, "tools/call", name=TOOL, arguments={}, _meta=META)
    with Collector() as collector:
        environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.base_url,
            "OTEL_SERVICE_NAME": "my-gateway",
        }
        async with started(command(config, service.url), environment) as process:
            _, called = await answers(process, HELLO, call)
            rest, told = await process.communicate(b"")

    assert (process.returncode, rest) == (0, b"")
    assert b"span" not in told
    (span,) = collector.spans
    assert (span.service, span.name, span.kind) == ("my-gateway", ATTEMPT, "INTERNAL")
    assert (span.trace_id, span.parent_id) == (TRACE, PARENT)
    sent = called["result"]["structuredContent"]["meta"]
    assert sent["traceparent"] == f"00-{TRACE}-{span.span_id}-01"


_UNTRACED = """
import sys
sys.modules["opentelemetry.sdk"] = None
from aftercall.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.real
async def test_without_the_extra_the_gateway_runs_and_says_so(
    config: Path, service: ContractService, environment: dict[str, str]
) -> None:
    """The variables may be meant for other programs of the same machine."""
    environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    words = [sys.executable, "-c", _UNTRACED, *command(config, service.url)[1:]]
    async with started(words, environment) as process:
        await answers(process, HELLO, request(2, "tools/call", name=TOOL, arguments={}))
        _, told = await process.communicate(b"")
    assert b"./sdk[gateway,otel]" in told
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_which_variables_ask_for_spans(
    environ: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector for traces, and nothing that says no."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with _observe_calls() as observers:
        assert bool(observers) is wanted
