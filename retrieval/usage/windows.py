"""Windows of usage up to a moment, added up from days. Pure; bounded, however many tools."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, Field

from aftercall.wire import (
    AgentUsage,
    CallCounts,
    CallUsage,
    CategoryUsage,
    DurationQuantiles,
    ErrorCategory,
    ToolName,
    ToolUsage,
    Usage,
    UsageWindow,
)
from mongo.records import ToolKey
from retrieval.usage.day import OTHER, DayUsage, Hour
from retrieval.usage.durations import quantile

WINDOWS: Final[Mapping[UsageWindow, timedelta]] = {
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
LONGEST = max(WINDOWS.values())

MAX_TOOLS = 500
"""In the list of a window."""
MAX_AGENTS = 200
_ROOM = 4
"""Times the length of a list that is told apart while it is added up: of very many tools those that
come late and stay rare are counted among the others."""

K = TypeVar("K", bound=Hashable)


class UsageWindows(BaseModel):
    """All windows of a workspace, as the latest nightly run left them."""

    windows: dict[UsageWindow, Usage] = Field(default_factory=dict)


def usage_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's windows."""
    return f"usage:{workspace}"


@dataclass(slots=True)
class _Sum:
    """Calls added up; pairs are successes and failures."""

    successes: int = 0
    failures: int = 0
    retries: tuple[int, int] = (0, 0)
    suggested: tuple[int, int] = (0, 0)
    durations: Counter[int] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        return self.successes + self.failures

    def add(self, hour: Hour) -> None:
        self.successes += hour.successes
        self.failures += hour.failures
        self.retries = _plus(self.retries, hour.retries)
        self.suggested = _plus(self.suggested, hour.suggested)
        self.durations.update(hour.durations)

    def add_pair(self, pair: tuple[int, int]) -> None:
        self.successes += pair[0]
        self.failures += pair[1]

    def counts(self) -> CallCounts:
        return CallCounts(successes=self.successes, failures=self.failures)

    def usage(self) -> CallUsage:
        cuts = [quantile(self.durations, share) for share in (0.5, 0.95, 0.99)]
        p50, p95, p99 = (None if cut is None else round(cut, 3) for cut in cuts)
        timed = p50 is not None and p95 is not None and p99 is not None
        return CallUsage(
            successes=self.successes,
            failures=self.failures,
            retries=_counts(self.retries),
            suggested=_counts(self.suggested),
            duration_ms=DurationQuantiles(p50=p50, p95=p95, p99=p99) if timed else None,
        )


class _Heaviest(Generic[K]):
    """Sums by key; beyond its room the lightest are added up as others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sums: dict[K, _Sum] = {}
        self._others = _Sum()

    def of(self, key: K) -> _Sum:
        """The sum of a key, to be added to."""
        if key not in self._sums and len(self._sums) >= _ROOM * self._most:
            self._shrink(_ROOM * self._most // 2)
        return self._sums.setdefault(key, _Sum())

    def others(self) -> _Sum:
        """The sum of those without a key of their own."""
        return self._others

    def told(self) -> list[tuple[K, _Sum]]:
        """Most calls first, the rest among the others."""
        self._shrink(self._most)
        return sorted(self._sums.items(), key=lambda each: (-each[1].calls, str(each[0])))

    def _shrink(self, most: int) -> None:
        ranked = sorted(self._sums, key=lambda key: (-self._sums[key].calls, str(key)))
        for key in ranked[most:]:
            gone = self._sums.pop(key)
            self._others.add_pair((gone.successes, gone.failures))


class WindowSum:
    """One window, added up day by day.

    Args:
        window: which one.
        now: its end; it begins with the hour of the same minute a window earlier.
    """

    def __init__(self, window: UsageWindow, now: datetime) -> None:
        self._window = window
        self._until = now.astimezone(UTC)
        begun = self._until - WINDOWS[window]
        self._since = begun.replace(minute=0, second=0, microsecond=0)
        self._total = _Sum()
        self._tools: _Heaviest[ToolKey] = _Heaviest(MAX_TOOLS)
        self._agents: _Heaviest[str] = _Heaviest(MAX_AGENTS)
        self._categories: Counter[ErrorCategory] = Counter()

    def add(self, tool: ToolKey, day: date, usage: DayUsage) -> None:
        """Add those hours of a tool's day that lie in the window."""
        midnight = datetime.combine(day, time(), UTC)
        for number, hour in usage.hours.items():
            if not self._since <= midnight + timedelta(hours=number) <= self._until:
                continue
            self._total.add(hour)
            self._tools.of(tool).add(hour)
            self._categories.update(hour.categories)
            for agent, pair in hour.agents.items():
                among = self._agents.others() if agent == OTHER else self._agents.of(agent)
                among.add_pair(pair)

    def told(self) -> Usage:
        """The window as it is answered; ids of tools are left to whoever answers."""
        tools, agents = self._tools.told(), self._agents.told()
        kinds = sorted(self._categories.items(), key=lambda each: (-each[1], each[0]))
        return Usage(
            window=self._window,
            computed_at=self._until,
            since=self._since,
            until=self._until,
            totals=self._total.usage(),
            by_tool=[
                ToolUsage(
                    tool=ToolName(server_name=tool.server_name, tool_name=tool.tool_name),
                    **dict(each.usage()),
                )
                for tool, each in tools
            ],
            by_agent=[
                AgentUsage(agent=agent, successes=each.successes, failures=each.failures)
                for agent, each in agents
            ],
            by_category=[CategoryUsage(category=kind, failures=count) for kind, count in kinds],
            other_tools=self._tools.others().counts(),
            other_agents=self._agents.others().counts(),
        )


def windows_of(now: datetime) -> list[WindowSum]:
    """All windows up to now, empty."""
    return [WindowSum(window, now) for window in WINDOWS]


def told(sums: Iterable[WindowSum]) -> UsageWindows:
    """All windows as they are kept."""
    usages = [each.told() for each in sums]
    return UsageWindows(windows={usage.window: usage for usage in usages})


def _plus(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return (one[0] + other[0], one[1] + other[1])


def _counts(pair: tuple[int, int]) -> CallCounts:
    return CallCounts(successes=pair[0], failures=pair[1])
