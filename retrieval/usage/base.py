"""What the nightly run leaves for statistics: the usage of a workspace, in one fact. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field, ValidationError

from mongo.records import ToolKey
from retrieval.usage.counts import (
    CATEGORIES,
    OTHER_TOOL,
    SHAPES,
    Counts,
    Names,
    TableName,
    no_counts,
)
from retrieval.usage.day import OTHER
from retrieval.usage.durations import BUCKETS, FIRST_BUCKET
from retrieval.usage.spans import KEPT_DAYS, hour_number, midnight
from retrieval.usage.table import StoredTable, read_table

PRECISE: Final = timedelta(days=2)
"""As far back hours are told apart: the last 24 hours and those before them."""

AHEAD: Final = timedelta(days=2)
"""So far in the future calls count that a caller's clock dates there; they are of no window yet."""


class Base(NamedTuple):
    """Usage up to a position."""

    through: int
    """All executions up to this position are counted, and none behind it."""
    computed_at: datetime | None
    """None before anything was counted."""
    counts: Counts


class Kept(NamedTuple):
    """Which hours a base holds, as numbers (`retrieval.usage.spans`)."""

    first: int
    by_hour_from: int
    """The first hour of the first day that is told by hour."""
    last: int


def kept_at(now: datetime) -> Kept:
    """What a base holds that is made now: for every window that ends now or later."""
    today = midnight(hour_number(now))
    return Kept(
        first=today - (KEPT_DAYS - 1) * 24,
        by_hour_from=midnight(hour_number(now - PRECISE)),
        last=midnight(hour_number(now + AHEAD)) + 23,
    )


def no_base(through: int = 0) -> Base:
    """Nothing, as if that was all up to a position."""
    return Base(through, None, no_counts())


def usage_fact(workspace: str) -> str:
    """The name of the store's fact that holds a workspace's base."""
    return f"usage:{workspace}"


def version_fact(workspace: str) -> str:
    """The name of the fact that changes with the base: small, so that it can be read all the time.

    It is written behind the base; one that a kill kept from being written is of an earlier base,
    with which all is right as well.
    """
    return f"usage-version:{workspace}"


_Name: TypeAlias = Annotated[str, Field(min_length=1)]


class _Stored(BaseModel):
    layout: Literal[2] = 2
    """1 were windows, made by the nightly run."""
    through: int = Field(ge=0, lt=2**63)
    computed_at: datetime
    tools: list[tuple[_Name | None, _Name]]
    agents: list[_Name]
    marks: list[_Name]
    tables: dict[TableName, StoredTable]


def encoded(base: Base) -> str:
    """As it is stored: the same text for the same counts. The counts must be compact."""
    counts = base.counts
    stored = _Stored(
        through=base.through,
        computed_at=base.computed_at or datetime.fromtimestamp(0, UTC),
        tools=[(tool.server_name, tool.tool_name) for tool in counts.tools.known()],
        agents=counts.agents.known(),
        marks=counts.marks.known(),
        tables={name: counts.tables[name].stored() for name in SHAPES},
    )
    return stored.model_dump_json()


def decoded(text: str, workspace: str) -> Base | None:
    """The reverse of `encoded`; None of what another version of this program left."""
    try:
        stored = _Stored.model_validate_json(text)
        tables = {name: read_table(stored.tables[name], *SHAPES[name]) for name in SHAPES}
    except (ValidationError, KeyError, ValueError):
        return None
    counts = Counts(
        Names(OTHER_TOOL, (ToolKey(workspace, server, name) for server, name in stored.tools)),
        Names(OTHER, stored.agents),
        Names(OTHER, stored.marks),
        tables,
    )
    return Base(stored.through, stored.computed_at, counts) if _fits(counts) else None


def _fits(counts: Counts) -> bool:
    """Whether no key is of something that is not there."""
    tools, agents, marks = (
        (0, len(names)) for names in (counts.tools, counts.agents, counts.marks)
    )
    buckets, categories = (FIRST_BUCKET, FIRST_BUCKET + BUCKETS), (0, len(CATEGORIES))
    ranges: dict[TableName, tuple[tuple[int, int], ...]] = {
        "durations": (buckets,), "categories": (categories,), "tools": (tools,),
        "tool_durations": (tools, buckets), "agents": (agents,), "agent_tools": (agents, tools),
        "marks": (marks,),
    }  # fmt: skip
    return all(
        not len(key) or (first <= int(key.min()) and int(key.max()) < end)
        for name, of_keys in ranges.items()
        for key, (first, end) in zip(counts.tables[name].keys[1:], of_keys, strict=True)
    )


def version_of(base: Base) -> str:
    """What `version_fact` says of a base."""
    return f"{base.through} {base.computed_at}"
