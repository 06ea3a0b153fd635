"""Drift: the days on which a tool is slow, fails, or is well again."""

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from service.demo.history.faults import FaultKind, ToolFault


class Hour(Protocol):
    """What the weather needs to know of a moment."""

    @property
    def load(self) -> float:
        """How busy the hour is, 0 to 1."""
        ...

    @property
    def dice(self) -> Random:
        """Decides."""
        ...


@dataclass(frozen=True, slots=True)
class Weather:
    """How a tool's server fares.

    Args:
        timeouts: share of calls that time out in an hour of mean load.
        limits: share turned away by a rate limit, likewise.
        outages: share answered by a server that is not available.
        slowness: what the usual duration is multiplied with.
        words: what an outage says.
    """

    timeouts: float = 0.012
    limits: float = 0.014
    outages: float = 0.006
    slowness: float = 1.0
    words: str = "503 Service Unavailable: upstream connect error"

    def breakdown(self, tool: str, hour: Hour) -> ToolFault | None:
        """What breaks down in this call, if anything; more in busy hours."""
        drawn = hour.dice.random() / (0.5 + hour.load)
        if drawn < self.timeouts:
            return ToolFault(
                "timeout", f"{tool} timed out after 5.0 s", type="TimeoutError", code="TIMEOUT"
            )
        if drawn < self.timeouts + self.limits:
            wait = 1 + int(hour.dice.random() * 5)
            return ToolFault(
                "rate_limited", f"429 Too Many Requests: retry after {wait} seconds",
                type="RateLimitError", code="429", details={"retryAfter": wait},
            )  # fmt: skip
        if drawn < self.timeouts + self.limits + self.outages:
            return ToolFault("unavailable", self.words, type="ServiceUnavailable", code="503")
        return None


WELL = Weather()


@dataclass(frozen=True, slots=True)
class Drift:
    """A spell of other weather.

    Args:
        first: its first day, from 0.
        last: its last day.
        kind: what it shows as; None where it is slowness alone.
        weather: how the tool fares then.
    """

    first: int
    last: int
    kind: FaultKind | None
    weather: Weather = field(default_factory=Weather)

    def covers(self, day: int) -> bool:
        """Whether the day lies in it."""
        return self.first <= day <= self.last
