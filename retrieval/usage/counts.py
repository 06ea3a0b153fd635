"""Usage of all tools of a workspace in tables by hour. Pure; bounded, however many names.

What was long ago is told by day: its hours stand at the first hour of their day, so that days and
the latest hours add up in the same tables.
"""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from aftercall.models import ErrorCategory
from mongo.records import ToolKey
from retrieval.usage.day import OTHER, DayUsage, Hour
from retrieval.usage.spans import first_hour
from retrieval.usage.table import Ints, Table, empty, table_of

MAX_TOOLS: Final = 500
"""Told apart; of further ones the calls are counted together. So with agents and marks."""
MAX_AGENTS: Final = 200
MAX_MARKS: Final = 500
MAX_TOOLS_OF_AGENT: Final = 20
"""Those with most failures, then most calls."""

_ROOM: Final = 4
"""Times as many names are told apart while usage is added up, so that those that come late can
still become some of the heaviest."""

CATEGORIES: Final[tuple[ErrorCategory, ...]] = get_args(ErrorCategory)
_CATEGORY_IDS: Final = {name: number for number, name in enumerate(CATEGORIES)}

K = TypeVar("K", bound=Hashable)


class Names(Generic[K]):
    """Numbers of names, in the order in which they came; 0 is that of all others."""

    def __init__(self, other: K, known: Iterable[K] = ()) -> None:
        self._names = [other]
        self._ids = {other: 0}
        for each in known:
            self.add(each)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, number: int) -> K:
        return self._names[number]

    def add(self, name: K, most: int | None = None) -> int:
        """Its number; 0 for a new one where there are `most` already."""
        known = self._ids.get(name)
        if known is not None:
            return known
        if most is not None and len(self._names) > most:
            return 0
        number = len(self._names)
        self._names.append(name)  # first the name, then its number: others may read meanwhile
        self._ids[name] = number
        return number

    def find(self, name: K) -> int | None:
        """Its number, if it has one."""
        return self._ids.get(name)

    def known(self) -> list[K]:
        """All but the others."""
        return self._names[1:]

    def copy(self) -> "Names[K]":
        """One that grows by itself."""
        return Names(self._names[0], self._names[1:])


OTHER_TOOL: Final = ToolKey("", None, OTHER)
"""No tool is called so."""

TableName: TypeAlias = Literal[
    "totals", "durations", "categories", "tools", "tool_durations", "agents", "agent_tools", "marks"
]

SHAPES: Final[Mapping[TableName, tuple[int, int]]] = {
    "totals": (1, 6),
    "durations": (2, 1),
    "categories": (2, 1),
    "tools": (2, 6),
    "tool_durations": (3, 1),
    "agents": (2, 2),
    "agent_tools": (3, 2),
    "marks": (2, 1),
}
"""Keys and counts of each table.

Keys are the hour; then the tool or the agent, the category or the mark; then the bucket of a
duration, or an agent's tool. Six counts are the successes and failures of all calls, of retries and
of calls that followed a suggestion; two are successes and failures.
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted, in tables. The names may grow beyond what the tables hold."""

    tools: Names[ToolKey]
    agents: Names[str]
    marks: Names[str]
    tables: Mapping[TableName, Table]

    @property
    def nbytes(self) -> int:
        """What the tables take."""
        return sum(each.nbytes for each in self.tables.values())

    def without_tables(self) -> "Counts":
        """Nothing, with names of its own that begin as these do."""
        return Counts(self.tools.copy(), self.agents.copy(), self.marks.copy(), _no_tables())


def no_counts() -> Counts:
    """Nothing, with names of its own."""
    return Counts(Names(OTHER_TOOL), Names(OTHER), Names(OTHER), _no_tables())


def _no_tables() -> dict[TableName, Table]:
    return {name: empty(*shape) for name, shape in SHAPES.items()}


