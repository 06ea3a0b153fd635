"""A day (UTC) of one tool, by hour: calls, agents, kinds and marks of failures, durations. Pure.

A value object that is stored as JSON. It knows the last position that it counted, so that what is
counted again after a crash changes nothing.
"""

from datetime import UTC, date, datetime
from typing import NamedTuple

from pydantic import BaseModel, Field

from aftercall.models import ErrorCategory
from mongo.records import StoredExecution
from retrieval.knowledge.documents import document_id
from retrieval.patterns import mark_of
from retrieval.reading.reader import read_error
from retrieval.usage.durations import bucket_of

MAX_AGENTS = 32
"""Told apart in one hour of a tool; the calls of further ones are counted under `OTHER`."""

MAX_MARKS = 64
"""Told apart in a day of a tool; the failures of further ones are counted under `OTHER`."""

OTHER = ""
"""No agent is called so: the wire refuses empty names. And no mark is empty."""


class Failure(NamedTuple):
    """What is counted of a failure.

    `mark` is that of the document that it belongs to (`retrieval.patterns.mark_of`), 16
    hexadecimal digits: a pattern knows its members by it.
    """

    category: ErrorCategory
    mark: str


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
    marks: dict[str, dict[int, int]] = Field(default_factory=dict)
    """Failures by mark and hour; rows of earlier versions have none."""

    def count(self, stored: StoredExecution, failure: Failure | None) -> bool:
        """Count an execution, in place; False when it was counted before.

        Args:
            stored: an execution of this tool and day; positions come in order.
            failure: what it failed of (`failure_of`); None for a success.
        """
        if stored.position <= self.through:
            return False
        self.through = stored.position
        execution, times = stored.execution, stored.stands_for
        number = hour_of(execution.timestamp)
        hour = self.hours.setdefault(number, Hour())
        worked, failed = (times, 0) if failure is None else (0, times)
        hour.successes += worked
        hour.failures += failed
        agent = execution.agent
        if agent not in hour.agents and len(hour.agents) >= MAX_AGENTS:
            agent = OTHER
        hour.agents[agent] = _added(hour.agents.get(agent, (0, 0)), worked, failed)
        if failure is not None:
            hour.categories[failure.category] = hour.categories.get(failure.category, 0) + times
            self._mark(failure.mark, number, times)
        bucket = bucket_of(execution.duration_ms)
        if bucket is not None:
            hour.durations[bucket] = hour.durations.get(bucket, 0) + times
        if execution.attempt > 1:
            hour.retries = _added(hour.retries, worked, failed)
        if execution.suggestion_id is not None:
            hour.suggested = _added(hour.suggested, worked, failed)
        return True

    def _mark(self, mark: str, hour: int, times: int) -> None:
        if mark not in self.marks and len(self.marks) >= MAX_MARKS:
            mark = OTHER
        hours = self.marks.setdefault(mark, {})
        hours[hour] = hours.get(hour, 0) + times


def failure_of(stored: StoredExecution) -> Failure | None:
    """What a call failed of; None for a success.

    Reading an error takes some 90 microseconds, a third of all that counting one costs: no cache of
    texts is needed, and none could know what the parameters have to say.
    """
    execution = stored.execution
    if execution.error is None:
        return None
    reading = read_error(execution.error, execution.parameters)
    document = document_id(
        stored.workspace,
        "reflection",
        execution.server_name,
        execution.tool_name,
        reading.signature,
    )
    return Failure(reading.category, mark_of(document).hex())


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
