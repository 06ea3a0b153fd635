"""Flat exports: one execution a line in the wire's form, for notebooks and `aftercall import`.

The lines are JSON objects as `GET /executions/{executionId}` answers them, in the order of the log.
Secrets are masked again. Only an archive holds input schemas, marks and the other events, and the
number of calls that a sampled success stands for.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime

from aftercall.models import Execution, Outcome
from aftercall.redaction import Redactor
from mongo.contents import execution_of
from mongo.protocol import EventLog
from mongo.records import Event

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which executions are wanted; None means any."""

    since: datetime | None = None
    until: datetime | None = None
    """Bounds of the time of the call; `since` is part of it, `until` is not."""
    tool: str | None = None
    """Its name, or `server/name`."""
    outcome: Outcome | None = None

    def has_execution(self, execution: Execution) -> bool:
        """Return whether an execution is wanted."""
        at, name = execution.timestamp, execution.tool_name
        return (
            (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
            and self.outcome in (None, execution.outcome)
            and self.tool in (None, name, f"{execution.server_name}/{name}")
        )


async def flat_lines(
    log: EventLog, workspace: str, chosen: Chosen, redactor: Redactor
) -> AsyncIterator[list[str]]:
    """Yield the lines of executions of a workspace, a page of the log at a time.

    What is recorded meanwhile belongs to the next export.
    """
    heads = await log.read_heads()
    last = heads[workspace].position if workspace in heads else 0
    position = 0
    while position < last and (page := await log.read_after(workspace, position, _PAGE)):
        position = page[-1].position
        recorded = [each for each in page if each.kind == "execution" and each.position <= last]
        lines = await asyncio.to_thread(_write_lines, recorded, chosen, redactor)
        if lines:
            yield lines


def _write_lines(events: Iterable[Event], chosen: Chosen, redactor: Redactor) -> list[str]:
    executions = (execution_of(event).execution for event in events)
    wanted = (execution for execution in executions if chosen.has_execution(execution))
    return [redactor.call(execution).model_dump_json() for execution in wanted]
