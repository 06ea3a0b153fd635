"""Tools as rows: those that were called, and those that are registered and never were. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypedDict

from aftercall.models import Recommendation, ToolName, ToolStatistics
from mongo.records import StoredTool
from service.dashboard.shown.agents import calls, success_rate
from service.dashboard.shown.call_text import one_line

MAX_NAME = 256
"""Characters of a name, as many as it can have, before what cannot be seen is told."""


class ToolPlace(NamedTuple):
    """A tool as calls name it."""

    server_name: str | None
    tool_name: str


class ToolRow(TypedDict):
    """One line of the table. Shares and scores lie in 0..1, durations are milliseconds."""

    key: str
    tool_id: str | None
    server_name: str | None
    tool_name: str
    tool: str
    server: str
    registered: str
    calls: int
    failures: int
    success: float | None
    p50: float | None
    p95: float | None
    quality: float | None
    cohesion: float | None
    warning: str
    recommendations: int


def tool_rows(
    called: Iterable[ToolStatistics],
    registered: Iterable[StoredTool],
    open_ones: Mapping[ToolPlace, int],
) -> list[ToolRow]:
    """The called tools in their order, then those that are registered only, by id.

    Args:
        called: with their calls in the window; some may have none.
        registered: all of the workspace. Of several ids with one name of calls, the latest put.
        open_ones: open recommendations by tool.
    """
    rows = [_called(each, open_ones) for each in called]
    known = {each["key"] for each in rows}
    latest = {
        _key(_place(each)): each
        for each in sorted(registered, key=lambda one: (one.tool.updated_at, one.tool.tool_id))
    }
    never = sorted((each for key, each in latest.items() if key not in known), key=_id)
    return [*rows, *(_never_called(each, open_ones) for each in never)]


def open_by_tool(recommendations: Iterable[Recommendation]) -> dict[ToolPlace, int]:
    """How many recommendations there are about each tool."""
    counts: dict[ToolPlace, int] = {}
    for each in recommendations:
        if each.tool is not None:
            place = place_of(each.tool)
            counts[place] = counts.get(place, 0) + 1
    return counts


def place_of(tool: ToolName) -> ToolPlace:
    """The tool as calls name it."""
    return ToolPlace(tool.server_name, tool.tool_name)


def totals_in_words(rows: Sequence[ToolRow]) -> str:
    """How many tools there are, in a sentence."""
    never = sum(not each["calls"] for each in rows)
    tools = f"{len(rows):,} tool{'' if len(rows) == 1 else 's'}"
    return f"{tools}, of which {never:,} without a call in this window." if never else f"{tools}."


def _called(each: ToolStatistics, open_ones: Mapping[ToolPlace, int]) -> ToolRow:
    place, durations = place_of(each.tool), each.duration_ms
    return ToolRow(
        key=_key(place),
        tool_id=each.tool.tool_id,
        server_name=place.server_name,
        tool_name=place.tool_name,
        tool=one_line(place.tool_name, MAX_NAME),
        server=one_line(place.server_name or "", MAX_NAME),
        registered="yes" if each.tool.tool_id is not None else "no",
        calls=calls(each),
        failures=each.failures,
        success=success_rate(each),
        p50=durations.p50 if durations else None,
        p95=durations.p95 if durations else None,
        quality=each.quality,
        cohesion=each.cohesion,
        warning="several jobs" if each.cohesion_warning else "",
        recommendations=open_ones.get(place, 0),
    )


def _never_called(stored: StoredTool, open_ones: Mapping[ToolPlace, int]) -> ToolRow:
    place = _place(stored)
    tool = ToolStatistics(
        tool=ToolName(
            tool_id=stored.tool.tool_id,
            server_name=place.server_name,
            tool_name=place.tool_name,
        )
    )
    return _called(tool, open_ones)


def _place(stored: StoredTool) -> ToolPlace:
    return ToolPlace(stored.tool.server_name, stored.tool.name)


def _id(stored: StoredTool) -> str:
    return stored.tool.tool_id


def _key(place: ToolPlace) -> str:
    """Tells tools apart whatever their names hold: the server's length stands before it."""
    server = place.server_name
    return f"{-1 if server is None else len(server)}:{server or ''}:{place.tool_name}"
