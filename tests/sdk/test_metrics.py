"""Metrics of tool calls: the seed's names, bounded labels, and a page that parsers take."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families as parse_text

from aftercall.metrics import MAX_CHARS, OTHER, ToolCallMetrics, tool_label

HOSTILE = [
    'quo"te', "back\\slash", "line\nbreak", '"} 1\ntool_calls_total{tool="forged', "nul\x00",
    "half \ud800 pair", "\u202eright to left", "\r\x1b[31m\x85\u2028", "ünïcode ✓ 工具 😀",
    "{}=,# HELP", " ", "", "n" * 10_000, "🜚" * 5_000,
]  # fmt: skip


def samples(families: Iterable[Metric]) -> dict[tuple[str, str | None, str | None], float]:
    """Values by name, tool, and status or bucket."""
    return {
        (each.name, each.labels.get("tool"), each.labels.get("status") or each.labels.get("le")): (
            each.value
        )
        for family in families
        for each in family.samples
    }


def read(metrics: ToolCallMetrics) -> dict[tuple[str, str | None, str | None], float]:
    """What a scraper reads."""
    return samples(parse_text(metrics.page().decode()))


def labels(metrics: ToolCallMetrics) -> set[str | None]:
    return {tool for name, tool, _ in read(metrics) if name == "tool_calls_total"}


@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        (
            [("ok", 12.0), ("ok", 70_000.0), ("error", None)],
            [
                "# TYPE tool_calls_total counter",
                "# TYPE tool_call_latency_ms histogram",
                'tool_calls_total{status="ok",tool="search"} 2.0',
                'tool_calls_total{status="error",tool="search"} 1.0',
                'tool_call_latency_ms_bucket{le="10.0",tool="search"} 0.0',
                'tool_call_latency_ms_bucket{le="25.0",tool="search"} 1.0',
                'tool_call_latency_ms_bucket{le="+Inf",tool="search"} 2.0',
                'tool_call_latency_ms_count{tool="search"} 2.0',
                'tool_call_latency_ms_sum{tool="search"} 70012.0',
            ],
        ),
        (
            [],
            [
                'tool_calls_total{status="ok",tool="other"} 0.0',
                'tool_call_latency_ms_count{tool="other"} 0.0',
            ],
        ),
    ],
    ids=["calls", "none yet"],
)
def test_the_seeds_names_are_on_the_page(calls: list[Any], lines: list[str]) -> None:
    """Contract of seed 001: `tool_calls_total{tool,status}`, `tool_call_latency_ms{tool}`.

    Before any call too: a rate over a series that begins with its first event would miss that.
    """
    metrics = ToolCallMetrics()
    for status, latency_ms in calls:
        metrics.observe("search", status, latency_ms)
    page = metrics.page().decode()
    assert set(lines) <= set(page.splitlines())
    assert "_created" not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_inside_its_label(name: str) -> None:
    """The parser reads back exactly one tool, under the label that `tool_label` says."""
    metrics = ToolCallMetrics()
    metrics.observe(name, "ok", 1.0)
    expected = tool_label(name)
    assert len(expected) <= MAX_CHARS
    assert expected.isprintable()
    assert expected
    assert labels(metrics) == {OTHER, expected}


@given(st.text(st.characters(exclude_categories=())), st.text(max_size=300))
def test_any_name_makes_a_printable_bounded_label(name: str, server: str) -> None:
    """Whatever anybody calls a tool; and no label is ever empty, which would mean none."""
    label = tool_label(name, server)
    assert 0 < len(label) <= MAX_CHARS
    assert label.isprintable()
    label.encode()


def test_a_tool_that_is_called_other_is_not_the_bucket() -> None:
    """It has a label of its own."""
    metrics = ToolCallMetrics()
    for name in ("other", "others"):
        metrics.observe(name, "ok")
    assert read(metrics)["tool_calls_total", OTHER, "ok"] == 0
    assert labels(metrics) == {OTHER, "other (tool)", "others"}


def test_a_hundred_thousand_names_have_bounded_series_and_lose_no_call() -> None:
    """What finds no label left is counted as `other`."""
    metrics = ToolCallMetrics(200)
    for number in range(100_000):
        metrics.observe(f"made_up_{number}", "error", 1.0)
    assert metrics.labels == 200
    found = read(metrics)
    assert len(found) == 201 * (2 + 15 + 2)
    calls = [value for (name, *_), value in found.items() if name == "tool_calls_total"]
    assert sum(calls) == 100_000
