"""Marking failures: whose they are, and what they leave of the tool's quality."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from aftercall.redaction import Redactor
from aftercall.wire import FailureMark, MarkedFailure
from mongo.protocol import LogStore
from mongo.records import FailureRecord
from retrieval.fitness.failures import UnknownToolError
from retrieval.fitness.judging import trials_of
from retrieval.fitness.lineage import Candidate, offered, plain_candidate
from retrieval.fitness.quality import quality_of
from retrieval.fitness.registry import Registry
from retrieval.fitness.unlearned import statistics_with_marks
from retrieval.memory import Memory


class FailureMarks:
    """Keeps marked failures.

    Args:
        store: where they are kept.
        memory: knows the tools and how they fared.
        redactor: masks secrets before anything is stored.
        on_stored: called when there is something to learn from.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        store: LogStore,
        memory: Memory,
        redactor: Redactor,
        on_stored: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._memory = memory
        self._redactor = redactor
        self._on_stored = on_stored
        self._clock = clock

    async def mark(self, workspace: str, tool_id: str, mark: FailureMark) -> MarkedFailure:
        """Keep a marked failure; durable when this returns. The same id twice counts once.

        Raises:
            UnknownToolError: no tool is registered under the id.
            StoreError: when it cannot be stored.
        """
        registry = await self._memory.registry(workspace)
        failed = _failed(registry, tool_id, mark.version)
        version = mark.version or failed.tool.version
        record = FailureRecord(
            tool=failed.key,
            tool_id=tool_id,
            mark_id=mark.mark_id or str(uuid4()),
            version=version,
            scenario=self._redactor.text(mark.scenario),
            error_message=self._redactor.text(mark.error_message),
            severity=mark.severity,
            marked_at=self._clock(),
            negative_tags=tuple(mark.negative_tags),
            execution_id=mark.execution_id,
        )
        is_new = await self._store.add_mark(record)
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

    async def _quality(self, failed: Candidate) -> float:
        """With all marks that are stored, whether or not they were learned from yet."""
        statistics = await statistics_with_marks(
            [failed.key], memory=self._memory, store=self._store
        )
        trials = trials_of(failed, statistics[failed.key])
        return quality_of(trials, now=self._clock(), start=failed.start)


def _failed(registry: Registry, tool_id: str, version: str | None) -> Candidate:
    """The tool that failed: the promoted version, unless another one is named."""
    stored = registry.by_id.get(tool_id)
    if stored is None:
        raise UnknownToolError(tool_id, registry.nearest_tool_ids(tool_id))
    in_force = offered(registry, stored)
    if version is None or in_force.counts(version):
        return in_force
    plain = plain_candidate(registry, stored, "original")
    if plain.counts(version):
        return plain
    return Candidate(
        workspace=stored.workspace, tool=stored.tool, source="original", versions=(version,)
    )
