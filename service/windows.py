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
from aftercall.tables import sum_values
from mongo.contents import hour_of
from mongo.protocol import CounterDimension
from mongo.records import EPOCH, CounterSum, Cursor, ToolKey
from retrieval.knowledge.memory import tool_row
from retrieval.knowledge.rows import counters as what
from service.context import Space

_DAY = 24
_DAYS: Mapping[m.UsageWindow, int] = {"24h": 1, "7d": 7, "30d": 30}
_MAX_HOURS = 48
"""Hours of the longest window of dates that is shown hour by hour."""


_MAX_SUMS = 40_000
"""Sums that are kept of each kind, some 8 MiB: five windows of 500 tools have half as many."""
_OVERHEAD = 20
"""What an answer takes without its sums, in sums."""


class _SumsCache(TTLCache[Hashable, list[CounterSum]]):
    """Answers of the store, bounded by how many sums there are in them."""

    def __init__(self, ttl: float) -> None:
        super().__init__(maxsize=_MAX_SUMS, ttl=ttl, getsizeof=lambda sums: len(sums) + _OVERHEAD)

    def keep(self, key: Hashable, sums: list[CounterSum]) -> None:
        """Keep an answer, if it is not too large."""
        if self.getsizeof(sums) <= self.maxsize:
            self[key] = sums


class _Sums(_SumsCache):
    """The sums that the store returned: pages of many viewers ask for the same each second.

    Later calls are never left out, for each key names what was learned.
    """

    def __init__(self) -> None:
        super().__init__(ttl=5)


class _PastSums(_SumsCache):
    """Sums of hours that are over; they hold as long as no more is counted in those hours."""

    def __init__(self) -> None:
        super().__init__(ttl=3600)


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
        """Return the same number of hours before these; for 24h one less, which has begun."""
        hours = self.last + 1 - self.first
        if self.window in _DAYS:
            hours = _DAYS[self.window] * _DAY
        return replace(self, first=self.first - hours, last=self.first - 1)

    async def known_before(self) -> "WindowHours | None":
        """Return the hours before these; None if they begin before the first call."""
        before = self.before
        if self.window in ("24h", "7d"):
            return before
        counted = await before.by_name(what.COUNTED)
        return before if counted.total() else None

    async def describe_window(self) -> dict[str, Any]:
        """Return what every answer states of its window."""
        context, workspace = self.space
        now = context.clock().astimezone(UTC)
        # Read before the log, which may lack an answer otherwise.
        is_settled = context.suggester.is_settled()
        heads = await context.store.events.read_heads()
        cursors = await context.store.knowledge.read_cursors()
        there = heads[workspace].position if workspace in heads else 0
        learned = cursors[workspace].position if workspace in cursors else 0
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
        knowledge = context.store.knowledge
        past_sums = context.caches.get_cache(_PastSums)
        seen = await self._read_state()
        generation = seen[0]
        past_hour = hour_of(context.clock()) - 1
        past = replace(self, last=min(self.last, past_hour))
        rest = replace(self, first=past.last + 1)
        counters = await past.read(seen, (what.COUNTED,))
        counted = sum(each.number for each in counters)
        key = (generation, workspace, past.first, past.last, *names, by, tools, counted)
        closed = past_sums.get(key)
        if closed is None:
            closed = await past.read(seen, names, by, tools)
            if knowledge.generation != generation:  # these are of the one after it
                return await self.read_sums(names, by, tools)
            past_sums.keep(key, closed)
        if rest.first > rest.last:
            return closed
        opened = await rest.read(seen, names, by, tools)
        if "hour" in by:
            return closed + opened
        both = [*closed, *opened]
        sums = sum_values((each[1:], each.number) for each in both)
        return [CounterSum(number, *group) for group, number in sums.items()]

    async def _read_state(self) -> tuple[int, Cursor | None]:
        context, workspace = self.space
        knowledge = context.store.knowledge
        generation = knowledge.generation
        cursors = await knowledge.read_cursors()
        return generation, cursors.get(workspace)

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
        found = kept.get(key)
        if found is None:
            found = await context.store.counters.sum_counters(
                workspace, names, since=self.first, until=self.last, by=by, tools=tools
            )
            kept.keep(key, found)
        return found

    async def by_name(self, *names: str, prefix: str = "") -> Counter[str]:
        """Return sums of counters by name without a prefix; by default of the whole prefix."""
        wanted = names or (f"{prefix}*",)
        counts: Counter[str] = Counter()
        for each in await self.read_sums(wanted, ("what",)):
            name = each.what or ""
            counts[name.removeprefix(prefix)] = each.number
        return counts

    async def read_points(
        self, names: Sequence[str], tool: ToolKey | None = None
    ) -> list[tuple[datetime, Counter[str]]]:
        """Return sums of counters by name, with the moment at which each step begins."""
        steps = range(self.first, self.last + 1, self.step)
        points = [(_hour_start(hour), Counter[str]()) for hour in steps]
        if not names:
            return points
        tools = None if tool is None else (tool,)
        for each in await self.read_sums(names, ("hour", "what"), tools):
            hour = each.hour or 0
            place = (hour - self.first) // self.step
            _, counts = points[place]
            counts[each.what or ""] += each.number
        return points

    async def top_tools(self, names: Sequence[str], limit: int) -> list[ToolKey]:
        """Return the tools that counted most, read once while nothing is learned."""
        context, workspace = self.space
        kept = context.caches.get_cache(_TopTools)
        seen = await self._read_state()
        key = (*seen, workspace, self.first, self.last, *names, limit)
        found = kept.get(key)
        if found is None:
            found = await context.store.counters.top_tools(
                workspace, names, since=self.first, until=self.last, limit=limit
            )
            kept[key] = found
        return found

    async def by_key(
        self, *names: str, tools: Sequence[ToolKey] | None = None
    ) -> dict[ToolKey, Counter[str]]:
        """Return sums of counters by tool and name, of all tools or of these."""
        sums: dict[ToolKey, Counter[str]] = {}
        # In one order, in which what is kept is found again.
        wanted = None if tools is None else tuple(sorted(tools, key=tool_row))
        for each in await self.read_sums(names, ("tool", "what"), wanted):
            if each.tool is not None:
                counts = sums.setdefault(each.tool, Counter())
                counts[each.what or ""] += each.number
        return sums


