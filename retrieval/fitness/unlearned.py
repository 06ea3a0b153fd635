"""Marks that nothing was learned from yet: they count at once where a tool's quality is told."""

from collections.abc import Iterable, Sequence

from mongo.protocol import LogStore
from mongo.records import FailureRecord, ToolKey
from retrieval.fitness.statistics import NO_VERSION, ToolStatistics, VersionStatistics
from retrieval.fitness.trials import MAX_TRIALS, merged, trial_of
from retrieval.memory import Memory


async def statistics_with_marks(
    tools: Sequence[ToolKey], *, memory: Memory, store: LogStore
) -> dict[ToolKey, ToolStatistics]:
    """How tools fared, with the trials of all marks that are stored.

    `Memory.statistics` knows of a mark a moment after it was stored. One read of the store a tool,
    so not for the hot path. The counts of successes and failures are as they were learned.

    Raises:
        StoreError: when the store cannot say.
    """
    known = await memory.statistics(tools)
    return {
        tool: with_marks(known.get(tool), await store.list_marks(tool, MAX_TRIALS))
        for tool in dict.fromkeys(tools)
    }


def with_marks(known: ToolStatistics | None, marks: Iterable[FailureRecord]) -> ToolStatistics:
    """A copy in which each mark is a trial of its version; those that were learned change nothing.

    Args:
        known: how the tool fared.
        marks: of that tool, in any order.
    """
    versions = dict(known.versions) if known else {}
    for mark in marks:
        name = mark.version or NO_VERSION
        version = versions.get(name) or VersionStatistics()
        trial = trial_of(mark.marked_at, mark.execution_id or mark.mark_id, mark.severity)
        trials = merged(version.trials, [trial])
        versions[name] = version.model_copy(update={"trials": trials})
    return (known or ToolStatistics()).model_copy(update={"versions": versions})
