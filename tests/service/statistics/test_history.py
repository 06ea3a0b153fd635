"""Statistics of calls are those that are counted by hand, and parts add up to the whole."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from aftercall.models import (
    AgentStatistics,
    CallCounts,
    Latency,
    ReflectionStatistics,
    ToolName,
    ToolStatisticsList,
    Totals,
    Trend,
    Usage,
    UsageWindow,
)
from retrieval.knowledge.rows.counters import RELATIVE_ERROR
from tests.service.running_service import RunningService, hashing_settings, running
from tests.service.statistics.asking import (
    AGENTS,
    TOOLS,
    Record,
    a_history,
    asked,
    pair,
    recorded,
    since,
)

WINDOWS: tuple[UsageWindow, ...] = ("24h", "7d", "30d")


@pytest.fixture(scope="module")
def history() -> list[Record]:
    return a_history(700)


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, history: list[Record]
) -> Iterator[RunningService]:
    with running(hashing_settings(tmp_path_factory.mktemp("history"))) as started:
        recorded(started, history)
        yield started


@pytest.fixture(params=WINDOWS)
def window(request: pytest.FixtureRequest) -> UsageWindow:
    found: UsageWindow = request.param
    return found


def tuple_of(counts: CallCounts) -> tuple[int, int]:
    return counts.successes, counts.failures


def added(several: list[CallCounts]) -> tuple[int, int]:
    return sum(each.successes for each in several), sum(each.failures for each in several)


def query_of(server: str | None, tool: str) -> dict[str, Any]:
    return {"toolName": tool} if server is None else {"toolName": tool, "serverName": server}


def test_totals_are_what_was_recorded(service: RunningService, history: list[Record]) -> None:
    """In each window: all calls, retries, and those that followed a suggestion."""
    found = asked(service, "totals", Totals).windows
    assert [each.window for each in found] == list(WINDOWS)
    for each in found:
        calls = since(history, each.since)
        assert each.is_complete
        assert tuple_of(each.totals) == pair(calls)
        assert tuple_of(each.totals.retries) == pair(calls, lambda call: call.attempt > 1)
        assert tuple_of(each.totals.suggested) == pair(calls, lambda call: bool(call.suggestion_id))


def test_the_span_before_a_window_is_told_where_it_is_known(
    service: RunningService, history: list[Record]
) -> None:
    """As many hours or days before; of longer ones only where anything was called then."""
    day, week, month = asked(service, "totals", Totals).windows
    assert month.before is None
    for each, length_s in ((day, 86_400), (week, 7 * 86_400)):
        assert each.before is not None
        earlier = [
            call
            for call in since(history, month.since)
            if 0 < (each.since - call.timestamp).total_seconds() <= length_s
        ]
        assert tuple_of(each.before) == pair(earlier)


@pytest.mark.parametrize("is_by_hour", [False, True])
def test_a_window_of_dates_is_those_days_and_hours(
    service: RunningService, history: list[Record], *, is_by_hour: bool
) -> None:
    """From the first to the end of the last, in the order of time; also by version of a tool."""
    form, step, unit = (
        ("%Y-%m-%dT%H", timedelta(hours=1), "hour")
        if is_by_hour
        else ("%Y-%m-%d", timedelta(days=1), "day")
    )
    last = datetime.now(UTC) - 2 * step
    window = f"{last - 9 * step:{form}}..{last:{form}}"
    found = asked(service, "trend", Trend, window=window, **query_of("web", "read_page"))
    assert (found.step, len(found.points), found.until - found.since) == (unit, 10, 10 * step)
    calls = [
        each
        for each in since(history, found.since)
        if each.timestamp < found.until
        and (each.server_name, each.tool_name) == ("web", "read_page")
    ]
    assert calls
    assert added(list(found.points)) == pair(calls)
    assert {each.version for each in found.versions} == {"1", "2.0"}
    for each in found.versions:
        assert added(each.points) == pair(calls, lambda c, v=each.version: c.tool_version == v)
    tools = asked(service, "tools", ToolStatisticsList, window=window).tools
    assert added([e for e in tools if e.tool.server_name == "web"][:1]) == pair(calls)


@pytest.mark.parametrize(
    "window",
    ["1d", "2026-11-01", "2026-11-07..2026-11-01", "2026-02-30..2026-03-01",
     "2024-01-01..2026-01-01", "9999-12-31..9999-12-31"],
)  # fmt: skip
def test_what_is_no_window_is_refused_with_the_cure(service: RunningService, window: str) -> None:
    answer = service.client.get("/stats/trend", params={"window": window})
    assert answer.status_code == 422
    assert "2026-11-01..2026-11-07" in answer.text or "at most 366 days" in answer.text


def test_points_add_up_to_the_totals(
    service: RunningService, history: list[Record], window: UsageWindow
) -> None:
    """Hours of 24h, days of the others; those without calls are there too."""
    found = asked(service, "trend", Trend, window=window)
    calls = since(history, found.since)
    assert (found.step, len(found.points)) == {
        "24h": ("hour", 25), "7d": ("day", 7), "30d": ("day", 30)
    }[window]  # fmt: skip
    assert found.points[0].at == found.since
    assert added(list(found.points)) == pair(calls)
    assert added([each.retries for each in found.points]) == pair(calls, lambda c: c.attempt > 1)
    ends = [*(each.at for each in found.points[1:]), found.until]
    for point, end in zip(found.points, ends, strict=True):
        assert tuple_of(point) == pair(calls, lambda c, p=point, e=end: p.at <= c.timestamp < e)


@pytest.mark.parametrize(("server", "tool"), TOOLS)
def test_a_tool_is_told_by_itself(
    service: RunningService, history: list[Record], server: str | None, tool: str
) -> None:
    """Tools of one name on two servers are two tools."""
    found = asked(service, "trend", Trend, window="7d", **query_of(server, tool))
    assert found.tool == ToolName(server_name=server, tool_name=tool)
    calls = since(history, found.since)
    expected = pair(calls, lambda call: (call.server_name, call.tool_name) == (server, tool))
    assert added(list(found.points)) == expected
    assert sum(expected) > 0


def test_a_tool_that_nobody_called_has_points_of_none(service: RunningService) -> None:
    """No error: it may be called tomorrow."""
    trend = asked(service, "trend", Trend, toolName="read_page")  # on no server
    assert added(list(trend.points)) == (0, 0)
    latency = asked(service, "latency", Latency, toolName="never")
    assert latency.overall is None
    assert {(each.calls, each.duration_ms) for each in latency.points} == {(0, None)}


@pytest.mark.parametrize("limit", [1, 2, 500])
def test_tools_and_agents_add_up_with_the_others(
    service: RunningService, history: list[Record], window: UsageWindow, limit: int
) -> None:
    """However few are shown; most calls come first."""
    found = asked(service, "usage", Usage, window=window, limit=limit)
    calls = since(history, found.since)
    assert found.is_complete
    assert tuple_of(found.totals) == pair(calls)
    assert added([*found.by_tool, found.other_tools]) == pair(calls)
    assert added([*found.by_agent, found.other_agents]) == pair(calls)
    assert sum(each.failures for each in found.by_category) == found.totals.failures
    for each in found.by_tool:
        name = (each.tool.server_name, each.tool.tool_name)
        assert tuple_of(each) == pair(
            calls, lambda call, name=name: (call.server_name, call.tool_name) == name
        )
    for one in found.by_agent:
        assert tuple_of(one) == pair(calls, lambda call, one=one: call.agent == one.agent)
    for listed in (found.by_tool, found.by_agent):
        weights = [sum(tuple_of(each)) for each in listed]
        assert weights == sorted(weights, reverse=True)
        assert len(listed) == min(limit, 4)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_told_with_its_tools(
    service: RunningService, history: list[Record], window: UsageWindow, agent: str
) -> None:
    """Also one whose name holds a slash or markup."""
    path = f"agents/{agent.replace('/', '%2F')}"
    found = asked(service, path, AgentStatistics, window=window)
    calls = [call for call in since(history, found.since) if call.agent == agent]
    assert (found.agent, tuple_of(found.usage)) == (agent, pair(calls))
    assert added(list(found.tools)) == pair(calls)
    failures = [each.failures for each in found.tools]
    assert failures == sorted(failures, reverse=True)


@pytest.mark.parametrize("server_and_tool", [None, *TOOLS])
def test_latencies_are_within_their_error(
    service: RunningService,
    history: list[Record],
    window: UsageWindow,
    server_and_tool: tuple[str | None, str] | None,
) -> None:
    """Of the calls that say how long they took; points count all of them."""
    query = query_of(*server_and_tool) if server_and_tool else {}
    found = asked(service, "latency", Latency, window=window, **query)
    times = [
        call.duration_ms
        for call in since(history, found.since)
        if call.duration_ms
        and (server_and_tool is None or (call.server_name, call.tool_name) == server_and_tool)
    ]
    assert sum(each.calls for each in found.points) == len(times)
    assert found.overall is not None
    told = (found.overall.p50, found.overall.p95, found.overall.p99)
    exact = np.percentile(times, [50, 95, 99], method="lower")
    assert told == pytest.approx(exact, rel=RELATIVE_ERROR * 1.01)


def test_tools_are_told_with_the_same_calls(
    service: RunningService, history: list[Record], window: UsageWindow
) -> None:
    """As in usage; how good they are is of now."""
    tools = asked(service, "tools", ToolStatisticsList, window=window, limit=2)
    usage = asked(service, "usage", Usage, window=window, limit=2)
    assert [(each.tool, tuple_of(each)) for each in tools.tools] == [
        (each.tool, tuple_of(each)) for each in usage.by_tool
    ]
    assert tools.other_tools == usage.other_tools


def test_before_and_after_reflection_are_told_apart(
    service: RunningService, history: list[Record], window: UsageWindow
) -> None:
    """A task that failed first and succeeded when retried is a success after it."""
    found = asked(service, "reflection", ReflectionStatistics, window=window)
    calls = since(history, found.since)
    first = pair(calls, lambda call: call.attempt == 1)
    retries = pair(calls, lambda call: call.attempt > 1)
    assert tuple_of(found.first_attempts) == first
    assert tuple_of(found.retries) == retries
    assert tuple_of(found.suggested) == pair(calls, lambda call: bool(call.suggestion_id))
    worked = min(sum(first), first[0] + retries[0])
    assert tuple_of(found.tasks) == (worked, sum(first) - worked)
