"""A day (UTC) of one tool, by hour: calls, agents, kinds of failures, durations. Pure.

A value object that is stored as JSON. It knows the last position that it counted, so that what is
counted again after a crash changes nothing.
"""

from datetime import UTC, date, datetime

from pydantic import BaseModel, Field

from aftercall.wire import ErrorCategory
from mongo.records import StoredExecution
from retrieval.usage.durations import bucket_of

MAX_AGENTS = 32
"""Told apart in one hour of a tool; the calls of further ones are counted under `OTHER`."""

OTHER = ""
"""No agent is called so: the wire refuses empty names."""


class Hour(BaseModel):
    """What a tool was asked for within an hour; successes weigh what they stand for."""

    successes: int = 0
    failures: int = 0
    agents: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """Successes and failures by agent."""
    categories: dict[ErrorCategory, int] = Field(default_factory=dict)
    """Failures by category."""
    durations: dict[int, int] = Field(default_factory=dict)
    """Calls by bucket (`retrieval.usage.durations`) of those that say how long they took."""
    retries: tuple[int, int] = (0, 0)
    """Second and later attempts: those that succeeded, and those that failed."""
    suggested: tuple[int, int] = (0, 0)
    """Calls that followed a suggestion: those that succeeded, and those that failed."""


class DayUsage(BaseModel):
    """The hours of one day in which a tool was called."""

    through: int = 0
    """Position of the last execution that was counted."""
    hours: dict[int, Hour] = Field(default_factory=dict)

    def count(self, stored: StoredExecution, category: ErrorCategory | None) -> bool:
        """Count an execution, in place; False when it was counted before.

        Args:
            stored: an execution of this tool and day; positions come in order.
            category: of its failure; None for a success.
        """
        if stored.position <= self.through:
            return False
        self.through = stored.position
        execution, times = stored.execution, stored.stands_for
        hour = self.hours.setdefault(hour_of(execution.timestamp), Hour())
        worked, failed = (times, 0) if category is None else (0, times)
        hour.successes += worked
        hour.failures += failed
        agent = execution.agent
        if agent not in hour.agents and len(hour.agents) >= MAX_AGENTS:
            agent = OTHER
        hour.agents[agent] = _added(hour.agents.get(agent, (0, 0)), worked, failed)
        if category is not None:
            hour.categories[category] = hour.categories.get(category, 0) + times
        bucket = bucket_of(execution.duration_ms)
        if bucket is not None:
            hour.durations[bucket] = hour.durations.get(bucket, 0) + times
        if execution.attempt > 1:
            hour.retries = _added(hour.retries, worked, failed)
        if execution.suggestion_id is not None:
            hour.suggested = _added(hour.suggested, worked, failed)
        return True


def encoded(usage: DayUsage) -> bytes:
    """As it is stored."""
    return usage.model_dump_json(exclude_defaults=True).encode()


def decoded(data: bytes) -> DayUsage:
    """The reverse of `encoded`."""
    return DayUsage.model_validate_json(data)


def day_of(moment: datetime) -> date:
    """The day in UTC."""
    return moment.astimezone(UTC).date()


def hour_of(moment: datetime) -> int:
    """The hour of the day in UTC, 0 to 23."""
    return moment.astimezone(UTC).hour


def _added(pair: tuple[int, int], worked: int, failed: int) -> tuple[int, int]:
    return (pair[0] + worked, pair[1] + failed)
