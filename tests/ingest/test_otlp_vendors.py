"""Spans in the words of vendors who keep none of the conventions."""

from typing import Any

import pytest

from aftercall.models import Execution
from ingest.formats.otlp.reading import read_json

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
    "find (MLflow)": {
        "mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"q": "whales"}',
        "mlflow.spanOutputs": '{"hits": 3}',
    },
}  # fmt: skip


def read(name: str, attributes: dict[str, str], code: int) -> list[Any]:
    """What is read from one span."""
    listed = [{"key": key, "value": {"stringValue": each}} for key, each in attributes.items()]
    span = {
        "traceId": "0123456789abcdef" * 2, "spanId": "0123456789abcdef", "name": name,
        "startTimeUnixNano": "1764000000000000000", "endTimeUnixNano": "1764000000100000000",
        "attributes": listed, "status": {"code": code, "message": "no whales" if code == 2 else ""},
    }  # fmt: skip
    scopes = [{"spans": [span]}]
    return [each for _, each in read_json({"resourceSpans": [{"scopeSpans": scopes}]})]


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


@pytest.mark.parametrize("kind", ["langfuse.observation.type", "mlflow.spanType"])
def test_other_spans_of_a_vendor_are_no_calls(kind: str) -> None:
    assert not [each for each in read("x", {kind: "generation"}, 1) if isinstance(each, Execution)]
