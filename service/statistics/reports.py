"""Statistics of workspaces as they are answered: calls, what was asked, and what came of it.

Each is put together from what others count: usage (`service.statistics.book`), answers, repairs,
patterns and standings of tools. Nothing is learned or changed here.
"""

from collections.abc import Mapping, Sequence

from aftercall.models import (
    AgentStatistics,
    CallCounts,
    ConfidenceStatistics,
    Latency,
    PatternFailures,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
    SuggestResponse,
    ToolName,
    ToolStatistics,
    ToolStatisticsList,
    Totals,
    Trend,
    Usage,
    UsageWindow,
)
from aftercall.redaction import Redactor
from mongo.protocol import LogStore
from mongo.records import MendedFailure, ToolKey
from retrieval.boundaries.cohesion import CohesionRules
from retrieval.fitness.registry import UnknownNameError, nearest_names
from retrieval.memory import Memory
from retrieval.usage.view import UsageView
from service.statistics.answers import AnswerCounter
from service.statistics.book import UsageBook
from service.statistics.confidence import Promises
from service.statistics.kept import Kept
from service.statistics.news import News
from service.statistics.patterns import KnownPatterns
from service.statistics.reflection import joined, repair_times
from service.statistics.tools import Standing, ToolStandings

MAX_REPAIRS = 2_000
"""The latest repairs that are looked at, and as many outcomes of suggestions."""

_REPAIRS_KEPT_S = 5.0


class UnknownAgentError(UnknownNameError):
    """No agent of that name is counted within the longest window."""

    def __init__(self, agent: str, nearest: Sequence[str]) -> None:
        super().__init__("agent", agent, nearest, "GET /stats/usage?window=30d")


