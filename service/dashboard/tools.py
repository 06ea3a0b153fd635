"""*Tools*: all that were called or are registered, and how they do."""

from collections.abc import Sequence
from typing import Final

from aftercall.models import CallCounts, Recommendation, ToolName, ToolStatistics
from aftercall.tables import gather_values
from mongo.contents import StoredTool
from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.recommendations import RecommendationQuery, recommendations

MAX_TOOLS: Final = 500
"""Called tools in the table, the most called; as many as `GET /stats/tools` gives."""
ToolId = tuple[str | None, str]
"""Server and name: a tool as calls name it."""


async def tools(look: Look) -> Shown:
    """Return the page."""
    found = await statistics.tools(*look.space, look.window, MAX_TOOLS)
    earlier = await statistics.called(*look.space, look.before, MAX_TOOLS)
    registered = await look.context.memory.list_tools(look.workspace)
    open_ones = await open_recommendations(look)
    before = {place_of(each.tool): each for each in earlier}
    columns = [
        *look.tool_columns(),
        h.Column("calls", "Calls", "number", of=w.calls),
        h.Column("success", "Success", "percent", of=w.success_rate),
        h.Column("before", "Before", "percent", "Success in the same span before.",
               lambda each: w.success_rate(before.get(place_of(each.tool), CallCounts()))),
        h.Column("p50", "p50", "duration", "Half of the calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p50),
        h.Column("p95", "p95", "duration", "19 of 20 calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p95),
        h.Column("quality", "Quality", "number", "As in its fitness: 1 is best."),
        h.Column("cohesion", "Cohesion", "number", "1: all boundary failures on one axis."),
        h.Column("warning", "Warning", "text", "Its failures point to several jobs.",
               lambda each: "several jobs" if each.cohesion_warning else ""),
        h.Column("recommendations", "Recommendations", "number", "Open ones.",
               lambda each: len(open_ones.get(place_of(each.tool), ()))),
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
        called=sum(bool(w.calls(each)) for each in found.tools),
        made=sum(map(w.calls, found.tools)) + w.calls(found.other_tools),
        worked=sum(each.successes for each in (*found.tools, found.other_tools)),
        earlier=statistics.pairs((each.successes, each.failures) for each in earlier),
        warned=sum(each.cohesion_warning for each in found.tools),
    )


def place_of(tool: ToolName) -> ToolId:
    """Return the tool as calls name it."""
    return tool.server_name, tool.tool_name


def with_never_called(
    called: Sequence[ToolStatistics], registered: Sequence[StoredTool]
) -> list[ToolStatistics]:
    """Return the called tools in their order, then those that are registered only, by id."""
    latest = {
        (each.tool.server_name, each.tool.name): each.tool
        for each in sorted(registered, key=lambda one: (one.tool.updated_at, one.tool.tool_id))
    }
    only = latest.keys() - {place_of(each.tool) for each in called}
    never = (
        ToolName(tool_id=each.tool_id, server_name=each.server_name, tool_name=each.name)
        for each in sorted((latest[place] for place in only), key=lambda one: one.tool_id)
    )
    return [*called, *(ToolStatistics(tool=each) for each in never)]


async def open_recommendations(look: Look) -> dict[ToolId, list[Recommendation]]:
    """Return those that are open by tool, the greatest priority first; each reading weighs all."""

    async def read() -> dict[ToolId, list[Recommendation]]:
        asked = RecommendationQuery(state="open", limit=1_000)
        found = (await recommendations(*look.space, asked)).recommendations
        return gather_values((place_of(each.tool), each) for each in found if each.tool is not None)

    return await look.rarely("open recommendations", read)
