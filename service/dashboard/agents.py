"""*Agents*: which agents call tools, and how that goes; and the page of one agent."""

from typing import Final

from retrieval.knowledge.rows.registry import UnknownNameError
from service.api.patterns import read_pattern_statistics
from service.api.statistics import read_agent, read_usage
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, NothingHereError, Shown
from service.requests import Window, WindowList

MAX_AGENTS: Final = 500
"""Agents in the table, the busiest, as many as `GET /stats/usage` gives."""
MAX_PATTERNS: Final = 500
"""Patterns that are looked through for an agent's name, those met most in the window."""
_COUNTS: Final = (
    h.Column("calls", "Calls", "number", of=w.count_calls),
    h.Column("successes", "Successes", "number"),
    h.Column("failures", "Failures", "number"),
    h.Column("rate", "Success rate", "percent", of=w.success_rate),
)
_REPAIRED: Final = h.Column(
    "repaired", "Needed a repair", "percent", "Of its successes: a second attempt or a suggestion.",
    lambda each: each.repaired / each.successes if each.successes else None,
)  # fmt: skip


async def show_agents(look: Look) -> Shown:
    """Return the page of all agents."""
    usage = await read_usage(look.space, WindowList(window=look.window, limit=MAX_AGENTS))
    busiest = sorted(usage.by_agent, key=lambda each: (-w.count_calls(each), each.agent))[:10]
    rates = [(w.format_line(each.agent), w.success_rate(each)) for each in busiest]
    name = h.Column(
        "name", "Agent", of=lambda each: h.Anchor(each.agent, look.link_agent(each.agent))
    )
    return look.show_page(
        "Agents",
        "agents",
        of=usage,
        usage=usage,
        busiest=[(name, w.format_percent(rate), rate or 0.0) for name, rate in rates],
        columns=[name, *_COUNTS, _REPAIRED],
    )


async def show_agent(look: Look) -> Shown:
    """Return the page of one agent."""
    name = look.named["agent"]
    try:
        found = await read_agent(look.space, name, Window(window=look.window))
    except UnknownNameError as error:
        raise NothingHereError(
            f"{str(error)[:1].upper()}{str(error)[1:]}.",
            "Names count as calls give them, in upper and lower case. The page Agents lists those "
            "that called a tool in the window.",
        ) from error
    met = await read_pattern_statistics(
        look.space, WindowList(window=look.window, limit=MAX_PATTERNS)
    )
    own = [each.pattern for each in met.patterns if name in each.pattern.agents]
    own.sort(key=lambda each: (-each.count, each.pattern_id))
    return look.show_page(
        w.format_line(name),
        "agent",
        of=found,
        found=found,
        tool_columns=[*look.tool_columns(), *_COUNTS],
        columns=[
            h.Column("title", "Pattern",
                     of=lambda each: h.Anchor(each.title, look.link_pattern(each.pattern_id))),
            h.Column("tool", "Tool", of=lambda each: w.format_tool(each.tool)),
            h.Column("category", "Kind"),
            h.Column("count", "Failures ever", "number"),
            h.Column("mended", "Mended", "number"),
            h.Column("last_seen", "Last seen", "time"),
        ],
        patterns=own,
    )  # fmt: skip
