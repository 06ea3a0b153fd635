"""`/metrics`: what is counted, that scrapers can read it, and that it never fails."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import VectorIndexUnavailableError
from service.context import Lifecycle
from service.server import create_app
from tests.service.metrics_page import Samples, read_text, scrape
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    failure,
    hashing_settings,
    on_loop,
    running,
)

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


Counted = Callable[[], Samples]


@pytest.fixture
def counted(service: RunningService) -> Counted:
    """What was counted since this test began."""
    before = scrape(service)

    def since() -> Samples:
        now = scrape(service)
        return Samples({series: value - before.get(series, 0) for series, value in now.items()})

    return since


def ask(service: RunningService, **fields: Any) -> dict[str, Any]:
    """The answer of /suggest to a failure."""
    response = service.client.post("/suggest", json={"execution": failure(**fields)})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_a_recorded_call_is_counted_under_the_seeds_names(
    service: RunningService, counted: Counted
) -> None:
    """Seed 001, in the service: counted on the result, with the latency where it was measured."""
    service.record(execution(serverName=None, toolName="search", durationMs=12.5))
    service.record(
        [
            failure(serverName=None, toolName="search", durationMs=7),
            failure(serverName=None, toolName="search"),
            execution(serverName="docs", toolName="search"),
        ]
    )
    page = counted()
    assert page.of("tool_calls_total", tool="search", status="ok") == 1
    assert page.of("tool_calls_total", tool="search", status="error") == 2
    assert page.of("tool_call_latency_ms_count", tool="search") == 2
    assert page.of("tool_call_latency_ms_sum", tool="search") == 19.5
    assert page.of("tool_calls_total", tool="docs/search", status="ok") == 1
    assert not [
        name
        for name, labels in page
        if name.startswith("tool_call_latency_ms") and ("tool", "docs/search") in labels
    ]
    assert page.of("aftercall_executions_total", verdict="stored") == 4


def test_only_new_executions_count(service: RunningService, counted: Counted) -> None:
    """Not one that is sent again, nor one that is refused; alone and in a list alike."""
    record = execution(toolName="t", serverName=None)
    service.record(record)
    service.record(record)
    service.record([record, record, {"malformed": True}])
    assert service.record({**record, "agent": "another"}).status_code == 409
    service.record([{**record, "agent": "another"}])
    page = counted()
    assert page.of("tool_calls_total", tool="t", status="ok") == 1
    verdicts = {
        each: page.of("aftercall_executions_total", verdict=each)
        for each in ("stored", "left_out", "duplicate", "rejected")
    }
    assert verdicts == {"stored": 1, "left_out": 0, "duplicate": 3, "rejected": 3}


def test_what_sampling_leaves_out_counts(tmp_path: Path) -> None:
    """Each call once: those that are left out too, one that stands for others as itself."""
    sampling = {"successes_per_minute": 1.0, "kept_share": 0.05}
    with running(hashing_settings(tmp_path, sampling=sampling)) as service:
        service.record([execution(toolName="t", serverName=None) for _ in range(60)])
        for _ in range(3):
            service.record(execution(toolName="t", serverName=None))
        page = scrape(service)
    assert page.of("tool_calls_total", tool="t", status="ok") == 63
    stored = page.of("aftercall_executions_total", verdict="stored")
    assert 0 < stored < 63
    assert page.of("aftercall_executions_total", verdict="left_out") == 63 - stored


def test_answers_abstentions_and_suggestions_are_counted(
    service: RunningService, counted: Counted
) -> None:
    """With the time that they took; an abstention by the category of the error."""
    answers = [ask(service), ask(service, toolName="x", error={"message": "oops"})]
    assert [each["abstained"] for each in answers] == [False, True]
    page = counted()
    assert page.of("aftercall_suggest_answers_total", outcome="suggested") == 1
    assert page.of("aftercall_suggest_answers_total", outcome="abstained") == 1
    category = answers[1]["pattern"]["category"]
    assert page.of("aftercall_suggest_abstentions_total", category=category) == 1
    action = answers[0]["suggestions"][0]["action"]
    assert page.of("aftercall_suggestions_total", action=action) >= 1
    assert page.of("aftercall_suggest_duration_seconds_count") == 2
    assert page.of("aftercall_suggest_duration_seconds_sum") > 0


def test_repairs_are_counted_by_who_tells_of_them(
    service: RunningService, counted: Counted
) -> None:
    """A report that is sent again does not count again."""
    suggestion = ask(service)["suggestions"][0]["suggestionId"]
    report = {"outcome": "success", "executionId": str(uuid4())}
    for _ in range(2):
        path = f"/suggestions/{suggestion}/outcome"
        assert service.client.post(path, json=report).status_code == 204
    service.record(
        [
            execution(suggestionId=suggestion, repairOf=str(uuid4()), attempt=2),
            failure(suggestionId=suggestion, attempt=3),
            execution(repairOf=str(uuid4()), attempt=2),
        ]
    )
    page = counted()
    repairs = {
        (source, outcome): page.of("aftercall_repairs_total", source=source, outcome=outcome)
        for source in ("report", "execution", "caller")
        for outcome in ("success", "failure")
    }
    assert repairs == {
        ("report", "success"): 1, ("report", "failure"): 0,
        ("execution", "success"): 1, ("execution", "failure"): 1,
        ("caller", "success"): 1, ("caller", "failure"): 0,
    }  # fmt: skip


def test_a_repair_that_is_told_twice_counts_once(own_service: RunningService) -> None:
    """A report and the execution that it tells of say the same, whichever comes first."""
    suggestion = ask(own_service)["suggestions"][0]["suggestionId"]
    on_loop(own_service, own_service.context.indexer.close())  # it would settle it, but later
    for is_reported_first in (True, False):
        record = execution(suggestionId=suggestion, attempt=2)
        told = {"outcome": "success", "executionId": record["executionId"]}
        if not is_reported_first:
            own_service.record(record)
        path = f"/suggestions/{suggestion}/outcome"
        assert own_service.client.post(path, json=told).status_code == 204
        own_service.record(record)
    page = scrape(own_service)
    counted = [
        page.of("aftercall_repairs_total", source=source, outcome="success")
        for source in ("report", "execution")
    ]
    assert counted == [1, 1]


def test_requests_are_counted_by_template_and_status(
    service: RunningService, counted: Counted
) -> None:
    """Never by path: ids, and paths that do not exist, make no series of their own."""
    for _ in range(5):
        service.client.get(f"/executions/{uuid4()}")
        service.client.get(f"/nothing/{uuid4()}")
    service.client.request("PROPFIND", "/status")
    page = counted()
    requests = "aftercall_http_requests_total"
    template = "/executions/{executionId}"
    assert page.of(requests, method="GET", route=template, status="404") == 5
    assert page.of(requests, method="GET", route="unknown", status="404") == 5
    assert {
        dict(labels)["method"]
        for (name, labels), calls in page.items()
        if name == requests and calls
    } == {"GET", "other"}
    duration = "aftercall_http_request_duration_seconds_count"
    assert page.of(duration, method="GET", route=template) == 5


def test_the_queue_and_the_stores_are_seen(own_service: RunningService) -> None:
    """And what is pending is none, once it was learned."""
    own_service.record([execution(), failure()])
    eventually(lambda: scrape(own_service).of("aftercall_pending_indexing") == 0)
    page = scrape(own_service)
    assert page.of("aftercall_stored_executions") == 2
    assert page.of("aftercall_documents") >= 1
    assert page.of("aftercall_vectors") == page.of("aftercall_documents")
    assert page.of("aftercall_indexing_lag_seconds") == 0
    assert page.of("aftercall_store_up", store="log") == 1
    assert page.of("aftercall_store_up", store="vectors") == 1
    assert page.of("aftercall_ready") == 1
    assert page.of("aftercall_learning_up") == 1


def test_a_waiting_execution_has_an_age(
    own_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lag is that of the oldest one, while learning stands."""
    on_loop(own_service, own_service.context.indexer.close())
    own_service.record(execution())
    # A store may say up to half a second late that a workspace has work.
    eventually(lambda: scrape(own_service).of("aftercall_indexing_lag_seconds") > 0)
    assert scrape(own_service).of("aftercall_pending_indexing") == 1


