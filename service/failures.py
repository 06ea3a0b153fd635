"""Marking failures: whose they are, and what they leave of the tool's quality."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from aftercall.models import FailureMark, MarkedFailure
from aftercall.redaction import Redactor
from mongo.contents import Called, FailureRecord, StoredExecution, mark_event
from mongo.protocol import EventLog
from retrieval.fitness.history import statistics_with_marks
from retrieval.fitness.registry import (
    Registry,
    ToolCandidate,
    UnknownToolError,
    offered,
    plain_candidate,
)
from retrieval.fitness.score import quality_of, trials_of
from retrieval.fitness.statistics import NO_VERSION
from retrieval.log import executions
from retrieval.memory import Memory

_MAX_MESSAGE = 10_000
"""Characters kept of an error message, as many as of a scenario: marks are read by the dozen, and
answers show less."""


class FailureMarks:
    """Keeps marked failures.

    Args:
        log: where they are kept.
        memory: knows the tools and how they fared.
        redactor: masks secrets before anything is stored.
        on_stored: called when there is something to learn from.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        memory: Memory,
        redactor: Redactor,
        on_stored: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log = log
        self._memory = memory
        self._redactor = redactor
        self._on_stored = on_stored
        self._clock = clock

    async def mark(self, workspace: str, tool_id: str, mark: FailureMark) -> MarkedFailure:
        """Keep a marked failure; durable when this returns. The same id twice counts once.

        The version is the one that the mark names; else that of the recorded call that it names;
        else the one in force.

        Raises:
            UnknownToolError: no tool is registered under the id.
            StoreError: when it cannot be stored.
        """
        registry = await self._memory.registry(workspace)
        call = await self._call(workspace, mark.execution_id)
        failed, version = _failed(registry, tool_id, mark.version, call)
        record = FailureRecord(
            tool=failed.key,
            tool_id=tool_id,
            mark_id=mark.mark_id or str(uuid4()),
            version=version,
            scenario=self._redactor.text(mark.scenario),
            error_message=self._redactor.text(mark.error_message)[:_MAX_MESSAGE],
            severity=mark.severity,
            marked_at=self._clock(),
            negative_tags=self._clean_tags(mark.negative_tags),
            execution_id=mark.execution_id,
            called=None if call is None else Called.of(call),
        )
        is_new = await self._log.append(workspace, [mark_event(record)]) == ["accepted"]
        if is_new:
            self._on_stored()
        return MarkedFailure(
            mark_id=record.mark_id,
            tool_id=tool_id,
            version=version,
            severity=mark.severity,
            duplicate=not is_new,
            quality=await self._quality(failed),
        )

    def _clean_tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Those without a secret. Masked, one would be in every scenario that holds a secret."""
        return tuple(each for each in tags if self._redactor.text(each) == each)

    async def _call(self, workspace: str, execution_id: str | None) -> StoredExecution | None:
        """The recorded call that a mark names, if it is stored (yet)."""
        if execution_id is None:
            return None
        found = await executions(self._log, workspace, [execution_id])
        return found[0] if found else None

    async def _quality(self, failed: ToolCandidate) -> float:
        """With all marks that are stored, whether or not they were learned from yet."""
        statistics = await statistics_with_marks([failed.key], memory=self._memory, log=self._log)
        trials = trials_of(failed, statistics[failed.key])
        return quality_of(trials, now=self._clock(), start=failed.start, since=failed.since)


def _failed(
    registry: Registry, tool_id: str, version: str | None, call: StoredExecution | None
) -> tuple[ToolCandidate, str | None]:
    """What failed, and in which version: what is in force, unless version or call say otherwise.

    A call of another tool than this one says nothing.
    """
    stored = registry.by_id.get(tool_id)
    if stored is None:
        raise UnknownToolError(tool_id, registry.nearest_tool_ids(tool_id))
    in_force, plain = offered(registry, stored), plain_candidate(registry, stored, "original")
    possible = [in_force, plain]
    if call is not None:
        called = [each for each in possible if each.key == call.tool_key]
        if called:
            possible = called
            version = version or call.execution.tool_version or NO_VERSION
    if version is None:
        return in_force, in_force.tool.version
    for each in possible:
        if each.counts(version):
            return each, version or None
    unknown = replace(possible[-1], versions=(version,), start=1.0, since=None)
    return unknown, version or None
