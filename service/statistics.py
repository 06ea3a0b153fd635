"""StatisticsReports of workspaces: sums of counters, and what else is known, as they are answered.

They are right up to what has been learned; `is_complete` says whether that is all. A window ends
now: `24h` begins with an hour, 24 hours before the present one; `7d` and `30d` begin with a day, so
that whole days add up to them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import numpy as np
from cachetools import TTLCache

from aftercall.models import (
    Action,
    ActionCount,
    AgentStatistics,
    AgentTool,
    AgentUsage,
    AnswerCounts,
    CallCounts,
    CategoryAbstentions,
    CategoryUsage,
    ConfidenceStatistics,
    DurationQuantiles,
    ErrorCategory,
    FailurePoint,
    Latency,
    LatencyPoint,
    PatternFailures,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
    RepairTimes,
    ToolName,
    ToolStatistics,
    ToolStatisticsList,
    ToolUsage,
    Totals,
    Trend,
    TrendPoint,
    Usage,
    UsageWindow,
    WindowTotals,
)
from mongo.contents import hour_of
from mongo.protocol import CounterDimension, Store
from mongo.records import CounterSum, Cursor, ToolKey
from retrieval import counters as what
from retrieval.boundaries.cohesion import CohesionRules
from retrieval.confidence import Promise, reliability
from retrieval.fitness.registry import Registry, UnknownNameError, named, nearest_names
from retrieval.memory import JUDGED, REPAIR, Memory
from service.patterns import Patterns
from service.standings import ToolStanding, standings

MAX_TOOLS_OF_AGENT = 20
"""Those with most failures, then most calls."""

MAX_REPAIRS = 2_000
"""The latest repairs that are looked at."""
MAX_OUTCOMES = 2_000
"""The latest outcomes that are looked at."""

_KEPT_S = 5.0
"""Pages of many viewers ask for the same each second; what was learned since is never left out."""

_HOUR_S = 3600

_DAY = 24
_WINDOWS: tuple[UsageWindow, ...] = ("24h", "7d", "30d")
_DAYS: Mapping[UsageWindow, int] = {"24h": 1, "7d": 7, "30d": 30}
_CALLS = (
    what.SUCCESS, what.FAILURE, what.RETRY_SUCCESS, what.RETRY_FAILURE, what.FOLLOWED_SUCCESS,
    what.FOLLOWED_FAILURE,
)  # fmt: skip
_DURATIONS = (f"{what.DURATION}*",)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UnknownAgentError(UnknownNameError):
    """No agent of that name is counted within the longest window."""

    def __init__(self, agent: str, nearest: Sequence[str]) -> None:
        super().__init__("agent", agent, nearest, "GET /stats/usage?window=30d")


@dataclass(frozen=True, slots=True)
class _Span:
    """Hours since 1970 from `first` to `last`, both among them; a step is one hour or 24."""

    first: int
    last: int
    step: int

    @property
    def steps(self) -> range:
        """The first hour of each step."""
        return range(self.first, self.last + 1, self.step)

    def place(self, hour: int) -> int:
        """The number of the step of an hour."""
        return (hour - self.first) // self.step


def _span(window: UsageWindow, now: datetime) -> _Span:
    last = hour_of(now)
    if window == "24h":
        return _Span(last - _DAY, last, 1)
    midnight = last - last % _DAY
    return _Span(midnight - (_DAYS[window] - 1) * _DAY, last, _DAY)


def _before(window: UsageWindow, span: _Span) -> _Span:
    return _Span(span.first - _DAYS[window] * _DAY, span.first - 1, span.step)


class StatisticsReports:
    """Answers every question of `/stats`; times are UTC, and every window ends now.

    Every method raises `StoreError` when the store cannot say.

    Args:
        store: holds counters, repairs and outcomes.
        memory: what is known of tools, cached.
        patterns: reads patterns.
        cohesion: when a tool is said to be asked for several jobs.
        is_settled: whether all that was answered is in the log.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        store: Store,
        memory: Memory,
        patterns: Patterns,
        cohesion: CohesionRules,
        is_settled: Callable[[], bool] = lambda: True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._memory = memory
        self._patterns = patterns
        self._cohesion = cohesion
        self._is_settled = is_settled
        self._clock = clock
        self._kept: TTLCache[Any, list[CounterSum]] = TTLCache(512, _KEPT_S)
        self._over: TTLCache[Any, list[CounterSum]] = TTLCache(256, _HOUR_S)

    async def totals(self, workspace: str, *, with_durations: bool = True) -> Totals:
        """All calls within each window; durations are most of the work."""
        windows = []
        for window in _WINDOWS:
            about, span = await self._about(workspace, window)
            before = None
            if window != "30d":
                before = _counts(await self._calls(workspace, _before(window, span)))
            totals = await self._all_calls(workspace, span, with_durations=with_durations)
            windows.append(WindowTotals(**about, totals=totals, before=before))
        return Totals(windows=windows)

    async def usage(self, workspace: str, window: UsageWindow, limit: int) -> Usage:
        """Calls by tool, agent and kind of failure; at most `limit` tools and agents."""
        about, span = await self._about(workspace, window)
        by_tool, other_tools = await self._by_tool(workspace, span, limit)
        agents = await self._agents(workspace, span)
        ranked = sorted(agents.items(), key=lambda each: (-sum(each[1]), each[0]))
        shown = [each for each in ranked if each[0] != what.OTHER][:limit]
        others = [pair for name, pair in ranked if name not in dict(shown)]
        categories = await self._named_sums(workspace, what.CATEGORY, span)
        categories.pop(what.OTHER, None)
        return Usage(
            **about,
            computed_at=about["until"],
            totals=await self._all_calls(workspace, span),
            by_tool=by_tool,
            by_agent=[
                AgentUsage(agent=name, successes=worked, failures=failed)
                for name, (worked, failed) in shown
            ],
            by_category=[
                CategoryUsage.model_validate({"category": name, "failures": number})
                for name, number in _most(categories)
            ],
            other_tools=other_tools,
            other_agents=CallCounts(
                successes=sum(pair[0] for pair in others), failures=sum(pair[1] for pair in others)
            ),
        )

    async def called(self, workspace: str, window: UsageWindow, limit: int) -> list[ToolUsage]:
        """As `usage` tells tools, without their durations."""
        span = _span(window, self._clock())
        found, _ = await self._by_tool(workspace, span, limit, with_durations=False)
        return found

    async def trend(
        self, workspace: str, window: UsageWindow, tool: ToolKey | None = None
    ) -> Trend:
        """Calls hour by hour or day by day, of one tool or all."""
        about, span = await self._about(workspace, window)
        points = await self._points(workspace, _CALLS, span, tool)
        return Trend(
            **about,
            step="hour" if span.step == 1 else "day",
            tool=await self._named(tool),
            points=[TrendPoint(at=at, **_fields(point)) for at, point in points],
        )

    async def latency(
        self, workspace: str, window: UsageWindow, tool: ToolKey | None = None
    ) -> Latency:
        """How long calls took, hour by hour or day by day, of one tool or all."""
        about, span = await self._about(workspace, window)
        points = await self._points(workspace, _DURATIONS, span, tool)
        overall: dict[str, int] = {}
        for _, point in points:
            _add_all(overall, point)
        return Latency(
            **about,
            step="hour" if span.step == 1 else "day",
            tool=await self._named(tool),
            overall=_quantiles(overall),
            points=[
                LatencyPoint(at=at, calls=sum(point.values()), duration_ms=_quantiles(point))
                for at, point in points
            ],
        )

    async def tools(self, workspace: str, window: UsageWindow, limit: int) -> ToolStatisticsList:
        """Tools that were called in a window, at most `limit`, and how good they are now."""
        about, span = await self._about(workspace, window)
        by_tool, others = await self._by_tool(workspace, span, limit)
        keys = [ToolKey(workspace, e.tool.server_name, e.tool.tool_name) for e in by_tool]
        known = await standings(self._memory, self._cohesion, workspace, keys, self._clock())
        return ToolStatisticsList(
            **about,
            tools=[
                ToolStatistics(**dict(each), **known[key]._asdict())
                for each, key in zip(by_tool, keys, strict=True)
            ],
            other_tools=others,
        )

    async def standing(self, tool: ToolKey) -> ToolStanding:
        """How good one tool is now, called or not."""
        known = await standings(self._memory, self._cohesion, tool.workspace, [tool], self._clock())
        return known[tool]

    async def agent(self, workspace: str, agent: str, window: UsageWindow) -> AgentStatistics:
        """The calls of one agent; those of a known one that has none in the window are none.

        Raises:
            UnknownAgentError: nobody of that name called anything lately.
        """
        about, span = await self._about(workspace, window)
        longest = await self._agents(workspace, _span("30d", self._clock()))
        if agent not in longest or agent == what.OTHER:
            raise UnknownAgentError(agent, nearest_names(agent, list(longest), ()))
        names = (f"{what.AGENT_SUCCESS}{agent}", f"{what.AGENT_FAILURE}{agent}")
        sums = await self._by_key(workspace, names, span)
        tools = {tool: tuple(each.get(name, 0) for name in names) for tool, each in sums.items()}
        heaviest = sorted(tools, key=lambda tool: (-tools[tool][1], -sum(tools[tool]), str(tool)))
        registry = await self._memory.registry(workspace)
        return AgentStatistics(
            **about,
            agent=agent,
            usage=AgentUsage(
                agent=agent,
                successes=sum(pair[0] for pair in tools.values()),
                failures=sum(pair[1] for pair in tools.values()),
            ),
            tools=[
                AgentTool(
                    tool=_name(tool, registry), successes=tools[tool][0], failures=tools[tool][1]
                )
                for tool in heaviest[:MAX_TOOLS_OF_AGENT]
            ],
        )

    async def reflection(self, workspace: str, window: UsageWindow) -> ReflectionStatistics:
        """What asking about failures did.

        Which retry belongs to which first attempt is not counted: `tasks` takes each success for
        that of another task, as many as there are.
        """
        about, span = await self._about(workspace, window)
        calls = await self._calls(workspace, span)
        counted = _fields(calls)
        first = (
            calls.get(what.SUCCESS, 0) - calls.get(what.RETRY_SUCCESS, 0),
            calls.get(what.FAILURE, 0) - calls.get(what.RETRY_FAILURE, 0),
        )
        done = min(calls.get(what.SUCCESS, 0), sum(first))
        by_suggestion, by_agents = await self._repair_times(workspace, about)
        return ReflectionStatistics(
            **about,
            first_attempts=CallCounts(successes=first[0], failures=first[1]),
            tasks=CallCounts(successes=done, failures=sum(first) - done),
            retries=counted["retries"],
            suggested=counted["suggested"],
            answers=await self._answers(workspace, span),
            with_suggestion=by_suggestion,
            without_suggestion=by_agents,
        )

    async def patterns(self, workspace: str, window: UsageWindow, limit: int) -> PatternStatistics:
        """Patterns that were met in a window, at most `limit`; none before the first nightly job.

        They are those of the latest run: a failure that says something new is among the others.
        """
        about, span = await self._about(workspace, window)
        marks = await self._named_sums(workspace, what.SIGNATURE, span)
        failures = await self._patterns.by_pattern(workspace, marks)
        before: Mapping[str, int] | None = None
        if window != "30d":
            earlier = await self._named_sums(workspace, what.SIGNATURE, _before(window, span))
            before = await self._patterns.by_pattern(workspace, earlier)
        most = [name for name, _ in _most(failures)][:limit]
        shown = [
            PatternFailures(
                pattern=each,
                failures=failures[each.pattern_id],
                before=None if before is None else before.get(each.pattern_id, 0),
            )
            for each in await self._patterns.shown(workspace, most)
        ]
        total = (await self._calls(workspace, span)).get(what.FAILURE, 0)
        other = max(0, total - sum(each.failures for each in shown))
        return PatternStatistics(**about, patterns=shown, other_failures=other)

    async def pattern(self, workspace: str, pattern_id: str, window: UsageWindow) -> PatternHistory:
        """How often a pattern was met, day by day.

        Raises:
            UnknownPatternError: there is none of that id.
        """
        pattern, shown = await self._patterns.find(workspace, pattern_id)
        about, span = await self._about(workspace, window)
        marks = [f"{what.SIGNATURE}{mark.hex()}" for mark in pattern.marks()]
        points = await self._points(workspace, marks, span)
        return PatternHistory(
            **about,
            pattern=shown,
            points=[FailurePoint(at=at, failures=sum(point.values())) for at, point in points],
        )

    async def confidence(self, workspace: str) -> ConfidenceStatistics:
        """What suggestions promised and what came of it, of the latest outcomes."""
        rows = await self._store.knowledge.scan(workspace, JUDGED.name, MAX_OUTCOMES, by="rank")
        judged = [each for row in rows if (each := JUDGED.decode(row)).estimate is not None]
        return reliability([Promise(e.confidence, e.outcome == "success") for e in judged])

    async def _about(self, workspace: str, window: UsageWindow) -> tuple[dict[str, Any], _Span]:
        """What every answer about a window says of it, and its hours."""
        now = self._clock().astimezone(UTC)
        span = _span(window, now)
        is_settled = self._is_settled()  # before the log is read, which else may lack an answer
        head = (await self._store.events.heads()).get(workspace)
        cursor = (await self._store.knowledge.cursors()).get(workspace)
        learned, there = cursor.position if cursor else 0, head.position if head else 0
        about = {
            "window": window,
            "since": _moment(span.first),
            "until": now,
            "is_complete": learned >= there and is_settled,
        }
        return about, span

    async def _sums(
        self,
        workspace: str,
        names: Sequence[str],
        span: _Span,
        by: tuple[CounterDimension, ...],
        tool: ToolKey | None = None,
    ) -> list[CounterSum]:
        """Sums over a span. The present hour is read anew, hours that are over where they must be.

        Counters only grow within a generation, so hours that are over hold what they held as long
        as no more is counted in them.
        """
        knowledge = self._store.knowledge
        seen = (knowledge.generation, workspace, (await knowledge.cursors()).get(workspace))
        over = replace(span, last=min(span.last, hour_of(self._clock()) - 1))
        rest = replace(span, first=over.last + 1)
        counted = sum(each.number for each in await self._read(seen, (what.COUNTED,), over))
        key = (*seen[:2], tuple(names), over, by, tool, counted)
        closed = self._over.get(key)
        if closed is None:
            closed = await self._read(seen, names, over, by, tool)
            if self._store.knowledge.generation != seen[0]:  # these are of the one after it
                return await self._sums(workspace, names, span, by, tool)
            self._over[key] = closed
        if rest.first > rest.last:
            return closed
        opened = await self._read(seen, names, rest, by, tool)
        if "hour" in by:
            return closed + opened
        sums: dict[Any, int] = {each[1:]: each.number for each in closed}
        for each in opened:
            _add(sums, each[1:], each.number)
        return [CounterSum(number, *group) for group, number in sums.items()]

    async def _read(
        self,
        seen: tuple[int, str, Cursor | None],
        names: Sequence[str],
        span: _Span,
        by: tuple[CounterDimension, ...] = (),
        tool: ToolKey | None = None,
    ) -> list[CounterSum]:
        """What the store sums up, read once while nothing is learned."""
        key = (seen, tuple(names), span, by, tool)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = await self._store.counters.sums(
                seen[1], names, since=span.first, until=span.last, by=by, tool=tool
            )
        return found

    async def _named_sums(self, workspace: str, prefix: str, span: _Span) -> dict[str, int]:
        """Sums of the counters of a prefix, by the rest of their names."""
        found = await self._sums(workspace, (f"{prefix}*",), span, ("what",))
        return {(each.what or "").removeprefix(prefix): each.number for each in found}

    async def _calls(self, workspace: str, span: _Span) -> dict[str, int]:
        found = await self._sums(workspace, _CALLS, span, ("what",))
        return {each.what or "": each.number for each in found}

    async def _points(
        self, workspace: str, names: Sequence[str], span: _Span, tool: ToolKey | None = None
    ) -> list[tuple[datetime, dict[str, int]]]:
        """The sums of each step of a span by name, with its beginning."""
        points: list[dict[str, int]] = [{} for _ in span.steps]
        found = await self._sums(workspace, names, span, ("hour", "what"), tool) if names else ()
        for each in found:
            _add(points[span.place(each.hour or 0)], each.what or "", each.number)
        return list(zip(map(_moment, span.steps), points, strict=True))

    async def _by_key(
        self, workspace: str, names: Sequence[str], span: _Span
    ) -> dict[ToolKey, dict[str, int]]:
        """The sums of each tool by name."""
        sums: dict[ToolKey, dict[str, int]] = {}
        for each in await self._sums(workspace, names, span, ("tool", "what")):
            if each.tool is not None:
                _add(sums.setdefault(each.tool, {}), each.what or "", each.number)
        return sums

    async def _all_calls(
        self, workspace: str, span: _Span, *, with_durations: bool = True
    ) -> dict[str, Any]:
        found = _fields(await self._calls(workspace, span))
        if with_durations:
            durations = await self._sums(workspace, _DURATIONS, span, ("what",))
            found["duration_ms"] = _quantiles({each.what or "": each.number for each in durations})
        return found

    async def _by_tool(
        self, workspace: str, span: _Span, limit: int, *, with_durations: bool = True
    ) -> tuple[list[ToolUsage], CallCounts]:
        calls = await self._by_key(workspace, _CALLS, span)
        durations = await self._by_key(workspace, _DURATIONS, span) if with_durations else {}
        ranked = sorted(calls, key=lambda tool: (-_weight(calls[tool]), str(tool[1:])))
        registry = await self._memory.registry(workspace)
        shown = [
            ToolUsage(
                tool=_name(tool, registry),
                duration_ms=_quantiles(durations.get(tool, {})),
                **_fields(calls[tool]),
            )
            for tool in ranked[:limit]
        ]
        others: dict[str, int] = {}
        for tool in ranked[limit:]:
            _add_all(others, calls[tool])
        return shown, _counts(others)

    async def _agents(self, workspace: str, span: _Span) -> dict[str, tuple[int, int]]:
        worked = await self._named_sums(workspace, what.AGENT_SUCCESS, span)
        failed = await self._named_sums(workspace, what.AGENT_FAILURE, span)
        return {name: (worked.get(name, 0), failed.get(name, 0)) for name in {**worked, **failed}}

    async def _answers(self, workspace: str, span: _Span) -> AnswerCounts:
        sums = await self._named_sums(workspace, what.ANSWER, span)
        actions = {f"action:{each}": each for each in get_args(Action)}
        kinds = {f"{what.ABSTAINED}:{each}": each for each in get_args(ErrorCategory)}
        return AnswerCounts(
            asked=sums.get(what.ASKED, 0),
            abstained=sums.get(what.ABSTAINED, 0),
            confident=sums.get(what.SURE, 0),
            by_action=[
                ActionCount(action=actions[name], answers=number)
                for name, number in _most(sums)
                if name in actions
            ],
            abstentions=[
                CategoryAbstentions(category=kinds[name], answers=number)
                for name, number in _most(sums)
                if name in kinds
            ],
        )

    async def _repair_times(
        self, workspace: str, about: Mapping[str, Any]
    ) -> tuple[RepairTimes, RepairTimes]:
        """Of the failures that were mended in a window: those by a suggestion, and the others."""
        rows = await self._store.knowledge.scan(workspace, REPAIR.name, MAX_REPAIRS, by="rank")
        waited: dict[bool, list[float]] = {True: [], False: []}
        for row in rows:
            each = REPAIR.decode(row)
            if about["since"] <= each.mended_at <= about["until"]:
                # By another clock a success may be of before its failure.
                seconds = max(0.0, (each.mended_at - each.failed_at) / timedelta(seconds=1))
                waited[each.followed_suggestion].append(seconds * 1000)
        return _times(waited[True]), _times(waited[False])

    async def _named(self, tool: ToolKey | None) -> ToolName | None:
        return None if tool is None else _name(tool, await self._memory.registry(tool.workspace))


