"""*Tools*: all called or registered tools, and how their calls go."""

from collections.abc import Sequence
from typing import Final

from aftercall.models import CallCounts, Recommendation, ToolName, ToolStatistics
from mongo.contents import StoredTool
from service.api.recommendations import RecommendationQuery, list_recommendations
from service.api.statistics import add_pairs, list_tool_statistics, read_called_tools
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.requests import WindowList

MAX_TOOLS: Final = 500
"""Called tools in the table, the most called; as many as `GET /stats/tools` gives."""
MAX_REGISTERED: Final = 2_000
"""Names that tools without a call are looked for among, where more tools are registered."""
ToolId = tuple[str | None, str]
"""Server and name: a tool as calls name it."""


async def show_tools(look: Look) -> Shown:
    """Return the page."""
    found = await list_tool_statistics(look.space, WindowList(window=look.window, limit=MAX_TOOLS))
    earlier = await read_called_tools(look.space, look.before, MAX_TOOLS)
    registered = await look.context.store.events.count_state(look.workspace, "tool")
    is_cut = registered > MAX_REGISTERED
    memory = look.context.memory
    others = await (
        memory.list_uncalled_tools(look.workspace, MAX_REGISTERED)
        if is_cut
        else memory.list_tools(look.workspace)
    )
    open_ones = await open_recommendations(look)
    before = {tool_place(each.tool): each for each in earlier}

    def rate_before(each: ToolStatistics) -> float | None:
        return w.success_rate(before.get(tool_place(each.tool), CallCounts()))

    def count_open(each: ToolStatistics) -> int:
        return len(open_ones.get(tool_place(each.tool), ()))

    columns = [
        *look.tool_columns(),
        h.Column("calls", "Calls", "number", of=w.count_calls),
        h.Column("success", "Success", "percent", of=w.success_rate),
        h.Column("before", "Before", "percent", "Success in the same span before.",
                 rate_before),
        h.Column("p50", "p50", "duration", "Half of the calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p50),
        h.Column("p95", "p95", "duration", "19 of 20 calls took no longer.",
               lambda each: each.duration_ms and each.duration_ms.p95),
        h.Column("quality", "Quality", "number", "As in its fitness: 1 is best."),
        h.Column("cohesion", "Cohesion", "number", "1: all boundary failures on one axis."),
        h.Column("warning", "Warning", "text", "Its failures point to several jobs.",
               lambda each: "several jobs" if each.cohesion_warning else ""),
        h.Column("recommendations", "Recommendations", "number", "Open ones.",
                 count_open),
        h.Column("registered", "Registered", of=lambda each: "yes" if each.tool.tool_id else "no"),
    ]  # fmt: skip
    if not earlier:
        columns = [each for each in columns if each.key != "before"]
    counted = [*found.tools, found.other_tools]
    called = [each for each in found.tools if w.count_calls(each)]
    return look.show_page(
        "Tools",
        "tools",
        of=found,
        found=found,
        tools=with_never_called(found.tools, others),
        registered=registered if is_cut else None,
        columns=columns,
        open_ones=sum(map(len, open_ones.values())),
        called=len(called),
        made=sum(map(w.count_calls, counted)),
        worked=sum(each.successes for each in counted),
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
    tools = [each.tool for each in registered]
    tools.sort(key=lambda tool: (tool.updated_at, tool.tool_id))
    latest = {(tool.server_name, tool.name): tool for tool in tools}
    for each in called:
        latest.pop(tool_place(each.tool), None)
    rows = list(called)
    for tool in sorted(latest.values(), key=lambda tool: tool.tool_id):
        name = ToolName(tool_id=tool.tool_id, server_name=tool.server_name, tool_name=tool.name)
        rows.append(ToolStatistics(tool=name))
    return rows


async def open_recommendations(look: Look) -> dict[ToolId, list[Recommendation]]:
    """Return the open recommendations by tool, the greatest priority first."""

    async def read() -> dict[ToolId, list[Recommendation]]:
        asked = RecommendationQuery(state="open", limit=1_000)
        found = await list_recommendations(look.space, asked)
        of_tools: dict[ToolId, list[Recommendation]] = {}
        for each in found.recommendations:
            if each.tool is not None:
                same = of_tools.setdefault(tool_place(each.tool), [])
                same.append(each)
        return of_tools

    return await look.read_rarely("open recommendations", read)
