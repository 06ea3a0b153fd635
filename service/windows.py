"""Windows: hours of a workspace up to now, and sums of its counters over them.

Sums are right up to what has been learned; `is_complete` states whether that is all. A window ends
now: `24h` begins with an hour, 24 hours before the present one; `7d` and `30d` begin with a day, so
that whole days add up to them. A window of dates has whole hours or days, and ends now at the
latest.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from cachetools import TTLCache

from aftercall import models as m
from aftercall.tables import summed
from mongo.contents import hour_of
from mongo.protocol import CounterDimension
from mongo.records import EPOCH, CounterSum, Cursor, ToolKey
from retrieval.knowledge.rows import counters as what
from service.context import Space

_DAY = 24
_DAYS: Mapping[m.UsageWindow, int] = {"24h": 1, "7d": 7, "30d": 30}
_MAX_HOURS = 48
"""Hours of the longest window of dates that is shown hour by hour."""


class _Sums(TTLCache[Hashable, list[CounterSum]]):
    """The sums that the store returned: pages of many viewers ask for the same each second.

    Later calls are never left out, for each key names what was learned.
    """

    def __init__(self) -> None:
        super().__init__(maxsize=512, ttl=5)


class _PastSums(TTLCache[Hashable, list[CounterSum]]):
    """Sums of hours that are over; they hold as long as no more is counted in those hours."""

    def __init__(self) -> None:
        super().__init__(maxsize=256, ttl=3600)


class _TopTools(TTLCache[Hashable, list[ToolKey]]):
    """The tools that counted most, kept like `_Sums`."""

    def __init__(self) -> None:
        super().__init__(maxsize=64, ttl=5)


CALL_COUNTERS = (
    what.SUCCESS, what.FAILURE, what.RETRY_SUCCESS, what.RETRY_FAILURE, what.FOLLOWED_SUCCESS,
    what.FOLLOWED_FAILURE,
)  # fmt: skip


@dataclass(frozen=True)
class WindowHours:
    """Hours of a workspace since 1970, `first` and `last` among them; a step is one hour or 24."""

    space: Space
    window: m.UsageWindow
    first: int
    last: int
    step: int

    @property
    def unit(self) -> Literal["hour", "day"]:
        """Return what a step is called."""
        return "hour" if self.step == 1 else "day"

    @property
    def before(self) -> "WindowHours":
        """The same number of hours before these; for 24h one hour less, which has begun."""
        hours = _DAYS[self.window] * _DAY if self.window in _DAYS else self.last + 1 - self.first
        return replace(self, first=self.first - hours, last=self.first - 1)

    async def known_before(self) -> "WindowHours | None":
        """Return the hours before these; None if they begin before the first call."""
        before = self.before
        is_long = self.window not in ("24h", "7d")
        return None if is_long and not (await before.by_name(what.COUNTED)).total() else before

    async def describe_window(self) -> dict[str, Any]:
        """Return what every answer states of its window."""
        context, workspace = self.space
        now = context.clock().astimezone(UTC)
        # Before the log is read, which else may lack an answer.
        is_settled = context.suggester.is_settled()
        head = (await context.store.events.heads()).get(workspace)
        cursor = (await context.store.knowledge.cursors()).get(workspace)
        learned, there = cursor.position if cursor else 0, head.position if head else 0
        return {
            "window": self.window,
            "since": _hour_start(self.first),
            "until": min(now, _hour_start(self.last + 1)),
            "is_complete": learned >= there and is_settled,
        }

    async def read_sums(
        self,
        names: Sequence[str],
        by: tuple[CounterDimension, ...],
        tools: tuple[ToolKey, ...] | None = None,
    ) -> list[CounterSum]:
        """Return sums of counters; the present hour is read again, past hours only if they changed.

        Counters only grow within a generation, so the sums of past hours hold as long as no more is
        counted in them.
        """
        context, workspace = self.space
        knowledge, over_lately = context.store.knowledge, context.caches.get_cache(_PastSums)
        generation = knowledge.generation
        seen = (generation, (await knowledge.cursors()).get(workspace))
        over = replace(self, last=min(self.last, hour_of(context.clock()) - 1))
        rest = replace(self, first=over.last + 1)
        counted = sum(each.number for each in await over.read(seen, (what.COUNTED,)))
        key = (generation, workspace, over.first, over.last, *names, by, tools, counted)
        if (closed := over_lately.get(key)) is None:
            closed = await over.read(seen, names, by, tools)
            if knowledge.generation != generation:  # these are of the one after it
                return await self.read_sums(names, by, tools)
            over_lately[key] = closed
        if rest.first > rest.last:
            return closed
        opened = await rest.read(seen, names, by, tools)
        if "hour" in by:
            return closed + opened
        sums = summed((each[1:], each.number) for each in (*closed, *opened))
        return [CounterSum(number, *group) for group, number in sums.items()]

    async def read(
        self,
        seen: tuple[int, Cursor | None],
        names: Sequence[str],
        by: tuple[CounterDimension, ...] = (),
        tools: tuple[ToolKey, ...] | None = None,
    ) -> list[CounterSum]:
        """Return the store's sums; they are read once for each state `seen` of what was learned."""
        context, workspace = self.space
        kept = context.caches.get_cache(_Sums)
        key = (*seen, workspace, self.first, self.last, *names, by, tools)
        if (found := kept.get(key)) is None:
            found = kept[key] = await context.store.counters.sums(
                workspace, names, since=self.first, until=self.last, by=by, tools=tools
            )
        return found

    async def by_name(self, *names: str, prefix: str = "") -> Counter[str]:
        """Return sums of counters by name without a prefix; by default of the whole prefix."""
        found = await self.read_sums(names or (f"{prefix}*",), ("what",))
        return Counter({(e.what or "").removeprefix(prefix): e.number for e in found})

    async def read_points(
        self, names: Sequence[str], tool: ToolKey | None = None
    ) -> list[tuple[datetime, Counter[str]]]:
        """Return sums of counters by name, with the moment at which each step begins."""
        steps = range(self.first, self.last + 1, self.step)
        points = [Counter[str]() for _ in steps]
        tools = None if tool is None else (tool,)
        for each in await self.read_sums(names, ("hour", "what"), tools) if names else ():
            points[((each.hour or 0) - self.first) // self.step][each.what or ""] += each.number
        return list(zip(map(_hour_start, steps), points, strict=True))

    async def top_tools(self, names: Sequence[str], limit: int) -> list[ToolKey]:
        """Return the tools that counted most, read once while nothing is learned."""
        context, workspace = self.space
        knowledge, kept = context.store.knowledge, context.caches.get_cache(_TopTools)
        seen = (knowledge.generation, (await knowledge.cursors()).get(workspace))
        key = (*seen, workspace, self.first, self.last, *names, limit)
        if (found := kept.get(key)) is None:
            found = kept[key] = await context.store.counters.top_tools(
                workspace, names, since=self.first, until=self.last, limit=limit
            )
        return found

    async def by_key(
        self, *names: str, tools: Sequence[ToolKey] | None = None
    ) -> dict[ToolKey, Counter[str]]:
        """Return sums of counters by tool and name, of all tools or of these."""
        sums: dict[ToolKey, Counter[str]] = {}
        of = None if tools is None else tuple(tools)
        for each in await self.read_sums(names, ("tool", "what"), of):
            if each.tool is not None:
                sums.setdefault(each.tool, Counter())[each.what or ""] += each.number
        return sums


async def read_window(space: Space, window: m.UsageWindow) -> tuple[WindowHours, dict[str, Any]]:
    """Return the hours of a window, and what every answer states of it."""
    hours = span_of(space, window)
    return hours, await hours.describe_window()


def span_of(space: Space, window: m.UsageWindow) -> WindowHours:
    """Return the hours of a window of a workspace."""
    last = hour_of(space.context.clock())
    if dates := m.window_dates(window):
        first, end = map(hour_of, dates)
        last = min(last, end - 1)
        step = 1 if end - first <= _MAX_HOURS else _DAY
        return WindowHours(space, window, min(first, last), last, step)
    if window == "24h":
        return WindowHours(space, window, last - _DAY, last, 1)
    first = last - last % _DAY - (_DAYS[window] - 1) * _DAY
    return WindowHours(space, window, first, last, _DAY)


def window_before(space: Space, window: m.UsageWindow) -> m.UsageWindow:
    """Return the same span of time before a window."""
    before = span_of(space, window).before
    ends = _hour_start(before.first), _hour_start(before.last)
    is_days = ends[0].hour == 0 and ends[1].hour == _DAY - 1
    return "..".join(each.strftime("%Y-%m-%d" if is_days else "%Y-%m-%dT%H") for each in ends)


def _hour_start(hour: int) -> datetime:
    return EPOCH + timedelta(hours=hour)


def rank_counts(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names with their counts, the greatest count first."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def call_counts(
    calls: Counter[str], worked: str = what.SUCCESS, failed: str = what.FAILURE
) -> m.CallCounts:
    """Return successes and failures, by the names of their counters."""
    return m.CallCounts(successes=calls[worked], failures=calls[failed])


def call_fields(calls: Counter[str]) -> dict[str, Any]:
    """Return the fields that each model of counted calls has."""
    return {
        **dict(call_counts(calls)),
        "retries": call_counts(calls, what.RETRY_SUCCESS, what.RETRY_FAILURE),
        "suggested": call_counts(calls, what.FOLLOWED_SUCCESS, what.FOLLOWED_FAILURE),
    }
