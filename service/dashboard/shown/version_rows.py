"""Versions of a tool, and what its fitness is made of. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from aftercall.models import BestTool, ToolSource
from aftercall.versions import same_version
from mongo.records import StoredTool, ToolKey
from retrieval.fitness.score import quality_of
from retrieval.fitness.statistics import NO_VERSION, ToolStatistics
from service.dashboard.shown.call_text import one_line

UNNAMED = "calls that name no version"

_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version as calls named it."""

    version: str
    tool_ids: tuple[str, ...]
    """Registered ids of that version, in order."""
    successes: int
    failures: int
    quality: float
    """After its remembered trials, in [0, 1]; higher is better."""
    last_seen: datetime | None


@dataclass(frozen=True, slots=True)
class FitnessRow:
    """One candidate of a namespace. Its score is base x quality x demotion, each in [0, 1]."""

    namespace: str
    tool_id: str
    version: str
    source: ToolSource
    base: float
    quality: float
    demotion: float
    score: float
    is_hardly_fit: bool


def version_rows(
    tool: ToolKey,
    registered: Iterable[StoredTool],
    statistics: ToolStatistics | None,
    now: datetime,
) -> list[VersionRow]:
    """All versions that were called or are registered, the latest used first.

    Args:
        tool: the tool as executions name it.
        registered: all registered tools of the workspace.
        statistics: how it has fared; None where nothing is known.
        now: to when idleness counts.
    """
    known = dict(statistics.versions) if statistics is not None else {}
    ids: dict[str, list[str]] = {name: [] for name in known}
    for each in registered:
        if each.tool_key == tool:
            stated = each.tool.version or NO_VERSION
            same = next((name for name in ids if _same(name, stated)), stated)
            ids.setdefault(same, []).append(each.tool.tool_id)
    rows = []
    for name, tool_ids in ids.items():
        fared = known.get(name)
        rows.append(
            VersionRow(
                version=one_line(name, _MAX_NAME) if name else UNNAMED,
                tool_ids=tuple(sorted(tool_ids)),
                successes=fared.successes if fared else 0,
                failures=fared.failures if fared else 0,
                quality=quality_of(fared.trials if fared else (), now=now),
                last_seen=fared.last_seen if fared else None,
            )
        )
    return sorted(
        rows, key=lambda row: (-(row.last_seen.timestamp() if row.last_seen else 0), row.version)
    )


def fitness_rows(namespace: str, best: BestTool) -> list[FitnessRow]:
    """The candidates of a namespace without a scenario to search for, fittest first."""
    return [
        FitnessRow(
            namespace=one_line(namespace, _MAX_NAME),
            tool_id=each.tool.tool_id,
            version=one_line(each.tool.version or UNNAMED, _MAX_NAME),
            source=each.source,
            base=each.factors.base,
            quality=each.factors.quality,
            demotion=each.factors.failure_demotion,
            score=each.score,
            is_hardly_fit=each.below_threshold,
        )
        for each in best.candidates
    ]


def _same(one: str, other: str) -> bool:
    return one == other or same_version(one, other)
