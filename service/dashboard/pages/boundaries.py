"""*Boundaries*: which jobs tools refer elsewhere, which come together, and which tools mix them."""

from typing import Final

from nicegui.element import Element

from aftercall.models import Boundaries, Recommendation, ToolBoundary, ToolName
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.boundary_graph import BoundaryGraph
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.shown.boundary_map import map_of
from service.dashboard.shown.boundary_rows import (
    REFERRAL,
    cluster_rows,
    clustered_words,
    cohesion_words,
    pair_rows,
    shares_text,
    tool_rows,
    tool_text,
    warned,
)
from service.dashboard.shown.call_text import visible
from service.dashboard.shown.numbers import count
from service.dashboard.tables import Column, DataTable, Row
from service.dashboard.widgets import (
    badge,
    box,
    code,
    empty,
    facts,
    heading,
    link,
    section,
    set_text,
    set_visible,
    text,
)
from service.health import boundaries
from service.recommendations import RecommendationQuery, recommendations

MAX_LISTED: Final = 200
"""Clusters, co-occurrences and tools, of each at most so many."""

MAX_WARNED: Final = 50
"""Tools whose warning is told in full."""

_MAX_RECOMMENDATIONS: Final = 500

_MAX_MESSAGE: Final = 2_000

ToolId = tuple[str | None, str]


async def build(look: Look) -> None:
    """Fill the page."""

    async def read() -> Boundaries:
        return await look.shared(
            f"boundaries {MAX_LISTED}",
            lambda: boundaries(look.services, look.workspace, MAX_LISTED),
        )

    tools: dict[str, ToolName] = {}

    def to_tool(row: Row) -> str:
        return tool_href(look, tools[str(row["key"])])

    _nothing = _no_referral()
    with box("div", "page") as all_of_it:
        clustered = text("", "p", "note")
        with section(
            "Map of boundary axes",
            note="A disc is a cluster of wordings that mean one capability; its area is the "
            "recency-weighted count of referrals that name it; the number is the plain count. A "
            "line joins clusters that are named in the same referrals; the wider, the more often.",
        ) as mapped:
            graph = BoundaryGraph()
            left_out = text("", "p", "note")
        with section("Tools that are asked for several jobs") as warnings:
            told = box()
        with section("Tools with boundary failures"):
            tool_table = DataTable(
                "Tools with boundary failures",
                [
                    Column("tool", "Tool", "link", to_tool),
                    Column("warning", "Warning"),
                    Column("score", "Cohesion", "number", note="1: all on one axis"),
                    Column("failures", "Boundary failures", "number"),
                    Column("axes", "Axes with their shares"),
                ],
                "key",
            )
        with section("Clusters of axes"):
            cluster_table = DataTable(
                "Clusters of axes",
                [
                    Column("name", "Cluster"),
                    Column("members", "Wordings, with how often"),
                    Column("tools", "Tools"),
                    Column("count", "Named", "number"),
                    Column("weight", "Weight", "number", note="halves every 7 days"),
                    Column("first", "First seen", "time"),
                    Column("last", "Last seen", "time"),
                ],
                "id",
            )
        with section("Clusters that co-occur"):
            pair_table = DataTable(
                "Clusters that co-occur",
                [
                    Column("one", "Cluster"),
                    Column("other", "Named with"),
                    Column("count", "Referrals", "number"),
                    Column("weight", "Weight", "number", note="halves every 7 days"),
                    Column("last", "Last seen", "time"),
                ],
                "id",
                missing="No two clusters are named in one referral.",
            )
    shown: list[tuple[ToolBoundary, tuple[str, ...]]] | None = None

    async def update() -> None:
        nonlocal shown
        report = await read()
        has_any = bool(report.clusters or report.tools)
        set_visible(_nothing, not has_any)
        set_visible(all_of_it, has_any)
        if not has_any:
            return
        drawn = map_of(report)
        set_visible(mapped, bool(drawn.nodes))
        graph.set(drawn)
        set_text(clustered, clustered_words(report))
        set_text(
            left_out,
            f"{count(drawn.left_out)} lighter clusters are in the table only."
            if drawn.left_out
            else "",
        )
        tools.clear()
        tools.update({str(at): each.tool for at, each in enumerate(report.tools)})
        tool_table.set(tool_rows(report.tools))
        cluster_table.set(cluster_rows(report.clusters))
        pair_table.set(pair_rows(report.co_occurrences))
        found = warned(report)[:MAX_WARNED]
        set_visible(warnings, bool(found))
        advice = await _recommendations(look) if found else {}
        now = [(each, tuple(advice.get(_id(each.tool), ()))) for each in found]
        if now != shown:
            shown = now
            _tell(look, told, now)

    await update()
    look.live(update)


async def _recommendations(look: Look) -> dict[ToolId, list[str]]:
    """What is recommended for tools that should be split, by tool."""

    async def read() -> list[Recommendation]:
        asked = RecommendationQuery(limit=_MAX_RECOMMENDATIONS)
        queue = await recommendations(look.services, look.workspace, asked)
        return queue.recommendations

    found: dict[ToolId, list[str]] = {}
    for each in await look.shared(f"recommendations {_MAX_RECOMMENDATIONS}", read):
        if each.tool is not None and each.kind in ("split", "recompose"):
            found.setdefault(_id(each.tool), []).append(visible(each.message, _MAX_MESSAGE))
    return found


def _tell(look: Look, place: Element, found: list[tuple[ToolBoundary, tuple[str, ...]]]) -> None:
    """The warnings in full."""
    place.clear()
    with place:
        for each, advice in found:
            heading(tool_text(each.tool), level=3)
            badge("asked for several jobs", "warn")
            text(visible(each.cohesion.message, _MAX_MESSAGE))
            pairs = [
                ("How sure", cohesion_words(each.cohesion)),
                ("Axes", shares_text(each.cohesion.axes)),
                *(("Recommended", message) for message in advice),
            ]
            facts(pairs)
            link("Its page, with recommendations and referrals", tool_href(look, each.tool))


def _no_referral() -> Element:
    """What a referral is, and how a tool sends one."""
    with box() as element:
        empty(
            "No tool has referred a request elsewhere yet.",
            "A referral is a tool's own word that a request is not its job: a failure of the type "
            "wrong_tool_boundary which names the capabilities that the request mixes. Record one "
            "with POST /executions, or raise Outcome.wrong_tool_boundary of the SDK in the tool.",
        )
        with section("What a referral looks like", note="Beside what every execution has."):
            code(REFERRAL)
    return element


def _id(tool: ToolName) -> ToolId:
    return tool.server_name, tool.tool_name


PAGE = Page(path="/boundaries", title="Boundaries", nav="Boundaries", build=build)
