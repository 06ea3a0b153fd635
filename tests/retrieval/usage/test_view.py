"""Windows end now, their points add up, and base and tail are told as one."""

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from mongo.records import StoredExecution, ToolKey
from retrieval.usage.base import decoded, encoded
from retrieval.usage.counts import MAX_TOOLS, MAX_TOOLS_OF_AGENT
from retrieval.usage.spans import WINDOWS
from retrieval.usage.view import UsageView
from tests.retrieval.usage.usage_samples import (
    NOON,
    TIMEOUT,
    TOOL,
    base_of,
    failed,
    stored,
    tail_of,
)

RARE = ToolKey("default", None, "rare")


def view_of(*executions: StoredExecution, now: datetime = NOON) -> UsageView:
    """All counted by a night at this moment."""
    return UsageView([base_of(executions, now).counts], now)


def ago(position: int, **delta: float) -> StoredExecution:
    return stored(position, timestamp=NOON - timedelta(**delta))


# What lies in a window


def test_each_window_holds_what_lies_in_it() -> None:
    """Of one call now, one two days ago and one ten days ago; with what was before."""
    found = view_of(ago(1), ago(2, hours=49), ago(3, days=10)).totals().windows
    assert [each.totals.successes for each in found] == [1, 2, 3]
    assert [each.before and each.before.successes for each in found] == [0, 1, None]
    assert [each.until for each in found] == [NOON] * 3
    assert found[0].since == NOON.replace(minute=0) - timedelta(days=1)
    assert found[1].since == NOON.replace(hour=0, minute=0) - timedelta(days=6)


def test_what_is_dated_ahead_waits_for_its_time() -> None:
    """A caller's clock that goes ahead does not fill tomorrow's window today."""
    base = base_of([ago(1, hours=-3)])
    assert UsageView([base.counts], NOON).usage("30d").totals.successes == 0
    later = UsageView([base.counts], NOON + timedelta(hours=3)).totals().windows
    assert [each.totals.successes for each in later] == [1, 1, 1]


def test_the_day_before_is_told_by_hour_however_old_the_base_is() -> None:
    """A night at 12:30 knows the hours that a look at any later time asks for."""
    base = base_of([ago(1, hours=1), ago(2, hours=25), ago(3, hours=48)])
    for hours in (0, 5, 11.4, 12, 30):
        [day, *_] = UsageView([base.counts], NOON + timedelta(hours=hours)).totals().windows
        within = [each for each in (1, 25, 48) if each + int(hours + 0.5) <= 24]
        assert day.totals.successes == len(within)


def test_a_clock_that_was_set_back_changes_days_by_hours_at_most() -> None:
    """Nothing breaks, and no whole day is lost."""
    base = base_of([ago(1, hours=1), ago(2, days=1)])
    back = UsageView([base.counts], NOON - timedelta(days=1)).totals().windows
    assert [each.totals.successes for each in back] == [1, 1, 1]


def test_what_a_success_stands_for_counts() -> None:
    view = view_of(stored(1, stands_for=25), failed(2))
    [day, *_] = view.totals().windows
    assert (day.totals.successes, day.totals.failures) == (25, 1)
    assert view.latency("24h").points[-1].calls == 26


# Lists


def test_tools_agents_and_categories_are_told_most_calls_first() -> None:
    """With durations; the totals are those of all."""
    found = view_of(
        stored(1, server_name=None, tool_name="rare", agent="eve"),
        stored(2), stored(3), failed(4),
    ).usage("24h")  # fmt: skip
    assert [each.tool.tool_name for each in found.by_tool] == ["rag_query", "rare"]
    assert [(each.agent, each.successes) for each in found.by_agent] == [("ada", 2), ("eve", 1)]
    assert [(each.category, each.failures) for each in found.by_category] == [("timeout", 1)]
    assert found.totals.successes == 3
    assert found.totals.duration_ms is not None
    assert abs(found.totals.duration_ms.p50 - 100) < 5
    assert (found.computed_at, found.until) == (NOON, NOON)


def test_of_very_many_tools_the_rare_ones_are_others() -> None:
    """Lists are bounded, the heaviest stays although it came late, nothing is missing from sums."""
    many = [stored(n, tool_name=f"t{n}", agent=f"a{n}") for n in range(1, 5 * MAX_TOOLS)]
    busy = [stored(10**5 + n) for n in range(3)]
    found = view_of(*many, *busy).usage("24h")
    assert len(found.by_tool) == MAX_TOOLS
    assert found.by_tool[0].tool.tool_name == "rag_query"
    for told, others in ((found.by_tool, found.other_tools), (found.by_agent, found.other_agents)):
        listed = sum(each.successes for each in told)  # type: ignore[attr-defined]
        assert listed + others.successes == found.totals.successes == len(many) + len(busy)


def test_an_agent_is_told_with_its_heaviest_tools() -> None:
    """Those with failures first; some of them only."""
    calls = [
        stored(n * 100 + m, tool_name=f"t{n:02}", agent="ada")
        for n in range(1, 30) for m in range(n)
    ]  # fmt: skip
    view = view_of(*calls, failed(9_000, tool_name="t01"), stored(9_001, agent="eve"))
    found = view.agent("7d", "ada")
    assert found is not None
    assert (found.usage.successes, found.usage.failures) == (len(calls), 1)
    assert [each.tool.tool_name for each in found.tools[:3]] == ["t01", "t29", "t28"]
    assert len(found.tools) == MAX_TOOLS_OF_AGENT
    assert view.agent("7d", "nobody") is None
    assert view.agent("7d", "") is None


def test_an_agent_of_an_earlier_time_has_no_calls_now() -> None:
    """It is known, and idle."""
    found = view_of(ago(1, days=10)).agent("24h", "ada")
    assert found is not None
    assert (found.usage.successes, found.tools) == (0, [])


