"""*Tools*: all called or registered tools, and how their calls go."""

from collections.abc import Sequence
from typing import Final

from aftercall.models import CallCounts, Recommendation, ToolName, ToolStatistics
from aftercall.tables import gathered
from mongo.contents import StoredTool
from service.api.recommendations import RecommendationQuery, list_recommendations
from service.api.statistics import add_pairs, list_tool_statistics, read_called_tools
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.requests import WindowList

MAX_TOOLS: Final = 500
"""Called tools in the table, the most called; as many as `GET /stats/tools` gives."""
ToolId = tuple[str | None, str]
"""Server and name: a tool as calls name it."""


async def show_tools(look: Look) -> Shown:
    """Return the page."""
    found = await list_tool_statistics(look.space, WindowList(window=look.window, limit=MAX_TOOLS))
    earlier = await read_called_tools(look.space, look.before, MAX_TOOLS)
    registered = await look.context.memory.tools(look.workspace)
    open_ones = await open_recommendations(look)
    before = {tool_place(each.tool): each for each in earlier}
    columns = [
        *look.tool_columns(),
        h.Column("calls", "Calls", "number", of=w.count_calls),
        h.Column("success", "Success", "percent", of=w.success_rate),
        h.Column("before", "Before", "percent", "Success in the same span before.",
               lambda each: w.success_rate(before.get(tool_place(each.tool), CallCounts()))),
        h.Column("p50", "p50", "duration", "Half of the calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p50),
        h.Column("p95", "p95", "duration", "19 of 20 calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p95),
        h.Column("quality", "Quality", "number", "As in its fitness: 1 is best."),
        h.Column("cohesion", "Cohesion", "number", "1: all boundary failures on one axis."),
        h.Column("warning", "Warning", "text", "Its failures point to several jobs.",
               lambda each: "several jobs" if each.cohesion_warning else ""),
        h.Column("recommendations", "Recommendations", "number", "Open ones.",
               lambda each: len(open_ones.get(tool_place(each.tool), ()))),
        h.Column("registered", "Registered", of=lambda each: "yes" if each.tool.tool_id else "no"),
    ]  # fmt: skip
    return look.shows(
        "Tools",
        "tools",
        of=found,
        found=found,
        tools=with_never_called(found.tools, registered),
        columns=[each for each in columns if earlier or each.key != "before"],
        open_ones=sum(map(len, open_ones.values())),
        called=sum(bool(w.count_calls(each)) for each in found.tools),
        made=sum(map(w.count_calls, found.tools)) + w.count_calls(found.other_tools),
        worked=sum(each.successes for each in (*found.tools, found.other_tools)),
        earlier=add_pairs((each.successes, each.failures) for each in earlier),
        warned=sum(each.cohesion_warning for each in found.tools),
    )


def tool_place(tool: ToolName) -> ToolId:
    """Return server and name of a tool, as calls name it."""
    return tool.server_name, tool.tool_name


def with_never_called(
    called: Sequence[ToolStatistics], registered: Sequence[StoredTool]
) -> list[ToolStatistics]:
    """Return the called tools in their order, then those that are registered only, by id."""
    latest = {
        (each.tool.server_name, each.tool.name): each.tool
        for each in sorted(registered, key=lambda one: (one.tool.updated_at, one.tool.tool_id))
    }
    only = latest.keys() - {tool_place(each.tool) for each in called}
    never = (
        ToolName(tool_id=each.tool_id, server_name=each.server_name, tool_name=each.name)
        for each in sorted((latest[place] for place in only), key=lambda one: one.tool_id)
    )
    return [*called, *(ToolStatistics(tool=each) for each in never)]


async def open_recommendations(look: Look) -> dict[ToolId, list[Recommendation]]:
    """Return the open recommendations by tool, the greatest priority first."""

    async def read() -> dict[ToolId, list[Recommendation]]:
        asked = RecommendationQuery(state="open", limit=1_000)
        found = (await list_recommendations(look.space, asked)).recommendations
        return gathered((tool_place(each.tool), each) for each in found if each.tool is not None)

    return await look.rarely("open recommendations", read)