class StatisticsReports:
    """Answers every question of `/stats`; times are UTC, and every window ends now.

    Every method raises `StoreError` when the store cannot say.

    Args:
        book: usage, up to now.
        store: where patterns, repairs and outcomes are.
        memory: what is known of tools, cached.
        redactor: masks secrets before anything is answered.
        cohesion: when a tool is said to be asked for several jobs.
        answers: what `/suggest` answered.
        news: told whenever any of this may be another one.
    """

    def __init__(
        self,
        *,
        book: UsageBook,
        store: LogStore,
        memory: Memory,
        redactor: Redactor,
        cohesion: CohesionRules,
        answers: AnswerCounter,
        news: News,
    ) -> None:
        self.answers = answers
        self.news = news
        self._book = book
        self._store = store
        self._memory = memory
        self._patterns = KnownPatterns(store=store, memory=memory, redactor=redactor)
        self._standings = ToolStandings(memory=memory, cohesion=cohesion)
        self._promises = Promises(store)
        self._repairs: Kept[str, list[MendedFailure]] = Kept(_REPAIRS_KEPT_S)

    def answered(self, workspace: str, response: SuggestResponse) -> None:
        """Count an answer of `/suggest`; returns at once."""
        self.answers.answered(workspace, response)
        self.news.tell(workspace)

    async def totals(self, workspace: str) -> Totals:
        """All calls within each window."""
        return (await self._book.view(workspace)).totals()

    async def usage(self, workspace: str, window: UsageWindow, limit: int) -> Usage:
        """Calls by tool, agent and kind of failure; at most `limit` tools and agents."""
        view = await self._book.view(workspace)
        return await self._usage(workspace, view, window, limit)

    async def trend(
        self, workspace: str, window: UsageWindow, tool: ToolKey | None = None
    ) -> Trend:
        """Calls hour by hour or day by day, of one tool or all."""
        found = (await self._book.view(workspace)).trend(window, tool)
        return found.model_copy(update={"tool": await self._told(workspace, found.tool)})

    async def latency(
        self, workspace: str, window: UsageWindow, tool: ToolKey | None = None
    ) -> Latency:
        """How long calls took, hour by hour or day by day, of one tool or all."""
        found = (await self._book.view(workspace)).latency(window, tool)
        return found.model_copy(update={"tool": await self._told(workspace, found.tool)})

    async def reflection(self, workspace: str, window: UsageWindow) -> ReflectionStatistics:
        """What asking about failures did."""
        view = await self._book.view(workspace)
        since, until = view.span(window)
        effect = view.effect(window)
        mended = await self._repairs.get(workspace, lambda: self._mended(workspace))
        with_suggestion, without_suggestion = repair_times(mended, since, until)
        return ReflectionStatistics(
            window=window,
            since=since,
            until=until,
            is_complete=view.is_complete,
            first_attempts=effect.first_attempts,
            tasks=effect.tasks,
            retries=effect.retries,
            suggested=effect.suggested,
            answers=await self.answers.counts(workspace, since),
            with_suggestion=with_suggestion,
            without_suggestion=without_suggestion,
        )

    async def patterns(self, workspace: str, window: UsageWindow, limit: int) -> PatternStatistics:
        """Patterns that were met in a window, at most `limit`; none before the first nightly run.

        They are those of the latest run: a failure that says something new is among the others.
        """
        view = await self._book.view(workspace)
        since, until = view.span(window)
        failures = view.failures(window)
        shares = await self._patterns.shares(workspace, failures.counts, failures.before)
        most = sorted(shares.failures, key=lambda each: (-shares.failures[each], each))[:limit]
        shown = [
            PatternFailures(
                pattern=each,
                failures=shares.failures[each.pattern_id],
                before=None if shares.before is None else shares.before.get(each.pattern_id, 0),
            )
            for each in await self._patterns.told(workspace, most)
        ]
        return PatternStatistics(
            window=window,
            since=since,
            until=until,
            is_complete=view.is_complete,
            patterns=shown,
            other_failures=max(0, failures.total - sum(each.failures for each in shown)),
        )

    async def pattern(self, workspace: str, pattern_id: str, window: UsageWindow) -> PatternHistory:
        """How often a pattern was met, day by day.

        Raises:
            UnknownPatternError: there is none of that id.
        """
        pattern, told = await self._patterns.find(workspace, pattern_id)
        view = await self._book.view(workspace)
        since, until = view.span(window)
        return PatternHistory(
            window=window,
            since=since,
            until=until,
            is_complete=view.is_complete,
            pattern=told,
            points=view.failure_points(window, {each.hex() for each in pattern.marks()}),
        )

    async def tools(self, workspace: str, window: UsageWindow, limit: int) -> ToolStatisticsList:
        """Tools that were called in a window, at most `limit`, and how good they are now."""
        view = await self._book.view(workspace)
        since, until = view.span(window)
        found = await self._usage(workspace, view, window, limit)
        keys = [_key(workspace, each.tool) for each in found.by_tool]
        standings = await self._standings.of(workspace, keys)
        return ToolStatisticsList(
            window=window,
            since=since,
            until=until,
            is_complete=found.is_complete,
            tools=[
                ToolStatistics(**dict(each), **standings.get(key, Standing())._asdict())
                for each, key in zip(found.by_tool, keys, strict=True)
            ],
            other_tools=found.other_tools,
        )

    async def standing(self, tool: ToolKey) -> Standing:
        """How good one tool is now, called or not."""
        return (await self._standings.of(tool.workspace, [tool])).get(tool, Standing())

    async def agent(self, workspace: str, agent: str, window: UsageWindow) -> AgentStatistics:
        """The calls of one agent; those of a known one that has none in the window are none.

        Raises:
            UnknownAgentError: nobody of that name called anything lately.
        """
        view = await self._book.view(workspace)
        found = view.agent(window, agent)
        if found is None:
            names = [each.agent for each in view.usage("30d").by_agent]
            raise UnknownAgentError(agent, nearest_names(agent, names, ()))
        ids = await self._ids(workspace)
        tools = [
            each.model_copy(update={"tool": _with_id(each.tool, ids, workspace)})
            for each in found.tools
        ]
        return found.model_copy(update={"tools": tools})

    async def confidence(self, workspace: str) -> ConfidenceStatistics:
        """What suggestions promised and what came of it, of the latest outcomes."""
        return await self._promises.told(workspace)

    async def _usage(
        self, workspace: str, view: UsageView, window: UsageWindow, limit: int
    ) -> Usage:
        found = view.usage(window)
        ids = await self._ids(workspace)
        return found.model_copy(
            update={
                "is_complete": view.is_complete,
                "by_tool": [
                    each.model_copy(update={"tool": _with_id(each.tool, ids, workspace)})
                    for each in found.by_tool[:limit]
                ],
                "by_agent": found.by_agent[:limit],
                "other_tools": _with(found.other_tools, found.by_tool[limit:]),
                "other_agents": _with(found.other_agents, found.by_agent[limit:]),
            }
        )

    async def _mended(self, workspace: str) -> list[MendedFailure]:
        """Mined repairs, which followed no suggestion, and the successes that did."""
        mined = await self._store.latest_mended(workspace, MAX_REPAIRS)
        followed = await self._store.latest_followed(workspace, MAX_REPAIRS)
        return joined(mined, followed)

    async def _ids(self, workspace: str) -> Mapping[ToolKey, str]:
        return {each.tool_key: each.tool.tool_id for each in await self._memory.tools(workspace)}

    async def _told(self, workspace: str, tool: ToolName | None) -> ToolName | None:
        if tool is None:
            return None
        return _with_id(tool, await self._ids(workspace), workspace)


def _with_id(tool: ToolName, ids: Mapping[ToolKey, str], workspace: str) -> ToolName:
    return tool.model_copy(update={"tool_id": ids.get(_key(workspace, tool))})


def _key(workspace: str, tool: ToolName) -> ToolKey:
    return ToolKey(workspace, tool.server_name, tool.tool_name)


def _with(others: CallCounts, cut: Sequence[CallCounts]) -> CallCounts:
    return CallCounts(
        successes=others.successes + sum(each.successes for each in cut),
        failures=others.failures + sum(each.failures for each in cut),
    )