class Gathering:
    """Usage added up; beyond its room, the lightest names are told as others.

    Args:
        start: to go on from; its names are shared, and grow.
        keeps_names: later names are the others once there is no room; else the lightest give way,
            and numbers of names change.
    """

    def __init__(self, start: Counts | None = None, *, keeps_names: bool = False) -> None:
        start = start or no_counts()
        self._tools, self._agents, self._marks = start.tools, start.agents, start.marks
        self._tables = dict(start.tables)
        self._compacted = {name: len(table) for name, table in start.tables.items()}
        self._keeps_names = keeps_names
        self._rows: dict[TableName, array[int]] = {}
        self._clear()

    def add(self, tool: ToolKey, day: date, usage: DayUsage, *, by_hour: bool = True) -> None:
        """Add a tool's day; unless it is told by hour, all of it at the first one."""
        rows, begin = self._rows, first_hour(day)
        number = self._tools.add(tool, self._room(MAX_TOOLS))
        agent_room, mark_room = self._room(MAX_AGENTS), self._room(MAX_MARKS)
        hours = usage.hours if by_hour else {0: _together(usage.hours.values())}
        for of_day, hour in hours.items():
            at = begin + of_day
            pairs = (*hour.retries, *hour.suggested)
            rows["tools"].extend((at, number, hour.successes, hour.failures, *pairs))
            for bucket, calls in hour.durations.items():
                rows["tool_durations"].extend((at, number, bucket, calls))
            for category, failures in hour.categories.items():
                rows["categories"].extend((at, _CATEGORY_IDS[category], failures))
            for agent, pair in hour.agents.items():
                who = self._agents.add(agent, agent_room)
                rows["agent_tools"].extend((at, who, number, *pair))
        for mark, failed in usage.marks.items():
            which = self._marks.add(mark, mark_room)
            for of_day, failures in (failed if by_hour else {0: sum(failed.values())}).items():
                rows["marks"].extend((begin + of_day, which, failures))

    def settle(self) -> Counts:
        """All that was added so far; what was settled before stays as it was."""
        new = {name: table_of(rows, *SHAPES[name]) for name, rows in self._rows.items()}
        tools, durations, agents = new["tools"], new["tool_durations"], new["agent_tools"]
        new["totals"] = Table((tools.keys[0],), tools.counts)
        new["durations"] = Table((durations.keys[0], durations.keys[2]), durations.counts)
        new["agents"] = Table(agents.keys[:2], agents.counts)
        self._clear()
        for name, table in new.items():
            joined = self._tables[name].joined(table)
            if len(joined) > 2 * self._compacted[name] + _FEW:
                joined = joined.compact()
                self._compacted[name] = len(joined)
            self._tables[name] = joined
        if not self._keeps_names:
            self._make_room(_ROOM, _ROOM // 2)
        return self._counts()

    def finish(self) -> Counts:
        """All that was added, as it is kept: the heaviest names, compact."""
        self.settle()
        self._make_room(1, 1)
        self._tables["agent_tools"] = _heaviest_tools(self._tables["agent_tools"].compact())
        self._tables = {name: table.compact() for name, table in self._tables.items()}
        return self._counts()

    def _counts(self) -> Counts:
        return Counts(self._tools, self._agents, self._marks, dict(self._tables))

    def _clear(self) -> None:
        given: tuple[TableName, ...] = (
            "tools", "tool_durations", "categories", "agent_tools", "marks",
        )  # fmt: skip
        self._rows = {name: array("q") for name in given}

    def _room(self, most: int) -> int | None:
        return _ROOM * most if self._keeps_names else None

    def _make_room(self, at_most: int, left: int) -> None:
        """Where there are over `at_most` times as many names as are told, leave `left` times."""
        if len(self._tools) - 1 > at_most * MAX_TOOLS:
            self._tools, places = _heaviest(self._tools, self._tables["tools"], left * MAX_TOOLS)
            self._renumber({"tools": 1, "tool_durations": 1, "agent_tools": 2}, places)
        if len(self._agents) - 1 > at_most * MAX_AGENTS:
            self._agents, places = _heaviest(
                self._agents, self._tables["agents"], left * MAX_AGENTS
            )
            self._renumber({"agents": 1, "agent_tools": 1}, places)
        if len(self._marks) - 1 > at_most * MAX_MARKS:
            self._marks, places = _heaviest(self._marks, self._tables["marks"], left * MAX_MARKS)
            self._renumber({"marks": 1}, places)

    def _renumber(self, keys: Mapping[TableName, int], places: Ints) -> None:
        for name, key in keys.items():
            table = self._tables[name]
            self._tables[name] = table.replaced(key, places[table.keys[key]]).compact()
            self._compacted[name] = len(self._tables[name])


_FEW: Final = 4_096
"""Rows that are not worth compacting."""


def _together(hours: Iterable[Hour]) -> Hour:
    agents: dict[str, list[int]] = {}
    categories, durations = Counter[ErrorCategory](), Counter[int]()
    sums = [0] * 6
    for hour in hours:
        each = (hour.successes, hour.failures, *hour.retries, *hour.suggested)
        sums = [one + other for one, other in zip(sums, each, strict=True)]
        categories.update(hour.categories)
        durations.update(hour.durations)
        for agent, (worked, failed) in hour.agents.items():
            pair = agents.setdefault(agent, [0, 0])
            pair[0] += worked
            pair[1] += failed
    return Hour.model_construct(
        successes=sums[0],
        failures=sums[1],
        agents={agent: (worked, failed) for agent, (worked, failed) in agents.items()},
        categories=categories,
        durations=durations,
        retries=(sums[2], sums[3]),
        suggested=(sums[4], sums[5]),
    )


def _heaviest(names: Names[K], table: Table, most: int) -> tuple[Names[K], Ints]:
    """The names of most calls (or failures), and for each old number its new one."""
    weights = table.by(1, len(names))[:, :2].sum(axis=1)
    ranked = sorted(range(1, len(names)), key=lambda number: (-weights[number], str(names[number])))
    kept = sorted(ranked[:most])
    places = np.zeros(len(names), np.int64)
    places[kept] = np.arange(1, len(kept) + 1)
    return Names(names[0], (names[number] for number in kept)), places


def _heaviest_tools(table: Table) -> Table:
    """Of a compact table of agents and tools, the rows of each agent's heaviest tools."""
    if not len(table):
        return table
    agents, tools = table.keys[1].astype(np.int64), table.keys[2].astype(np.int64)
    width = int(tools.max()) + 1
    pairs, place = np.unique(agents * width + tools, return_inverse=True)
    calls, failures = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    np.add.at(calls, place, table.counts[0].astype(np.int64) + table.counts[1])
    np.add.at(failures, place, table.counts[1].astype(np.int64))
    is_kept = np.zeros(len(pairs), np.bool_)
    seen = Counter[int]()
    for at in np.lexsort((pairs, -calls, -failures)):
        agent, tool = divmod(int(pairs[at]), width)
        if tool and seen[agent] < MAX_TOOLS_OF_AGENT:
            seen[agent] += 1
            is_kept[at] = True
    return table.rows(is_kept[place])
