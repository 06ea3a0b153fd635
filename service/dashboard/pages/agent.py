"""The page of one agent: its calls, its tools, and the failure patterns that it met."""

from typing import Final

from aftercall.models import AgentStatistics, FailurePattern, ToolName
from service.dashboard.look import Look
from service.dashboard.page import NothingHereError, Page
from service.dashboard.parts.tool_links import tool_href
from service.dashboard.shown.agents import calls, of_agent, success_rate, tool_rows
from service.dashboard.shown.boundary_rows import tool_text
from service.dashboard.shown.call_text import one_line
from service.dashboard.shown.numbers import count, percent
from service.dashboard.tables import Column, DataTable, Row
from service.dashboard.widgets import Stat, box, link, section
from service.statistics.reports import UnknownAgentError

MAX_PATTERNS: Final = 1_000
"""Patterns that are looked through for the agent's name, those met most in the window."""


async def build(look: Look) -> None:
    """Fill the page.

    Raises:
        NothingHereError: no agent of that name called anything.
    """
    agent = look.params["agent"]
    reports = look.services.statistics

    async def read() -> AgentStatistics:
        return await look.shared(
            f"agent {agent}", lambda: reports.agent(look.workspace, agent, look.window)
        )

    async def read_patterns() -> list[FailurePattern]:
        found = await look.shared(
            f"patterns {MAX_PATTERNS}",
            lambda: reports.patterns(look.workspace, look.window, MAX_PATTERNS),
        )
        return of_agent(agent, (each.pattern for each in found.patterns))

    try:
        await read()
    except UnknownAgentError as error:
        raise NothingHereError(
            f"{str(error)[:1].upper()}{str(error)[1:]}.",
            "Names count as calls give them, in upper and lower case. The page Agents lists those "
            "that called a tool in the window.",
        ) from error

    tools: dict[str, ToolName] = {}

    def to_tool(row: Row) -> str:
        return tool_href(look, tools[str(row["key"])])

    def to_pattern(row: Row) -> str:
        return look.link(f"/patterns/{row['id']}")

    look.title(one_line(agent, 256))
    link("All agents", look.link("/agents"))
    with section("In this window"), box("div", "stats"):
        made, rate, failed = Stat("Calls"), Stat("Success rate"), Stat("Failures")
    with section("Tools it calls", note="Most failures first."):
        tool_table = DataTable(
            "Tools of an agent",
            [
                Column("tool", "Tool", "link", to_tool),
                Column("server", "Server"),
                Column("calls", "Calls", "number"),
                Column("successes", "Successes", "number"),
                Column("failures", "Failures", "number"),
                Column("rate", "Success rate", "percent"),
            ],
            "key",
            missing="It called no tool in this window.",
        )
    with section(
        "Failure patterns that it met",
        note="Of those met in the window. The nightly run makes patterns, and each names some of "
        "the agents that it happened to; counts are of all agents.",
    ):
        pattern_table = DataTable(
            "Patterns of an agent",
            [
                Column("signature", "Pattern", "link", to_pattern),
                Column("tool", "Tool"),
                Column("category", "Kind"),
                Column("count", "Failures ever", "number"),
                Column("mended", "Mended", "number"),
                Column("last_seen", "Last seen", "time"),
            ],
            "id",
            missing="No pattern names this agent.",
        )

    async def update() -> None:
        statistics = await read()
        usage, share = statistics.usage, success_rate(statistics.usage)
        made.set(count(calls(usage)))
        rate.set("-" if share is None else percent(share), f"{count(usage.successes)} successes")
        failed.set(count(usage.failures))
        tools.clear()
        tools.update({str(at): each.tool for at, each in enumerate(statistics.tools)})
        tool_table.set(tool_rows(statistics))
        found = await read_patterns()
        pattern_table.set(
            [
                {
                    "id": each.pattern_id,
                    "signature": one_line(each.signature, 160),
                    "tool": tool_text(each.tool),
                    "category": each.category,
                    "count": each.count,
                    "mended": each.mended,
                    "last_seen": each.last_seen,
                }
                for each in found
            ]
        )
        look.as_of(statistics.until, is_complete=statistics.is_complete)

    await update()
    look.live(update)


PAGE = Page(path="/agents/{agent:path}", title="Agent", build=build)
