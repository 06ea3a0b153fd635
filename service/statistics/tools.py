"""Standings of tools: their quality as fitness has it, and their cohesion as boundaries have it."""

import asyncio
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mongo.records import StoredTool, ToolKey
from retrieval.boundaries.clusters import AxisClusters
from retrieval.boundaries.cohesion import CohesionRules, cohesion_of
from retrieval.fitness.registry import Candidate, Registry, offered, plain_candidate
from retrieval.fitness.score import quality_of, trials_of
from retrieval.fitness.statistics import ToolStatistics, merged
from retrieval.health.record import KnownHealth
from retrieval.memory import Memory

_KEPT_FOR = timedelta(seconds=30)
"""What follows from unchanged evidence is kept for so long: it fades over days."""

_MAX_KEPT = 2_000
"""Tools of which it is kept, as many as in `Memory`."""

_AT_A_TIME = 100
"""Tools that are read together: the event loop must get its turn in between."""


_WITHOUT_A_PAUSE = 20
"""Tools that are judged without one: a few milliseconds."""


class Standing(NamedTuple):
    """How good a tool is now; None where nothing is known."""

    quality: float | None = None
    cohesion: float | None = None
    cohesion_warning: bool = False


class _Kept(NamedTuple):
    """A standing, and what it was made from, by identity: `Memory` changes nothing.

    The sources are referred to weakly: how many of them stay is for `Memory` to say.
    """

    at: datetime
    sources: "tuple[weakref.ref[object] | None, ...]"
    standing: Standing


class ToolStandings:
    """Tells the standings of many tools at once.

    Args:
        memory: what is known of tools, cached.
        cohesion: when a tool is said to be asked for several jobs.
        clock: the time now, with a zone.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        cohesion: CohesionRules,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._memory = memory
        self._cohesion = cohesion
        self._clock = clock
        self._kept: OrderedDict[ToolKey, _Kept] = OrderedDict()

    async def of(self, workspace: str, tools: Sequence[ToolKey]) -> Mapping[ToolKey, Standing]:
        """The standings of these tools, registered or not.

        Raises:
            StoreError: when the store cannot say.
        """
        registry = await self._memory.registry(workspace)
        clusters = await self._memory.axis_clusters(workspace)
        registered = {each.tool_key: each for each in _latest_put_last(registry)}
        now, found = self._clock(), dict[ToolKey, Standing]()
        for start in range(0, len(tools), _AT_A_TIME):
            some = tools[start : start + _AT_A_TIME]
            statistics = await self._memory.statistics(some)
            health = await self._memory.health(some)
            new: dict[ToolKey, tuple[ToolStatistics | None, KnownHealth | None]] = {}
            for each in some:
                sources = statistics.get(each), health.get(each)
                kept = self._unchanged(each, (*sources, registry, clusters), now)
                if kept is None:
                    new[each] = sources
                else:
                    found[each] = kept
            if new:
                made = await asyncio.to_thread(self._made, new, registry, registered, clusters, now)
                for each, standing in made.items():
                    self._keep(each, (*new[each], registry, clusters), standing, now)
                found |= made
        return found

    def _made(
        self,
        tools: Mapping[ToolKey, tuple[ToolStatistics | None, KnownHealth | None]],
        registry: Registry,
        registered: Mapping[ToolKey, StoredTool],
        clusters: AxisClusters,
        now: datetime,
    ) -> dict[ToolKey, Standing]:
        made = {}
        for place, (tool, (statistics, health)) in enumerate(tools.items()):
            candidate = _in_force(registry, registered.get(tool))
            cohesion = (
                cohesion_of(health, clusters, now=now, rules=self._cohesion) if health else None
            )
            made[tool] = Standing(
                quality=_quality(candidate, statistics, now),
                cohesion=cohesion.score if cohesion else None,
                cohesion_warning=cohesion.warning if cohesion else False,
            )
            if place % _WITHOUT_A_PAUSE == 0:
                time.sleep(0)  # the event loop must get the interpreter now and then
        return made

    def _unchanged(
        self, tool: ToolKey, sources: tuple[object | None, ...], now: datetime
    ) -> Standing | None:
        kept = self._kept.get(tool)
        if kept is None or not timedelta() <= now - kept.at < _KEPT_FOR:
            return None
        same = all(
            new is None if old is None else new is not None and old() is new
            for old, new in zip(kept.sources, sources, strict=True)
        )
        return kept.standing if same else None

    def _keep(
        self, tool: ToolKey, sources: tuple[object | None, ...], standing: Standing, now: datetime
    ) -> None:
        referred = tuple(None if each is None else weakref.ref(each) for each in sources)
        self._kept[tool] = _Kept(now, referred, standing)
        self._kept.move_to_end(tool)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)


def _latest_put_last(registry: Registry) -> list[StoredTool]:
    """Of several ids that share a name the latest put is meant, as in `LogStore.find_tool`."""
    return sorted(
        registry.by_id.values(), key=lambda each: (each.tool.updated_at, each.tool.tool_id)
    )


def _in_force(registry: Registry, stored: StoredTool | None) -> Candidate | None:
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
    candidate: Candidate | None, statistics: ToolStatistics | None, now: datetime
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
