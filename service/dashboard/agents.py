"""*Agents*: who calls tools, and how that goes; and the page of one agent."""

from typing import Any, Final

from service import statistics
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, NothingHereError, Shown
from service.statistics import UnknownAgentError

MAX_AGENTS: Final = 500
"""Agents in the table, the busiest, as many as `GET /stats/usage` gives."""
MAX_PATTERNS: Final = 1_000
"""Patterns that are looked through for an agent's name, those met most in the window."""
_CHARTED: Final = 10
_COUNTS: Final = (
    h.Column("calls", "Calls", "number", of=w.calls),
    h.Column("successes", "Successes", "number"),
    h.Column("failures", "Failures", "number"),
    h.Column("rate", "Success rate", "percent", of=w.success_rate),
)


async def agents(look: Look) -> Shown:
    """The page of all."""
    usage = await statistics.usage(*look.space, look.window, MAX_AGENTS)
    at: dict[str, Any] = (
        {} if usage.until is None else {"at": usage.until, "is_complete": usage.is_complete}
    )
    if not usage.by_agent:
        missing = h.empty(
            "No agent called a tool in this window.",
            "Choose a longer window, or record a call: every execution names the agent that made "
            "it.",
            "aftercall demo --history",
            is_complete=usage.is_complete,
        )
        return Shown("Agents", missing, **at)
    busiest = sorted(usage.by_agent, key=lambda each: (-w.calls(each), each.agent))[:_CHARTED]
    rates = [(w.one_line(each.agent), w.success_rate(each)) for each in busiest]
    bars = [(name, w.percent(rate), rate or 0.0) for name, rate in rates]
    name = h.Column("name", "Agent", of=lambda each: h.Link(each.agent, look.agent(each.agent)))
    left = w.calls(usage.other_agents)
    others = f"Agents beyond these {w.count(len(usage.by_agent))} made {w.count(left)} calls."
    content = [
        h.section(
            "Busiest agents",
            h.bars("Success rates of the busiest agents", bars),
            remark=f"Share of calls that succeeded, of at most {_CHARTED} agents.",
        ),
        h.section(
            "All agents",
            look.table("Agents", [name, *_COUNTS], usage.by_agent),
            h.note(others if left else None),
        ),
    ]
    return Shown("Agents", content, **at)


async def agent(look: Look) -> Shown:
    """The page of one."""
    name = look.named["agent"]
    try:
        found = await statistics.agent(*look.space, name, look.window)
    except UnknownAgentError as error:
        raise NothingHereError(
            f"{str(error)[:1].upper()}{str(error)[1:]}.",
            "Names count as calls give them, in upper and lower case. The page Agents lists those "
            "that called a tool in the window.",
        ) from error
    usage = found.usage
    met = await statistics.patterns(*look.space, look.window, MAX_PATTERNS)
    own = [each.pattern for each in met.patterns if name in each.pattern.agents]
    own.sort(key=lambda each: (-each.count, each.pattern_id))
    columns = [
        h.Column("signature", "Pattern",
                 of=lambda each: h.Link(each.signature, look.pattern(each.pattern_id))),
        h.Column("tool", "Tool", of=lambda each: w.tool_name(each.tool)),
        h.Column("category", "Kind"),
        h.Column("count", "Failures ever", "number"),
        h.Column("mended", "Mended", "number"),
        h.Column("last_seen", "Last seen", "time"),
    ]  # fmt: skip
    rate, worked = w.percent(w.success_rate(usage)), f"{w.count(usage.successes)} successes"
    tools = look.table("Tools of an agent", [*look.tool_columns(), *_COUNTS], found.tools,
                       missing="It called no tool in this window.")  # fmt: skip
    patterns = look.table("Patterns of an agent", columns, own,
                          missing="No pattern names this agent.")  # fmt: skip
    content = [
        h.link("All agents", look.link("/agents")),
        h.section(
            "In this window",
            h.stats(
                ("Calls", w.count(w.calls(usage))),
                ("Success rate", rate, worked),
                ("Failures", w.count(usage.failures)),
            ),
        ),
        h.section("Tools it calls", tools, remark="Most failures first."),
        h.section(
            "Failure patterns that it met",
            patterns,
            remark="Of those met in the window. The nightly run makes patterns, and each names "
            "some of the agents that it happened to; counts are of all agents.",
        ),
    ]
    return Shown(w.one_line(name), content, found.until, is_complete=found.is_complete)
