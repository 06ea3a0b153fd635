"""Spans in the words of vendors who keep none of the conventions."""

from typing import Any

import pytest

from aftercall.models import Execution
from ingest.formats.calls import PassedOver
from ingest.formats.otlp.reading import read_otlp_json, read_protobuf
from tests.ingest.otlp_samples import in_protobuf

VENDORS: dict[str, dict[str, str]] = {
    "ai.toolCall": {
        "ai.operationId": "ai.toolCall", "ai.toolCall.name": "find",
        "ai.toolCall.args": '{"q": "whales"}', "ai.toolCall.result": '{"hits": 3}',
    },
    "find.tool": {
        "traceloop.span.kind": "tool", "traceloop.entity.name": "find",
        "traceloop.entity.input": '{"inputs": {"q": "whales"}}',
        "traceloop.entity.output": '{"output": {"hits": 3}}',
    },
    "find": {
        "langfuse.observation.type": "tool", "langfuse.observation.input": '{"q": "whales"}',
        "langfuse.observation.output": '{"hits": 3}',
    },
    "execute_tool find": {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
        "gen_ai.provider.name": "strands-agents", "gen_ai.tool.call.id": "tooluse_1",
        "gen_ai.tool.call.arguments": '{"q": "whales"}', "gen_ai.tool.call.result": '{"hits": 3}',
    },
    "find.run": {
        "openinference.span.kind": "TOOL", "tool.name": "find", "input.value": '{"q": "whales"}',
        "tool.parameters": '{"type": "object", "properties": {"q": {"type": "string"}}}',
        "output.value": '{"hits": 3}',
    },
    "find (LangSmith)": {
        "langsmith.span.kind": "tool", "gen_ai.prompt": '{"input": {"q": "whales"}}',
        "gen_ai.completion": '{"output": {"hits": 3}}',
    },
    "find (MLflow)": {
        "mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"q": "whales"}',
        "mlflow.spanOutputs": '{"hits": 3}',
    },
}  # fmt: skip


def read(name: str, attributes: dict[str, str], code: int, maker: str = "") -> list[Any]:
    """Return what is read from one span, in both encodings."""
    listed = [{"key": key, "value": {"stringValue": each}} for key, each in attributes.items()]
    span = {
        "traceId": "0123456789abcdef" * 2, "spanId": "0123456789abcdef", "name": name,
        "startTimeUnixNano": "1764000000000000000", "endTimeUnixNano": "1764000000100000000",
        "attributes": listed, "status": {"code": code, "message": "no whales" if code == 2 else ""},
    }  # fmt: skip
    scopes = [{"scope": {"name": maker}, "spans": [span]}]
    value = {"resourceSpans": [{"scopeSpans": scopes}]}
    found = [each for _, each in read_otlp_json(value)]
    assert [each for _, each in read_protobuf(in_protobuf(value))] == found
    return found


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("code", [1, 2])
def test_a_vendors_span_of_a_tool_is_a_call(name: str, code: int) -> None:
    """With its name, arguments and result; an error's status is a failure."""
    shown = name.partition(" ")[0]
    [call] = read(shown, VENDORS[name], code)
    assert isinstance(call, Execution)
    assert (call.tool_name, call.parameters) == ("find", {"q": "whales"})
    assert (call.outcome == "failure") == (code == 2)
    assert call.result == {"hits": 3} or code == 2


MARKS = {
    "Strands, as it was": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
                             "tool.status": "error"},
    "Strands": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
                "gen_ai.tool.status": "error"},
    "Langfuse": {"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR",
                 "langfuse.observation.status_message": "no whales"},
}  # fmt: skip


@pytest.mark.parametrize("vendor", MARKS)
def test_a_span_that_ended_well_tells_of_a_tool_that_did_not(vendor: str) -> None:
    """The tool answered with an error; the span's own status is OK."""
    [call, *_] = read("find", MARKS[vendor], 1)
    assert call.outcome == "failure"
    assert call.error.message == ("no whales" if vendor == "Langfuse" else "Error")
    good = {key: "DEFAULT" if each == "ERROR" else each.replace("error", "success")
            for key, each in MARKS[vendor].items()}  # fmt: skip
    assert read("find", good, 1)[0].outcome == "success"


def test_spans_that_are_no_calls_are_counted_by_their_instrumentation() -> None:
    """CrewAI's own telemetry has neither arguments nor results, so it is no record of calls."""
    [told] = read("Tool Usage", {"tool_name": "find", "attempts": "1"}, 1, "crewai.telemetry")
    assert isinstance(told, PassedOver)
    assert told.message == "passed over, as they are no calls of tools: 1 of crewai.telemetry"
    [told] = read("chat", {"gen_ai.operation.name": "chat"}, 1)
    assert told.counts == {"unknown_service": 1}


@pytest.mark.parametrize("kind", ["langfuse.observation.type", "mlflow.spanType"])
def test_other_spans_of_a_vendor_are_no_calls(kind: str) -> None:
    assert not [each for each in read("x", {kind: "generation"}, 1) if isinstance(each, Execution)]
