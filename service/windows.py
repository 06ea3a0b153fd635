"""Windows: hours of a workspace up to now, and sums of its counters over them.

They are right up to what has been learned; `is_complete` states whether that is all. A window ends
now: `24h` begins with an hour, 24 hours before the present one; `7d` and `30d` begin with a day, so
that whole days add up to them. One of dates has whole hours or days, and ends now at the latest.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from aftercall import models as m
from aftercall.tables import sum_values
from mongo.contents import hour_of
from mongo.protocol import CounterDimension
from mongo.records import EPOCH, CounterSum, Cursor, ToolKey
from retrieval.knowledge.rows import counters as what
from service.context import Context

_DAY = 24
_DAYS: Mapping[m.UsageWindow, int] = {"24h": 1, "7d": 7, "30d": 30}
_MAX_HOURS = 48
"""Hours of the longest window of dates that is shown hour by hour."""


@dataclass(frozen=True)
class WindowHours:
    """Hours of a workspace since 1970, `first` and `last` among them; a step is one hour or 24."""

    context: Context
    workspace: str
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
        """As many hours before these; of 24h one less, which has begun."""
        hours = _DAYS[self.window] * _DAY if self.window in _DAYS else self.last + 1 - self.first
        return replace(self, first=self.first - hours, last=self.first - 1)

    async def known_before(self) -> "WindowHours | None":
        """Return the same; None where it reaches to before the first call."""
        before = self.before
        is_long = self.window not in ("24h", "7d")
        return None if is_long and not (await before.by_name(what.COUNTED)).total() else before

    async def about(self) -> dict[str, Any]:
        """Return what every answer states of its window."""
        context = self.context
        now = context.clock().astimezone(UTC)
        # Before the log is read, which else may lack an answer.
        is_settled = context.suggester.is_settled()
        head = (await context.store.events.read_heads()).get(self.workspace)
        cursor = (await context.store.knowledge.read_cursors()).get(self.workspace)
        learned, there = cursor.position if cursor else 0, head.position if head else 0
        return {
            "window": self.window,
            "since": _moment(self.first),
            "until": min(now, _moment(self.last + 1)),
            "is_complete": learned >= there and is_settled,
        }

    async def sums(
        self,
        names: Sequence[str],
        by: tuple[CounterDimension, ...],
        tools: tuple[ToolKey, ...] | None = None,
    ) -> list[CounterSum]:
        """Sums of counters. The present hour is read again, hours that are over where they must be.

        Counters only grow within a generation, so hours that are over hold what they held as long
        as no more is counted in them.
        """
        knowledge, over_lately = self.context.store.knowledge, self.context.sums_of_past_hours
        generation = knowledge.generation
        seen = (generation, (await knowledge.read_cursors()).get(self.workspace))
        over = replace(self, last=min(self.last, hour_of(self.context.clock()) - 1))
        rest = replace(self, first=over.last + 1)
        counted = sum(each.number for each in await over.read(seen, (what.COUNTED,)))
        key = (generation, self.workspace, over.first, over.last, *names, by, tools, counted)
        if (closed := over_lately.get(key)) is None:
            closed = await over.read(seen, names, by, tools)
            if knowledge.generation != generation:  # these are of the one after it
                return await self.sums(names, by, tools)
            over_lately[key] = closed
        if rest.first > rest.last:
            return closed
        opened = await rest.read(seen, names, by, tools)
        if "hour" in by:
            return closed + opened
        sums = sum_values((each[1:], each.number) for each in (*closed, *opened))
        return [CounterSum(number, *group) for group, number in sums.items()]

    async def read(
        self,
        seen: tuple[int, Cursor | None],
        names: Sequence[str],
        by: tuple[CounterDimension, ...] = (),
        tools: tuple[ToolKey, ...] | None = None,
    ) -> list[CounterSum]:
        """What the store sums up, read once while the generation and its cursor are as `seen`."""
        kept = self.context.sums
        key = (*seen, self.workspace, self.first, self.last, *names, by, tools)
        if (found := kept.get(key)) is None:
            found = kept[key] = await self.context.store.counters.sum_counters(
                self.workspace, names, since=self.first, until=self.last, by=by, tools=tools
            )
        return found

    async def by_name(self, *names: str, prefix: str = "") -> Counter[str]:
        """Sums of counters by what follows a prefix; of all of the prefix where none is named."""
        found = await self.sums(names or (f"{prefix}*",), ("what",))
        return Counter({(e.what or "").removeprefix(prefix): e.number for e in found})

    async def points(
        self, names: Sequence[str], tool: ToolKey | None = None
    ) -> list[tuple[datetime, Counter[str]]]:
        """Sums of counters by name, with the moment at which each step begins."""
        steps = range(self.first, self.last + 1, self.step)
        points = [Counter[str]() for _ in steps]
        tools = None if tool is None else (tool,)
        for each in await self.sums(names, ("hour", "what"), tools) if names else ():
            points[((each.hour or 0) - self.first) // self.step][each.what or ""] += each.number
        return list(zip(map(_moment, steps), points, strict=True))

    async def top_tools(self, names: Sequence[str], limit: int) -> list[ToolKey]:
        """Return the tools that counted most, read once while nothing is learned."""
        knowledge, kept = self.context.store.knowledge, self.context.top_tools
        seen = (knowledge.generation, (await knowledge.read_cursors()).get(self.workspace))
        key = (*seen, self.workspace, self.first, self.last, *names, limit)
        if (found := kept.get(key)) is None:
            found = kept[key] = await self.context.store.counters.top_tools(
                self.workspace, names, since=self.first, until=self.last, limit=limit
            )
        return found

    async def by_key(
        self, *names: str, tools: Sequence[ToolKey] | None = None
    ) -> dict[ToolKey, Counter[str]]:
        """Return sums of counters by tool and name, of all tools or of these."""
        sums: dict[ToolKey, Counter[str]] = {}
        of = None if tools is None else tuple(tools)
        for each in await self.sums(names, ("tool", "what"), of):
            if each.tool is not None:
                sums.setdefault(each.tool, Counter())[each.what or ""] += each.number
        return sums


def span_of(context: Context, workspace: str, window: m.UsageWindow) -> WindowHours:
    """Return the hours of a window of a workspace."""
    last = hour_of(context.clock())
    if dates := m.window_dates(window):
        first, end = map(hour_of, dates)
        last = min(last, end - 1)
        step = 1 if end - first <= _MAX_HOURS else _DAY
        return WindowHours(context, workspace, window, min(first, last), last, step)
    if window == "24h":
        return WindowHours(context, workspace, window, last - _DAY, last, 1)
    first = last - last % _DAY - (_DAYS[window] - 1) * _DAY
    return WindowHours(context, workspace, window, first, last, _DAY)


def window_before(context: Context, window: m.UsageWindow) -> m.UsageWindow:
    """Return the same span of time before a window."""
    before = span_of(context, "", window).before
    ends = _moment(before.first), _moment(before.last)
    is_days = ends[0].hour == 0 and ends[1].hour == _DAY - 1
    return "..".join(each.strftime("%Y-%m-%d" if is_days else "%Y-%m-%dT%H") for each in ends)


def _moment(hour: int) -> datetime:
    return EPOCH + timedelta(hours=hour)
