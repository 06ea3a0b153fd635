"""The methods of `AsyncClient` for statistics."""

from typing import TypeVar

from aftercall.client import statistics_endpoints as endpoints
from aftercall.client.requests import Request
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

T = TypeVar("T")


class AsyncStatisticsMethods:
    """Base of `AsyncClient`: one method per endpoint of `statistics_endpoints`."""

    async def send(self, request: Request[T]) -> T:
        """Send a request; the clients say how."""
        raise NotImplementedError

    async def totals(self) -> Totals:
        """How many calls there were in 24 hours, 7 days and 30 days, and in as long before."""
        return await self.send(endpoints.totals())

    async def usage(self, window: UsageWindow = "24h", *, limit: int | None = None) -> Usage:
        """How often tools were called, by whom, and how that went; up to now.

        Args:
            window: the last 24 hours, 7 days or 30 days up to now.
            limit: most tools and agents to return, 1 to 500; the service's own number when None.
        """
        return await self.send(endpoints.usage(window, limit))

    async def trend(
        self,
        window: UsageWindow = "24h",
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
    ) -> Trend:
        """How calls went over time.

        Args:
            window: the last 24 hours by the hour; 7 or 30 days, today among them, by the day (UTC).
            tool_name: only calls of this tool, by the name of its calls.
            server_name: its server; None for the tool without one.

        Raises:
            ValueError: a server is named and no tool.
        """
        return await self.send(endpoints.trend(window, tool_name, server_name))

    async def latency(
        self,
        window: UsageWindow = "24h",
        *,
        tool_name: str | None = None,
        server_name: str | None = None,
    ) -> Latency:
        """How long calls took over time, in milliseconds.

        Args:
            window: the last 24 hours by the hour; 7 or 30 days, today among them, by the day (UTC).
            tool_name: only calls of this tool, by the name of its calls.
            server_name: its server; None for the tool without one.

        Raises:
            ValueError: a server is named and no tool.
        """
        return await self.send(endpoints.latency(window, tool_name, server_name))

    async def tool_statistics(
        self, window: UsageWindow = "24h", *, limit: int | None = None
    ) -> ToolStatisticsList:
        """Tools that were called in a window, and how good they are now.

        Args:
            window: the last 24 hours, 7 days or 30 days up to now.
            limit: most tools to return, 1 to 500; the service's own number when None.
        """
        return await self.send(endpoints.tool_statistics(window, limit))

    async def agent_statistics(self, agent: str, window: UsageWindow = "24h") -> AgentStatistics:
        """What one agent called, and how that went.

        Raises:
            NotFoundError: nobody of that name called anything lately.
        """
        return await self.send(endpoints.agent_statistics(agent, window))

    async def reflection(self, window: UsageWindow = "24h") -> ReflectionStatistics:
        """What asking about failures did: success before and after it, answers, times to repair."""
        return await self.send(endpoints.reflection(window))

    async def pattern_statistics(
        self, window: UsageWindow = "24h", *, limit: int | None = None
    ) -> PatternStatistics:
        """Failure patterns by how often they were met in a window.

        Args:
            window: the last 24 hours, 7 days or 30 days up to now.
            limit: most patterns to return, 1 to 500; the service's own number when None.
        """
        return await self.send(endpoints.pattern_statistics(window, limit))

    async def pattern_history(self, pattern_id: str, window: UsageWindow = "30d") -> PatternHistory:
        """How often a pattern was met over time; ids are those of `patterns`.

        Raises:
            NotFoundError: there is none of this id.
        """
        return await self.send(endpoints.pattern_history(pattern_id, window))

    async def confidence(self) -> ConfidenceStatistics:
        """What suggestions promised and what came of it, of the latest 2,000 outcomes."""
        return await self.send(endpoints.confidence())