async def read_window(space: Space, window: m.UsageWindow) -> tuple[WindowHours, dict[str, Any]]:
    """Return the hours of a window, and what every answer states of it."""
    hours = span_of(space, window)
    return hours, await hours.describe_window()


def span_of(space: Space, window: m.UsageWindow) -> WindowHours:
    """Return the hours of a window of a workspace."""
    last = hour_of(space.context.clock())
    dates = m.window_dates(window)
    if dates:
        first, end = map(hour_of, dates)
        last = min(last, end - 1)
        is_short = end - first <= _MAX_HOURS
        step = 1 if is_short else _DAY
        return WindowHours(space, window, min(first, last), last, step)
    if window == "24h":
        return WindowHours(space, window, last - _DAY, last, 1)
    today = last - last % _DAY
    days_before = _DAYS[window] - 1
    first = today - days_before * _DAY
    return WindowHours(space, window, first, last, _DAY)


def window_before(space: Space, window: m.UsageWindow) -> m.UsageWindow:
    """Return the same span of time before a window."""
    before = span_of(space, window).before
    first = _hour_start(before.first)
    last = _hour_start(before.last)
    is_days = first.hour == 0 and last.hour == _DAY - 1
    form = "%Y-%m-%d" if is_days else "%Y-%m-%dT%H"
    return f"{first.strftime(form)}..{last.strftime(form)}"


def _hour_start(hour: int) -> datetime:
    return EPOCH + timedelta(hours=hour)


def rank_counts(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names with their counts, the greatest count first."""
    by_name = sorted(counts.items())
    return sorted(by_name, key=lambda each: each[1], reverse=True)


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
