"""Seed 001's own tests of its metrics: what a model's stream of tool calls leaves on the page."""

import importlib
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aftercall.errors import ConfigurationError
from aftercall.events import ToolCalls
from aftercall.harmony import HarmonyToolCalls
from aftercall.metrics import ToolCallMetrics

CALL = '<|start|>assistant<|channel|>tool<|message|>{"tool":"search","arguments":%s}<|end|>'


def counted(*stream: str) -> tuple[dict[str, float], float]:
    """Calls by status, over all tools, and how many latencies were observed."""
    metrics = ToolCallMetrics()
    list(HarmonyToolCalls(ToolCalls("request-1", [metrics])).stream(stream))
    calls = {"ok": 0.0, "error": 0.0}
    latencies = 0.0
    for family in text_string_to_metric_families(metrics.page().decode()):
        for sample in family.samples:
            if sample.name == "tool_calls_total":
                calls[sample.labels["status"]] += sample.value
            elif sample.name == "tool_call_latency_ms_count":
                latencies += sample.value
    return calls, latencies


def test_a_call_in_the_stream_is_an_ok_with_a_latency() -> None:
    """The ok path: planned, run by the executor that runs none, counted on its result."""
    assert counted(CALL % '{"q":1}', CALL % "{}") == ({"ok": 2, "error": 0}, 2)


def test_an_oversized_payload_is_an_error_without_a_latency() -> None:
    """`tool_payload_too_large`: it was never run, so nothing was measured."""
    assert counted(CALL % ('{"q":"%s"}' % ("x" * 9_000))) == ({"ok": 0, "error": 1}, 0)


def test_malformed_json_is_an_error_without_a_latency() -> None:
    """`tool_payload_parse_error`."""
    assert counted(CALL % "{oops") == ({"ok": 0, "error": 1}, 0)


def test_without_the_extra_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a module of others that is not found."""
    for name in list(sys.modules):
        if name.startswith(("aftercall.metrics", "prometheus_client")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigurationError, match=r"\./sdk\[metrics\]"):
        importlib.import_module("aftercall.metrics")