def _moment(hour: int) -> datetime:
    return _EPOCH + timedelta(hours=hour)


def _add(sums: dict[Any, int], key: object, number: int) -> None:
    sums[key] = sums.get(key, 0) + number


def _add_all(sums: dict[str, int], others: Mapping[str, int]) -> None:
    for name, number in others.items():
        _add(sums, name, number)


def _weight(calls: Mapping[str, int]) -> int:
    return calls.get(what.SUCCESS, 0) + calls.get(what.FAILURE, 0)


def _counts(
    calls: Mapping[str, int], worked: str = what.SUCCESS, failed: str = what.FAILURE
) -> CallCounts:
    return CallCounts(successes=calls.get(worked, 0), failures=calls.get(failed, 0))


def _fields(calls: Mapping[str, int]) -> dict[str, Any]:
    return {
        "successes": calls.get(what.SUCCESS, 0),
        "failures": calls.get(what.FAILURE, 0),
        "retries": _counts(calls, what.RETRY_SUCCESS, what.RETRY_FAILURE),
        "suggested": _counts(calls, what.FOLLOWED_SUCCESS, what.FOLLOWED_FAILURE),
    }


def _most(sums: Mapping[str, int]) -> list[tuple[str, int]]:
    """Most first, then by name."""
    return sorted(sums.items(), key=lambda each: (-each[1], each[0]))


def _quantiles(durations: Mapping[str, int]) -> DurationQuantiles | None:
    if not durations:
        return None
    buckets = {int(name.removeprefix(what.DURATION)): each for name, each in durations.items()}
    p50, p95, p99 = (round(what.quantile(buckets, share) or 0.0, 3) for share in (0.5, 0.95, 0.99))
    return DurationQuantiles(p50=p50, p95=p95, p99=p99)


def _name(tool: ToolKey, registry: Registry) -> ToolName:
    stored = registry.named(tool)
    return named(tool, stored.tool.tool_id if stored else None)


def _times(waited_ms: Iterable[float]) -> RepairTimes:
    found = list(waited_ms)
    if not found:
        return RepairTimes()
    p50, p95 = np.percentile(found, [50, 95])
    return RepairTimes(repairs=len(found), p50_ms=round(float(p50), 3), p95_ms=round(float(p95), 3))
