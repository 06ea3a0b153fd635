"""*Agents*: who calls tools, and how that goes; and the page of one agent."""

from typing import Final

from aftercall.models import AgentUsage, FailurePattern
from service import statistics
from service.dashboard.html import (
    Column,
    Link,
    bars,
    empty,
    link,
    markup,
    note,
    section,
    stat,
    stats,
)
from service.dashboard.look import Look, NothingHereError, Shown
from service.dashboard.words import (
    calls,
    count,
    one_line,
    percent,
    success_rate,
    tool_name,
)
from service.statistics import UnknownAgentError

MAX_AGENTS: Final = 500
"""Agents in the table, the busiest, as many as `GET /stats/usage` gives."""
MAX_PATTERNS: Final = 1_000
"""Patterns that are looked through for an agent's name, those met most in the window."""
_CHARTED: Final = 10

_COUNTS: Final = (
    Column("calls", "Calls", "number", of=calls),
    Column("successes", "Successes", "number"),
    Column("failures", "Failures", "number"),
    Column("rate", "Success rate", "percent", of=success_rate),
)


async def agents(look: Look) -> Shown:
    """The page of all."""
    usage = await statistics.usage(*look.space, look.window, MAX_AGENTS)
    busiest = sorted(usage.by_agent, key=lambda each: (-calls(each), each.agent))[:_CHARTED]
    left = calls(usage.other_agents)
    others = f"Agents beyond these {count(len(usage.by_agent))} made {count(left)} calls."
    content = [
        section(
            "Busiest agents",
            bars("Success rates of the busiest agents", [_bar(each) for each in busiest]),
            remark=f"Share of calls that succeeded, of at most {_CHARTED} agents.",
        ),
        section(
            "All agents",
            look.table(
                "Agents",
                [
                    Column(
                        "name", "Agent", of=lambda each: Link(each.agent, look.agent(each.agent))
                    ),
                    *_COUNTS,
                ],
                usage.by_agent,
            ),
            note(others if left else None),
        ),
    ]
    missing = empty(
        "No agent called a tool in this window.",
        "Choose a longer window, or record a call: every execution names the agent that made it.",
        "aftercall demo --history",
        is_complete=usage.is_complete,
    )
    shown = Shown("Agents", markup(content if usage.by_agent else missing))
    if usage.until is None:
        return shown
    return Shown(shown.title, shown.content, usage.until, is_complete=usage.is_complete)


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
    rate = percent(success_rate(usage))
    content = [
        link("All agents", look.link("/agents")),
        section(
            "In this window",
            stats(
                stat("Calls", count(calls(usage))),
                stat("Success rate", rate, f"{count(usage.successes)} successes"),
                stat("Failures", count(usage.failures)),
            ),
        ),
        section(
            "Tools it calls",
            look.table(
                "Tools of an agent",
                [
                    *look.tool_columns(),
                    *_COUNTS,
                ],
                found.tools,
                missing="It called no tool in this window.",
            ),
            remark="Most failures first.",
        ),
        section(
            "Failure patterns that it met",
            look.table(
                "Patterns of an agent",
                [
                    Column(
                        "signature",
                        "Pattern",
                        of=lambda each: Link(each.signature, look.pattern(each.pattern_id)),
                    ),
                    Column("tool", "Tool", of=lambda each: tool_name(each.tool)),
                    Column("category", "Kind"),
                    Column("count", "Failures ever", "number"),
                    Column("mended", "Mended", "number"),
                    Column("last_seen", "Last seen", "time"),
                ],
                await _patterns(look, name),
                missing="No pattern names this agent.",
            ),
            remark="Of those met in the window. The nightly run makes patterns, and each names "
            "some of the agents that it happened to; counts are of all agents.",
        ),
    ]
    title = one_line(name)
    return Shown(title, content, found.until, is_complete=found.is_complete)


async def _patterns(look: Look, agent: str) -> list[FailurePattern]:
    found = await statistics.patterns(*look.space, look.window, MAX_PATTERNS)
    own = [each.pattern for each in found.patterns if agent in each.pattern.agents]
    return sorted(own, key=lambda each: (-each.count, each.pattern_id))


def _bar(agent: AgentUsage) -> tuple[str, str, float]:
    rate = success_rate(agent)
    return one_line(agent.agent), percent(rate), rate or 0.0
