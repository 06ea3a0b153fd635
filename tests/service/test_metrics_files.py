"""The dashboard and the alert rules: they parse, and ask only for what the page has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.metrics_page import Samples, scrape
from tests.service.running_service import RunningService, execution

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana" / "aftercall.json").read_text("utf-8"))
RULES: list[dict[str, Any]] = yaml.safe_load(
    (DOCS / "alerts" / "aftercall.rules.yml").read_text("utf-8")
)["groups"][0]["rules"]

_WORD = re.compile(r"\b[a-zA-Z_]\w*")
_WORDS = {
    "sum", "max", "min", "count", "rate", "increase", "histogram_quantile", "absent",
    "and", "or", "unless", "offset", "by",
}  # fmt: skip
"""Of PromQL; every other word in a query is a metric."""
_SELECTED = re.compile(r"\b(\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPED = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
_TARGET_LABELS = {"job", "instance"}
"""Which Prometheus itself puts on every series, as it makes `up`."""


def queries() -> Iterator[str]:
    """Every query of the dashboard and of the rules."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (rule["expr"] for rule in RULES)


def variables() -> Iterator[str]:
    """The queries of the dashboard's variables."""
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield re.sub(r"label_values\((.*), \w+\)", r"\1", variable["query"]["query"])


def bare(query: str) -> str:
    """A query without its matchers, ranges and groupings, which hold other names."""
    return _GROUPED.sub("", re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", query))


@pytest.fixture(scope="module")
def page(service: RunningService) -> Samples:
    """A real page, after a call."""
    service.record(execution(durationMs=5))
    service.client.get("/metrics")  # the first page has no request of its own kind yet
    return scrape(service)


@pytest.mark.parametrize("query", [*queries(), *variables()])
def test_a_query_asks_for_what_is_there(page: Samples, query: str) -> None:
    """Every metric is on a real page, with every label that the query selects or groups by."""
    metrics = set(_WORD.findall(bare(query))) - _WORDS
    assert metrics, query
    assert metrics - {"up"} <= page.names()
    labels = {label for metric in metrics for label in page.labels(metric)} | _TARGET_LABELS
    for metric, matchers in _SELECTED.findall(query):
        own = page.labels(metric) | _TARGET_LABELS
        assert {label for label, _, _ in _MATCHER.findall(matchers)} <= own, metric
    for grouping in _GROUPED.findall(query):
        assert {label.strip() for label in grouping.split(",")} <= labels
    if "histogram_quantile" in query:
        assert all(metric.endswith("_bucket") for metric in metrics)
        assert re.search(r"by \([^)]*\ble\b", query)


@pytest.mark.parametrize("query", [*queries()])
def test_a_query_selects_values_that_occur(page: Samples, query: str) -> None:
    """A misspelt `outcome="abstain"` would be a panel that is empty for ever."""
    for metric, matchers in _SELECTED.findall(query):
        for label, operator, value in _MATCHER.findall(matchers):
            if label in _TARGET_LABELS | {"tool"} or operator not in {"=", "=~"}:
                continue
            there = {dict(labels).get(label) for name, labels in page if name == metric}
            if label == "status" and value == "500":
                there.add("500")  # hopefully none here
            assert set(value.split("|")) <= there, (metric, label)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    """It waits before it fires, says how bad it is, and tells the cure."""
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"]["summary"]
    assert len(rule["annotations"]["description"]) > 60
    for text in rule["annotations"].values():
        assert text.count("{{") == text.count("}}")


def test_every_route_and_setting_that_an_alert_names_exists(service: RunningService) -> None:
    """A cure that does not exist is none."""
    told = " ".join(rule["annotations"]["description"] for rule in RULES)
    paths = service.client.get("/openapi.json").json()["paths"]
    for method, path in re.findall(r"\b(GET|PUT|POST) (/[\w{}/]+)", told):
        assert method.lower() in paths[path]
    for setting in re.findall(r"AFTERCALL_\w+[a-zA-Z]", told):
        assert setting in {
            "AFTERCALL_SERVER_ALLOWED_HOSTS", "AFTERCALL_INDEXING_HERE", "AFTERCALL_SAMPLING",
            "AFTERCALL_METRICS_TOOLS",
        }  # fmt: skip
    alerts = {rule["alert"] for rule in RULES}
    assert set(re.findall(r"\bAftercall[A-Z]\w+", told)) <= alerts
