"""The endpoints for statistics as data."""

from aftercall.client.requests import Request, query, reads, segment
from aftercall.models import (
    AgentStatistics,
    ConfidenceStatistics,
    Latency,
    PatternHistory,
    PatternStatistics,
    ReflectionStatistics,
    ToolStatisticsList,
    Totals,
    Trend,
    Usage,
    UsageWindow,
)


def totals() -> Request[Totals]:
    """`GET /stats/totals`."""
    return Request("GET", "/stats/totals", reads(Totals))


def usage(window: UsageWindow, limit: int | None) -> Request[Usage]:
    """`GET /stats/usage`."""
    asked = query({"window": window, "limit": limit})
    return Request("GET", f"/stats/usage{asked}", reads(Usage))


def trend(window: UsageWindow, tool_name: str | None, server_name: str | None) -> Request[Trend]:
    """`GET /stats/trend`."""
    asked = _over_time(window, tool_name, server_name)
    return Request("GET", f"/stats/trend{asked}", reads(Trend))


def latency(
    window: UsageWindow, tool_name: str | None, server_name: str | None
) -> Request[Latency]:
    """`GET /stats/latency`."""
    asked = _over_time(window, tool_name, server_name)
    return Request("GET", f"/stats/latency{asked}", reads(Latency))


def tool_statistics(window: UsageWindow, limit: int | None) -> Request[ToolStatisticsList]:
    """`GET /stats/tools`."""
    asked = query({"window": window, "limit": limit})
    return Request("GET", f"/stats/tools{asked}", reads(ToolStatisticsList))


def agent_statistics(agent: str, window: UsageWindow) -> Request[AgentStatistics]:
    """`GET /stats/agents/{agent}`."""
    path = f"/stats/agents/{segment(agent)}{query({'window': window})}"
    return Request("GET", path, reads(AgentStatistics))


def reflection(window: UsageWindow) -> Request[ReflectionStatistics]:
    """`GET /stats/reflection`."""
    asked = query({"window": window})
    return Request("GET", f"/stats/reflection{asked}", reads(ReflectionStatistics))


def pattern_statistics(window: UsageWindow, limit: int | None) -> Request[PatternStatistics]:
    """`GET /stats/patterns`."""
    asked = query({"window": window, "limit": limit})
    return Request("GET", f"/stats/patterns{asked}", reads(PatternStatistics))


def pattern_history(pattern_id: str, window: UsageWindow) -> Request[PatternHistory]:
    """`GET /stats/patterns/{patternId}`."""
    path = f"/stats/patterns/{segment(pattern_id)}{query({'window': window})}"
    return Request("GET", path, reads(PatternHistory))


def confidence() -> Request[ConfidenceStatistics]:
    """`GET /stats/confidence`."""
    return Request("GET", "/stats/confidence", reads(ConfidenceStatistics))


def _over_time(window: UsageWindow, tool_name: str | None, server_name: str | None) -> str:
    if server_name is not None and tool_name is None:
        raise ValueError("server_name needs tool_name; a server alone is no tool")
    return query({"window": window, "toolName": tool_name, "serverName": server_name})
