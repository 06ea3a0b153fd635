"""A snapshot of usage at a moment, and what is answered from it. Pure; nothing waits for a store.

It adds up two parts that share their names: what the nightly run counted, and what came since.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from aftercall.models import (
    AgentStatistics,
    AgentTool,
    AgentUsage,
    CallCounts,
    CallUsage,
    CategoryUsage,
    DurationQuantiles,
    FailurePoint,
    Latency,
    LatencyPoint,
    ToolName,
    ToolUsage,
    Totals,
    Trend,
    TrendPoint,
    Usage,
    UsageWindow,
    WindowTotals,
)
from mongo.records import ToolKey
from retrieval.usage.counts import CATEGORIES, MAX_AGENTS, MAX_TOOLS, MAX_TOOLS_OF_AGENT, Counts
from retrieval.usage.durations import quantiles
from retrieval.usage.spans import WINDOWS, Span, moment_of, span_before, span_of
from retrieval.usage.sums import Sums
from retrieval.usage.table import Ints


@dataclass(frozen=True, slots=True)
class Effect:
    """What asking about failures did; a task is a first attempt with the retries behind it.

    Which retry belongs to which first attempt is not counted: `tasks` takes each success for that
    of another task, as many as there are.
    """

    first_attempts: CallCounts
    tasks: CallCounts
    retries: CallCounts
    suggested: CallCounts


@dataclass(frozen=True, slots=True)
class MarkedFailures:
    """Failures by mark (`retrieval.usage.day.Failure`)."""

    counts: Mapping[str, int]
    before: Mapping[str, int] | None
    """In the span before the window; None where that is not known."""
    total: int
    """All failures of the window, also those whose mark is not told apart."""


class UsageView:
    """Usage up to `now`.

    Args:
        parts: what was counted; their names have the same numbers, and the last part has all.
        now: where windows end. What is dated in a later hour is in none of them.
        is_complete: whether the parts hold all that had arrived.
    """

    def __init__(self, parts: Sequence[Counts], now: datetime, *, is_complete: bool = True) -> None:
        self.now = now.astimezone(UTC)
        self.is_complete = is_complete
        self._names = parts[-1]
        self._sums = Sums(parts)

    def span(self, window: UsageWindow) -> tuple[datetime, datetime]:
        """Where a window begins and ends."""
        return moment_of(span_of(window, self.now).first), self.now

    def totals(self) -> Totals:
        """All calls within each window."""
        return Totals(windows=[self._window_totals(each) for each in WINDOWS])

    def usage(self, window: UsageWindow) -> Usage:
        """A window by tool, agent and category; ids of tools are left to whoever answers."""
        span = span_of(window, self.now)
        since, until = self.span(window)
        by_tool, other_tools = self._tools(span)
        by_agent, other_agents = self._agents(span)
        return Usage(
            window=window,
            computed_at=until,
            since=since,
            until=until,
            is_complete=self.is_complete,
            totals=self._all_calls(span),
            by_tool=by_tool,
            by_agent=by_agent,
            by_category=self._categories(span),
            other_tools=other_tools,
            other_agents=other_agents,
        )

    def trend(self, window: UsageWindow, tool: ToolKey | None = None) -> Trend:
        """Hour by hour or day by day, of all tools or of one; also those without calls."""
        span = span_of(window, self.now)
        since, until = self.span(window)
        number = None if tool is None else self._number(tool)
        rows = self._sums.calls_by_step(span, number).tolist()
        return Trend(
            window=window,
            since=since,
            until=until,
            is_complete=self.is_complete,
            step=span.step_name,
            tool=_named(tool),
            points=[
                TrendPoint(
                    at=moment_of(hour),
                    successes=row[0],
                    failures=row[1],
                    retries=_counts(row[2:4]),
                    suggested=_counts(row[4:6]),
                )
                for hour, row in zip(span.steps, rows, strict=True)
            ],
        )

    def latency(self, window: UsageWindow, tool: ToolKey | None = None) -> Latency:
        """How long calls took, as `trend`."""
        span = span_of(window, self.now)
        since, until = self.span(window)
        number = None if tool is None else self._number(tool)
        buckets = self._sums.durations_by_step(span, number)
        timed = buckets.sum(axis=1).tolist()
        [overall] = _quantiles(buckets.sum(axis=0, keepdims=True))
        points = zip(span.steps, timed, _quantiles(buckets), strict=True)
        return Latency(
            window=window,
            since=since,
            until=until,
            is_complete=self.is_complete,
            step=span.step_name,
            tool=_named(tool),
            overall=overall,
            points=[
                LatencyPoint(at=moment_of(hour), calls=calls, duration_ms=cuts)
                for hour, calls, cuts in points
            ],
        )

    def agent(self, window: UsageWindow, agent: str) -> AgentStatistics | None:
        """Calls by one agent, and of which tools; None of one that is not told apart at all."""
        number = self._names.agents.find(agent)
        if not number:
            return None
        span = span_of(window, self.now)
        since, until = self.span(window)
        worked, failed = self._sums.agents(span)[number].tolist()
        tools = self._sums.tools_of_agent(span, number)
        tools[0] = 0
        heaviest = np.lexsort((-tools.sum(axis=1), -tools[:, 1]))[:MAX_TOOLS_OF_AGENT].tolist()
        return AgentStatistics(
            window=window,
            since=since,
            until=until,
            is_complete=self.is_complete,
            agent=agent,
            usage=AgentUsage(agent=agent, successes=worked, failures=failed),
            tools=[
                AgentTool(
                    tool=_name(self._names.tools[each]),
                    successes=int(tools[each, 0]),
                    failures=int(tools[each, 1]),
                )
                for each in heaviest
                if tools[each].any()
            ],
        )

    def effect(self, window: UsageWindow) -> Effect:
        """How first attempts, retries, and tasks went."""
        row = self._sums.calls(span_of(window, self.now)).tolist()
        worked, failed, retries, suggested = row[0], row[1], row[2:4], row[4:6]
        first = (worked - retries[0], failed - retries[1])
        done = min(worked, sum(first))
        return Effect(
            first_attempts=_counts(first),
            tasks=_counts((done, sum(first) - done)),
            retries=_counts(retries),
            suggested=_counts(suggested),
        )

    def failures(self, window: UsageWindow) -> MarkedFailures:
        """Failures by mark, and those before."""
        span, before = span_of(window, self.now), span_before(window, self.now)
        return MarkedFailures(
            counts=self._marked(span),
            before=None if before is None else self._marked(before),
            total=int(self._sums.calls(span)[1]),
        )

    def failure_points(self, window: UsageWindow, marks: Set[str]) -> list[FailurePoint]:
        """Failures of these marks, hour by hour or day by day."""
        span = span_of(window, self.now)
        numbers = [number for mark in marks if (number := self._names.marks.find(mark))]
        failures = self._sums.failures_by_step(span, numbers).tolist()
        return [
            FailurePoint(at=moment_of(hour), failures=count)
            for hour, count in zip(span.steps, failures, strict=True)
        ]

    def _window_totals(self, window: UsageWindow) -> WindowTotals:
        since, until = self.span(window)
        before = span_before(window, self.now)
        return WindowTotals(
            window=window,
            since=since,
            until=until,
            is_complete=self.is_complete,
            totals=self._all_calls(span_of(window, self.now)),
            before=None if before is None else _counts(self._sums.calls(before).tolist()),
        )

    def _all_calls(self, span: Span) -> CallUsage:
        [cuts] = _quantiles(self._sums.durations(span)[np.newaxis])
        return CallUsage(**_fields(self._sums.calls(span).tolist(), cuts))

    def _tools(self, span: Span) -> tuple[list[ToolUsage], CallCounts]:
        calls = self._sums.tools(span)
        told, others = _told(calls, MAX_TOOLS)
        cuts = _quantiles(self._sums.tool_durations(span)[told])
        usages = [
            ToolUsage(tool=_name(self._names.tools[each]), **_fields(calls[each].tolist(), cut))
            for each, cut in zip(told, cuts, strict=True)
        ]
        return usages, others

    def _agents(self, span: Span) -> tuple[list[AgentUsage], CallCounts]:
        calls = self._sums.agents(span)
        told, others = _told(calls, MAX_AGENTS)
        usages = [
            AgentUsage(
                agent=self._names.agents[each],
                successes=int(calls[each, 0]),
                failures=int(calls[each, 1]),
            )
            for each in told
        ]
        return usages, others

    def _categories(self, span: Span) -> list[CategoryUsage]:
        counts = zip(CATEGORIES, self._sums.categories(span).tolist(), strict=True)
        ranked = sorted(counts, key=lambda each: (-each[1], each[0]))
        return [CategoryUsage(category=kind, failures=count) for kind, count in ranked if count]

    def _marked(self, span: Span) -> dict[str, int]:
        counts = self._sums.marks(span)
        return {
            self._names.marks[int(number)]: int(counts[number])
            for number in np.flatnonzero(counts)
            if number
        }

    def _number(self, tool: ToolKey) -> int:
        """Of a tool that is not told apart, one that no call has."""
        return self._names.tools.find(tool) or -1


_SHARES = (0.5, 0.95, 0.99)


def _quantiles(buckets: Ints) -> list[DurationQuantiles | None]:
    rows = quantiles(buckets, _SHARES).round(3).tolist()
    return [
        None if math.isnan(p50) else DurationQuantiles(p50=p50, p95=p95, p99=p99)
        for p50, p95, p99 in rows
    ]


def _told(calls: Ints, most: int) -> tuple[list[int], CallCounts]:
    """The numbers with most calls, most first, and the sum of all the rest."""
    pairs = calls[:, :2].copy()
    weights = pairs.sum(axis=1)
    weights[0] = 0  # all the others
    ranked = np.argsort(-weights, kind="stable")[:most]
    told = ranked[weights[ranked] > 0]
    pairs[told] = 0
    return told.tolist(), _counts(pairs.sum(axis=0).tolist())


def _fields(row: Sequence[int], cuts: DurationQuantiles | None) -> dict[str, object]:
    return {
        "successes": row[0],
        "failures": row[1],
        "retries": _counts(row[2:4]),
        "suggested": _counts(row[4:6]),
        "duration_ms": cuts,
    }


def _counts(pair: Sequence[int]) -> CallCounts:
    return CallCounts(successes=pair[0], failures=pair[1])


def _name(tool: ToolKey) -> ToolName:
    return ToolName(server_name=tool.server_name, tool_name=tool.tool_name)


def _named(tool: ToolKey | None) -> ToolName | None:
    return None if tool is None else _name(tool)
