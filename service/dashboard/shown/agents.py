"""Agents in rows. Pure."""

from collections.abc import Iterable, Sequence

from aftercall.models import AgentStatistics, AgentUsage, CallCounts, FailurePattern
from service.dashboard.shown.call_text import one_line

MAX_NAME = 256
"""Characters of a name, as many as the wire takes, with room for escapes in few of them only."""

CHARTED = 10
"""Agents in the chart: the busiest."""


def calls(counts: CallCounts) -> int:
    """All calls, however they went."""
    return counts.successes + counts.failures


def success_rate(counts: CallCounts) -> float | None:
    """Share of successes in [0, 1]; None without calls."""
    total = calls(counts)
    return counts.successes / total if total else None


def agent_rows(agents: Iterable[AgentUsage]) -> list[dict[str, object]]:
    """A row per agent: its name and how it is shown, and what `counted` gives."""
    return [
        {"agent": each.agent, "name": one_line(each.agent, MAX_NAME), **counted(each)}
        for each in agents
    ]


def busiest(agents: Sequence[AgentUsage]) -> tuple[list[str], list[float | None]]:
    """Names of those with most calls, most first, and their success rates in [0, 1]."""
    top = sorted(agents, key=lambda each: (-calls(each), each.agent))[:CHARTED]
    return [each.agent for each in top], [success_rate(each) for each in top]


def tool_rows(statistics: AgentStatistics) -> list[dict[str, object]]:
    """A row per tool that the agent calls, with its place in the list as key."""
    return [
        {
            "key": str(place),
            "tool": one_line(each.tool.tool_name, MAX_NAME),
            "server": one_line(each.tool.server_name or "", MAX_NAME),
            **counted(each),
        }
        for place, each in enumerate(statistics.tools)
    ]


def of_agent(agent: str, patterns: Iterable[FailurePattern]) -> list[FailurePattern]:
    """The patterns that are known to have happened to an agent, most failures first."""
    found = [each for each in patterns if agent in each.agents]
    return sorted(found, key=lambda each: (-each.count, each.pattern_id))


def counted(counts: CallCounts) -> dict[str, object]:
    """The cells of calls, successes, failures and the success rate in [0, 1] or None."""
    return {
        "calls": calls(counts),
        "successes": counts.successes,
        "failures": counts.failures,
        "rate": success_rate(counts),
    }