def test_a_store_that_fails_is_told_and_counted(own_service: RunningService) -> None:
    """The page is there all the same, without what the store would have to say."""
    own_service.record(execution(toolName="t", serverName=None))
    on_loop(own_service, own_service.context.store.close())
    assert own_service.record(execution()).status_code == 503
    page = scrape(own_service)
    assert page.of("aftercall_store_up", store="log") == 0
    assert page.of("aftercall_store_up", store="vectors") == 1
    assert page.of("aftercall_ready") == 0
    assert "aftercall_pending_indexing" not in page.names()
    assert page.of("aftercall_store_errors_total", store="log", kind="unavailable") == 1
    assert page.of("tool_calls_total", tool="t", status="ok") == 1


def test_an_index_that_answers_do_without_is_counted(
    own_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suggestions come from rules then; what cannot do without it fails, and both are told."""

    async def broken(*_: object) -> object:
        raise VectorIndexUnavailableError("away")

    monkeypatch.setattr(EdgeIndex, "search_points", broken)
    monkeypatch.setattr(EdgeIndex, "count_points", broken)
    assert ask(own_service)["suggestions"]
    assert own_service.client.post("/similar", json={"toolName": "t"}).status_code == 503
    page = scrape(own_service)
    assert page.of("aftercall_store_errors_total", store="vectors", kind="unavailable") == 1
    assert page.of("aftercall_store_up", store="vectors") == 0
    assert "aftercall_vectors" not in page.names()


def test_a_store_that_hangs_does_not_hang_the_page(
    own_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for a second, and is not asked a second time meanwhile."""
    asked: list[object] = []

    async def hang(store: object, workspace: str | None = None) -> None:
        asked.append(store)
        await asyncio.Event().wait()

    monkeypatch.setattr("service.metrics_page.count_rows", hang)
    pages = [scrape(own_service) for _ in range(2)]
    assert [page.of("aftercall_store_up", store="log") for page in pages] == [0, 0]
    assert len(asked) == 1


async def test_the_page_is_there_while_the_service_is_starting(tmp_path: Path) -> None:
    """It says that calls are not served yet, and counts those that were refused."""
    app = create_app(hashing_settings(tmp_path), Lifecycle())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/status")).status_code == 503
        response = await client.get("/metrics")
    assert response.status_code == 200
    page = read_text(response.text)
    assert page.of("aftercall_ready") == 0
    refused = {"method": "GET", "route": "/status", "status": "503"}
    assert page.of("aftercall_http_requests_total", **refused) == 1
    assert any(name == "aftercall_build_info" for name in page.names())


def test_a_hostile_name_does_not_break_the_page(service: RunningService) -> None:
    """Prometheus' own parser takes it, whatever the scraper asks for."""
    service.record(execution(toolName='a"b\\c\n✓', serverName=None))
    response = service.client.get("/metrics", headers={"accept": PROMETHEUS_3})
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    page = read_text(response.text)
    assert page.of("tool_calls_total", tool='a"b\\c\ufffd✓', status="ok") >= 1
    assert not [name for name in page.names() if name.endswith("_created")]


def test_every_series_that_can_be_known_is_there_from_the_start(
    own_service: RunningService,
) -> None:
    """At 0: a rate over one that appears with its first event would miss it."""
    page = scrape(own_service)
    for name in (
        "aftercall_suggest_answers_total",
        "aftercall_suggest_abstentions_total",
        "aftercall_suggestions_total",
        "aftercall_repairs_total",
        "aftercall_store_errors_total",
        "aftercall_executions_total",
        "tool_calls_total",
    ):
        values = {value for (each, _), value in page.items() if each == name}
        assert values == {0.0}, name
