"""Stored executions for the tests of usage."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from aftercall.models import Execution
from mongo.records import StoredExecution, ToolKey
from retrieval.usage.base import Base, kept_at
from retrieval.usage.counts import Counts, Gathering
from retrieval.usage.day import DayUsage, Failure, day_of
from retrieval.usage.spans import first_hour

TOOL = ToolKey("default", "rag-server", "rag_query")
NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
TIMEOUT = Failure("timeout", "0123456789abcdef")
"""What all failures here failed of, unless they say otherwise by their code."""


def stored(position: int, *, stands_for: int = 1, **fields: Any) -> StoredExecution:
    """A success of the tool at noon, unless the fields say otherwise."""
    given = {
        "execution_id": str(UUID(int=position)),
        "timestamp": NOON,
        "agent": "ada",
        "server_name": TOOL.server_name,
        "tool_name": TOOL.tool_name,
        "parameters": {},
        "outcome": "success",
        "duration_ms": 100.0,
        **fields,
    }
    execution = Execution.model_validate(given)
    return StoredExecution(position, TOOL.workspace, execution, None, NOON, stands_for)


def failed(position: int, **fields: Any) -> StoredExecution:
    """A failure, of whatever kind the caller says it is."""
    error = fields.pop("error", {"message": "no"})
    return stored(position, outcome="failure", error=error, **fields)


def days_of(executions: Iterable[StoredExecution]) -> dict[tuple[ToolKey, date], DayUsage]:
    """Usage by tool and day, in the order of positions."""
    days: dict[tuple[ToolKey, date], DayUsage] = {}
    for each in sorted(executions, key=lambda stored: stored.position):
        error = each.execution.error
        failure = None
        if error is not None:
            failure = TIMEOUT if error.code is None else Failure("timeout", error.code)
        place = (each.tool_key, day_of(each.execution.timestamp))
        days.setdefault(place, DayUsage()).count(each, failure)
    return days


def base_of(executions: Iterable[StoredExecution], now: datetime = NOON) -> Base:
    """A base as the nightly run makes it now."""
    gathering, kept, known = Gathering(), kept_at(now), list(executions)
    for (tool, day), usage in days_of(known).items():
        if kept.first <= first_hour(day) <= kept.last:
            by_hour = first_hour(day) >= kept.by_hour_from
            gathering.add(tool, day, usage, by_hour=by_hour)
    through = max((each.position for each in known), default=0)
    return Base(through, now, gathering.finish())


def tail_of(base: Base, pages: Iterable[Sequence[StoredExecution]]) -> Counts:
    """The counts of a tail behind a base, page by page."""
    gathering = Gathering(base.counts.without_tables(), keeps_names=True)
    counts = gathering.settle()
    for page in pages:
        for (tool, day), usage in days_of(page).items():
            gathering.add(tool, day, usage)
        counts = gathering.settle()
    return counts
