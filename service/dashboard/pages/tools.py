"""*Tools*: all that were called or are registered, and how they fare."""

from collections.abc import Mapping
from typing import Final

from aftercall.models import ToolName, ToolStatisticsList
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.shown.agents import calls
from service.dashboard.shown.numbers import count, percent
from service.dashboard.shown.tool_rows import (
    ToolPlace,
    ToolRow,
    open_by_tool,
    tool_rows,
    totals_in_words,
)
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import (
    Stat,
    box,
    empty,
    section,
    set_text,
    set_visible,
    still_counting,
    text,
)
from service.recommendations import RecommendationQuery, recommendations

MAX_TOOLS: Final = 500
"""Called tools in the table, the most called; as many as `GET /stats/tools` tells."""

_MAX_RECOMMENDATIONS: Final = 1_000


async def build(look: Look) -> None:
    """Fill the page."""
    services, workspace = look.services, look.workspace

    async def read() -> ToolStatisticsList:
        return await look.shared(
            f"tools {MAX_TOOLS}",
            lambda: services.statistics.tools(workspace, look.window, MAX_TOOLS),
        )

    async def read_open() -> dict[ToolPlace, int]:
        asked = RecommendationQuery(state="open", limit=_MAX_RECOMMENDATIONS)
        found = await recommendations(services, workspace, asked)
        return open_by_tool(found.recommendations)

    # Each reading weighs all the evidence anew, which is too much for every update.
    open_ones = await look.shared(f"open recommendations {_MAX_RECOMMENDATIONS}", read_open)

    counting = still_counting()
    missing = empty(
        "No tool was called or registered yet.",
        "Record calls with the SDK or the gateway, register tools with PUT /tools/{toolId}, or "
        "look at made-up ones:",
        "aftercall demo --history",
    )
    with section("In this window"), box("div", "stats"):
        called, succeeded, warned, recommended = (
            Stat("Tools called"), Stat("Calls that succeeded"), Stat("Asked for several jobs"),
            Stat("Recommendations open"),
        )  # fmt: skip
    pages: dict[str, str] = {}
    with section("All tools") as listed:
        summary = text("", "p", "note")
        table = DataTable("Tools", _columns(pages), "key", missing="No tool yet.")
        table.element.classes("roomy")

    async def update() -> None:
        found = await read()
        rows = tool_rows(found.tools, await services.memory.tools(workspace), open_ones)
        set_visible(counting, not rows and not found.is_complete)
        set_visible(missing, not rows and found.is_complete)
        set_visible(listed, bool(rows))
        totals = [each for each in found.tools if calls(each)]
        made = sum(map(calls, totals)) + calls(found.other_tools)
        worked = sum(each.successes for each in totals) + found.other_tools.successes
        called.set(count(len(totals)), f"{count(made)} calls")
        succeeded.set(percent(worked / made) if made else "-", f"{count(worked)} of {count(made)}")
        warned.set(count(sum(bool(row["warning"]) for row in rows)), "by their cohesion")
        recommended.set(count(sum(open_ones.values())), "when this page was loaded")
        left = calls(found.other_tools)
        more = f" {count(left)} more calls were of further tools." if left else ""
        set_text(summary, totals_in_words(rows) + more)
        pages.update({row["key"]: tool_href(look, _named(row)) for row in rows})
        table.set(rows)
        look.as_of(found.until, is_complete=found.is_complete)

    await update()
    look.live(update)


def _named(row: ToolRow) -> ToolName:
    return ToolName(
        tool_id=row["tool_id"], server_name=row["server_name"], tool_name=row["tool_name"]
    )


def _columns(pages: Mapping[str, str]) -> list[Column]:
    return [
        Column("tool", "Tool", "link", lambda row: pages.get(str(row["key"]))),
        Column("server", "Server"),
        Column("calls", "Calls", "number"),
        Column("success", "Success", "percent"),
        Column("p50", "p50", "duration", note="Half of the calls took no longer."),
        Column("p95", "p95", "duration", note="19 of 20 calls took no longer."),
        Column("quality", "Quality", "number", note="As in its fitness: 1 is best."),
        Column("cohesion", "Cohesion", "number", note="1: all boundary failures on one axis."),
        Column("warning", "Warning", note="Its failures point to several jobs."),
        Column("recommendations", "Recommendations", "number", note="Open ones."),
        Column("registered", "Registered"),
    ]


PAGE = Page(path="/tools", title="Tools", nav="Tools", build=build)
