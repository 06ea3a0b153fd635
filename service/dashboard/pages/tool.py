"""The page of one tool: how it fares, what it takes, how fit it is, and what is said of it."""

from typing import Final

from aftercall.models import ToolHealth, ToolName
from mongo.records import ToolKey
from retrieval.fitness.registry import UnknownToolError
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.before_column import before_column
from service.dashboard.parts.tool_figures import ToolCharts, ToolNumbers
from service.dashboard.parts.tool_health import Kinds, Sayings
from service.dashboard.parts.tool_parts import (
    show_about,
    show_cohesion,
    show_known,
    show_marks,
    show_recommendations,
)
from service.dashboard.parts.tool_profile import show_profile
from service.dashboard.parts.tool_versions import show_versions
from service.dashboard.parts.unknown_tool import show_unknown
from service.dashboard.shown.failure_rows import PatternFilter, PatternRow, name_of, pattern_rows
from service.dashboard.shown.tool_rows import place_of
from service.dashboard.tables import Column, DataTable
from service.dashboard.tool_reads import health_of, tool_evidence
from service.dashboard.widgets import grid, link, section, set_visible, text

MAX_PATTERNS: Final = 500


async def build(look: Look) -> None:
    """Fill the page; of an unknown or ambiguous name, with what may have been meant."""
    try:
        health = await _health(look)
    except UnknownToolError as error:
        show_unknown(look, _asked_name(look), error.nearest)
        return
    evidence = await tool_evidence(look.services, look.workspace, health)
    statistics, tool = look.services.statistics, health.tool
    key = ToolKey(look.workspace, tool.server_name, tool.tool_name)

    look.title(name_of(tool))
    link("All tools", look.link("/tools"))
    numbers = ToolNumbers()
    with grid():
        show_about(evidence)
        show_known(evidence)
    charts = ToolCharts()
    show_recommendations(evidence)
    with section("Failure patterns", note="Those met in this window."):
        none_met = text("No failure of a known pattern in this window.")
        patterns = _pattern_table(look)
    show_profile(evidence.profile)
    show_versions(look, evidence)
    with grid():
        show_cohesion(health)
        kinds = Kinds()
    sayings = Sayings()
    show_marks(evidence)

    async def update() -> None:
        told = await _health(look)
        trend = await look.shared(
            f"trend of {key}", lambda: statistics.trend(look.workspace, look.window, key)
        )
        latency = await look.shared(
            f"latency of {key}", lambda: statistics.latency(look.workspace, look.window, key)
        )
        numbers.set(trend, latency, told, await statistics.standing(key))
        charts.set(trend, latency)
        met = await _patterns(look, tool)
        set_visible(none_met, not met)
        set_visible(patterns.element, bool(met))
        patterns.set(met)
        kinds.set(told)
        sayings.set(told)
        look.as_of(trend.until, is_complete=trend.is_complete)

    await update()
    look.live(update)


def _asked_name(look: Look) -> str:
    parts = (look.params.get("server", ""), look.params.get("name", ""))
    return look.params.get("tool_id") or "/".join(filter(None, parts))


async def _health(look: Look) -> ToolHealth:
    asked = {name: look.params.get(name, "") for name in ("tool_id", "server", "name")}
    return await look.shared(
        f"health of {asked}", lambda: health_of(look.services, look.workspace, **asked)
    )


async def _patterns(look: Look, tool: ToolName) -> list[PatternRow]:
    reports = look.services.statistics
    found = await look.shared(
        f"patterns {MAX_PATTERNS}",
        lambda: reports.patterns(look.workspace, look.window, MAX_PATTERNS),
    )
    own = [each for each in found.patterns if place_of(each.pattern.tool) == place_of(tool)]
    return pattern_rows(own, PatternFilter())


def _pattern_table(look: Look) -> DataTable:
    table = DataTable(
        "Failure patterns of this tool",
        [
            Column("signature", "Pattern", "link", lambda row: look.link(f"/patterns/{row['id']}")),
            Column("category", "Category"),
            Column("failures", "Failures", "number", note="Within the window."),
            *before_column(look),
            Column("mended", "Mended", "percent", note="Of all failures there ever were."),
            Column("last_seen", "Last seen", "time"),
            Column("lesson", "Lesson"),
        ],
        "id",
        page_size=10,
    )
    table.element.classes("wide")
    return table


PAGES = (
    Page(path="/tools/{tool_id:path}", title="Tool", build=build),
    Page(path="/tool", title="Tool", build=build),
)
"""Registered tools by id, and any called one by `?server=&name=`."""