# Over time


def test_a_tool_that_nobody_called_has_points_of_none() -> None:
    view = view_of(stored(1))
    unknown = ToolKey("default", None, "unknown")
    assert sum(each.successes for each in view.trend("7d", unknown).points) == 0
    assert view.latency("7d", unknown).overall is None
    assert view.trend("7d", unknown).tool is not None


def test_failures_are_told_by_mark() -> None:
    """With those before, and over time."""
    other = {"message": "no", "code": "f" * 16}
    view = view_of(
        failed(1), failed(2, error=other), failed(3, error=other),
        failed(4, timestamp=NOON - timedelta(hours=30)),
    )  # fmt: skip
    day, month = view.failures("24h"), view.failures("30d")
    assert day.counts == {TIMEOUT.mark: 1, "f" * 16: 2}
    assert day.before == {TIMEOUT.mark: 1}
    assert day.total == 3
    assert (month.counts[TIMEOUT.mark], month.before) == (2, None)
    points = view.failure_points("7d", {TIMEOUT.mark, "unknown"})
    assert [each.failures for each in points] == [0, 0, 0, 0, 0, 1, 1]
    assert sum(each.failures for each in view.failure_points("24h", {"f" * 16})) == 2
    assert sum(each.failures for each in view.failure_points("24h", set())) == 0


def test_the_effect_tells_first_attempts_from_tasks() -> None:
    """Three first attempts of which two failed; one of them succeeded when it was retried."""
    view = view_of(
        stored(1), failed(2), failed(3), stored(4, attempt=2), failed(5, attempt=2),
    )  # fmt: skip
    found = view.effect("24h")
    assert (found.first_attempts.successes, found.first_attempts.failures) == (1, 2)
    assert (found.tasks.successes, found.tasks.failures) == (2, 1)
    assert (found.retries.successes, found.retries.failures) == (1, 1)


# A history, counted in parts

histories = st.lists(
    st.tuples(
        st.integers(0, 24 * 34).map(lambda hours: timedelta(hours=hours - 26, minutes=7)),
        st.sampled_from(["rag_query", "search"]),
        st.sampled_from(["ada", "eve"]),
        st.sampled_from([None, "0" * 15 + "1", "0" * 15 + "2"]),
        st.integers(1, 2),
        st.sampled_from([0.0, 5.0, 5_000.0]),
        st.integers(1, 40),
    ),
    max_size=25,
)


def history(
    rows: list[tuple[timedelta, str, str, str | None, int, float, int]],
) -> list[StoredExecution]:
    """In the order of positions; times are any."""
    made = []
    for position, (back, tool, agent, mark, attempt, took, times) in enumerate(rows, 1):
        fields = {
            "timestamp": NOON - back, "tool_name": tool, "agent": agent,
            "attempt": attempt, "duration_ms": took,
        }  # fmt: skip
        made.append(
            stored(position, stands_for=times, **fields)
            if mark is None
            else failed(position, error={"message": "no", "code": mark}, **fields)
        )
    return made


def everything(view: UsageView) -> list[object]:
    """All that a view can be asked, of every window; lists in an order of their own."""
    told: list[object] = [view.totals()]
    for window in WINDOWS:
        usage = view.usage(window)
        usage.by_tool.sort(key=lambda each: each.tool.tool_name)
        usage.by_agent.sort(key=lambda each: each.agent)
        agent = view.agent(window, "ada")
        if agent is not None:
            agent.tools.sort(key=lambda each: each.tool.tool_name)
        has_calls = agent is not None and (agent.usage.successes or agent.usage.failures)
        told += [usage, agent if has_calls else None, view.effect(window), view.failures(window)]
        for tool in (None, TOOL, RARE):
            told += [view.trend(window, tool), view.latency(window, tool)]
        told.append(view.failure_points(window, {"0" * 15 + "1"}))
    return told


@settings(deadline=None)
@given(histories, st.integers(0, 25), st.integers(0, 25), st.integers(0, 50))
def test_a_history_split_at_any_position_is_told_as_one(
    rows: list[tuple[timedelta, str, str, str | None, int, float, int]],
    at: int,
    then: int,
    later: int,
) -> None:
    """The night counted up to `at`, some hours ago; the tail came in two pages."""
    executions, now = history(rows), NOON + timedelta(hours=later)
    base = base_of(executions[:at], NOON)
    read = decoded(encoded(base), TOOL.workspace)
    assert read is not None
    tail = tail_of(read, [executions[at : at + then], executions[at + then :]])
    split = UsageView([read.counts, tail], now)
    whole = UsageView([base_of(executions, now).counts], now)
    assert everything(split) == everything(whole)


@settings(deadline=None)
@given(histories)
def test_the_points_of_a_series_add_up_to_the_totals(
    rows: list[tuple[timedelta, str, str, str | None, int, float, int]],
) -> None:
    """By hour and by day, of all tools and of each."""
    view = view_of(*history(rows))
    for total, window in zip(view.totals().windows, WINDOWS, strict=True):
        points = view.trend(window).points
        assert sum(each.successes for each in points) == total.totals.successes
        assert sum(each.failures for each in points) == total.totals.failures
        assert sum(each.retries.failures for each in points) == total.totals.retries.failures
        for tool in view.usage(window).by_tool:
            key = ToolKey("default", tool.tool.server_name, tool.tool.tool_name)
            points = view.trend(window, key).points
            assert sum(each.successes for each in points) == tool.successes
            assert view.latency(window, key).overall == tool.duration_ms
        marked = view.failures(window)
        assert sum(marked.counts.values()) == marked.total
