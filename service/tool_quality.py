"""Quality and cohesion of many tools at once: as fitness has the one, and boundaries the other."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from mongo.contents import StoredTool
from mongo.records import ToolKey
from retrieval.boundaries.cohesion import cohesion_of
from retrieval.fitness.registry import Registry, ToolCandidate, offered, plain_candidate
from retrieval.fitness.score import quality_of, trials_of
from retrieval.fitness.statistics import ToolTrials, merged
from service.context import Context


class ToolQuality(NamedTuple):
    """How good a tool is now; None where nothing is known."""

    quality: float | None = None
    cohesion: float | None = None
    cohesion_warning: bool = False


async def tool_qualities(
    context: Context, workspace: str, tools: Sequence[ToolKey]
) -> Mapping[ToolKey, ToolQuality]:
    """How good these tools are now, registered or not."""
    memory, now = context.memory, context.clock()
    registry = await memory.registry(workspace)
    clusters = await memory.axis_clusters(workspace)
    statistics, health = await memory.statistics(tools), await memory.health(tools)

    def made() -> dict[ToolKey, ToolQuality]:
        found = {}
        for tool in tools:
            candidate = _in_force(registry, registry.named(tool))
            known = health.get(tool)
            score = cohesion_of(known, clusters, now=now, rules=context.cohesion) if known else None
            found[tool] = ToolQuality(
                quality=_quality(candidate, statistics.get(tool), now),
                cohesion=score.score if score else None,
                cohesion_warning=score.warning if score else False,
            )
        return found

    return await asyncio.to_thread(made)


def _in_force(registry: Registry, stored: StoredTool | None) -> ToolCandidate | None:
    """What calls of a registered tool are judged as: its promoted version, if they name it so."""
    if stored is None:
        return None
    candidate = offered(registry, stored)
    return (
        candidate
        if candidate.key == stored.tool_key
        else plain_candidate(registry, stored, "original")
    )


def _quality(
    candidate: ToolCandidate | None, statistics: ToolTrials | None, now: datetime
) -> float | None:
    """As in the factors of its fitness; of a tool that is not registered by all its versions."""
    if candidate is None:
        known = statistics.versions.values() if statistics else ()
        trials = merged(*(each.trials for each in known))
        return quality_of(trials, now=now) if trials else None
    trials = trials_of(candidate, statistics)
    if not trials and candidate.since is None:
        return None
    return quality_of(trials, now=now, start=candidate.start, since=candidate.since)
