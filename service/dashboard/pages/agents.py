"""*Agents*: who calls tools, and how that goes."""

from typing import Final

from aftercall.models import Usage
from service.dashboard.look import Look
from service.dashboard.page import Page
from service.dashboard.parts.rate_bars import RateBars
from service.dashboard.shown.agents import CHARTED, agent_rows, busiest, calls
from service.dashboard.shown.numbers import count
from service.dashboard.tables import Column, DataTable
from service.dashboard.widgets import empty, section, set_text, set_visible, still_counting, text

MAX_AGENTS: Final = 500
"""Agents in the table, the busiest, as many as `GET /stats/usage` tells."""


async def build(look: Look) -> None:
    """Fill the page."""

    async def read() -> Usage:
        return await look.shared(
            f"usage {MAX_AGENTS}",
            lambda: look.services.statistics.usage(look.workspace, look.window, MAX_AGENTS),
        )

    counting = still_counting()
    missing = empty(
        "No agent called a tool in this window.",
        "Choose a longer window, or record a call: every execution names the agent that made it.",
        "aftercall demo --history",
    )
    with section(
        "Busiest agents", note=f"Share of calls that succeeded, of at most {CHARTED} agents."
    ) as charted:
        bars = RateBars("Success rates of the busiest agents")
    with section("All agents") as listed:
        table = DataTable(
            "Agents",
            [
                Column("name", "Agent", "link", lambda row: look.link(f"/agents/{row['agent']}")),
                Column("calls", "Calls", "number"),
                Column("successes", "Successes", "number"),
                Column("failures", "Failures", "number"),
                Column("rate", "Success rate", "percent"),
            ],
            "agent",
        )
        others = text("", "p", "note")

    async def update() -> None:
        usage = await read()
        agents = usage.by_agent
        set_visible(counting, not agents and not usage.is_complete)
        set_visible(missing, not agents and usage.is_complete)
        set_visible(charted, bool(agents))
        set_visible(listed, bool(agents))
        bars.set(*busiest(agents))
        table.set(agent_rows(agents))
        left = calls(usage.other_agents)
        set_text(
            others,
            f"Agents beyond these {count(len(agents))} made {count(left)} calls." if left else "",
        )
        if usage.until is not None:
            look.as_of(usage.until, is_complete=usage.is_complete)
        if usage.until is not None:
            look.as_of(usage.until, is_complete=usage.is_complete)

    await update()
    look.live(update)


PAGE = Page(path="/agents", title="Agents", nav="Agents", build=build)
