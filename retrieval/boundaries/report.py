"""The boundaries of a workspace, as the wire tells them. Pure.

All that tools and users said is masked and bounded here, on its way out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from aftercall.models import (
    AxisCluster,
    AxisMember,
    Boundaries,
    Cohesion,
    CoOccurrence,
    ToolBoundary,
    ToolName,
)
from aftercall.redaction import Redactor
from retrieval.boundaries.clusters import AxisClusters, KnownCluster
from retrieval.boundaries.cohesion import CohesionRules, cohesion_of
from retrieval.health.record import AxisBook, AxisSeen, KnownHealth, Tally, axes_of_pair

MAX_MEMBERS = 50
"""Wordings told of one cluster, the most frequent first."""

MAX_CLUSTER_TOOLS = 20
"""Tools told of one cluster, the latest first."""


@dataclass(frozen=True, slots=True)
class TroubledTool:
    """A tool and what is counted of it."""

    name: ToolName
    known: KnownHealth


@dataclass(slots=True)
class _Gathered:
    """What is known of one cluster."""

    cluster: KnownCluster
    members: list[AxisSeen] = field(default_factory=list)
    tools: dict[int, datetime] = field(default_factory=dict)
    """By their place, when they named it last."""


def boundaries_of(
    book: AxisBook,
    clusters: AxisClusters,
    tools: Sequence[TroubledTool],
    *,
    redactor: Redactor,
    rules: CohesionRules,
    now: datetime,
    limit: int,
) -> Boundaries:
    """All that is told of boundaries at this moment.

    Args:
        book: the axes of the workspace.
        clusters: of these axes, as far as they are clustered.
        tools: those that had trouble lately; those without a boundary failure are left out.
        redactor: masks secrets in what was said.
        rules: what makes a cohesion warning.
        now: from when age counts.
        limit: clusters, co-occurrences and tools, of each so many.
    """
    told = _Told(redactor, now)
    gathered = _gathered(book, clusters, tools)
    shown = [told.cluster(each, tools) for each in gathered.values()]
    shown.sort(key=lambda each: (-each.weight, -each.count, each.cluster_id))
    cohesions = [(tool, cohesion_of(tool.known, clusters, now=now, rules=rules)) for tool in tools]
    with_any = [(tool, cohesion) for tool, cohesion in cohesions if cohesion.failures]
    with_any.sort(key=lambda each: (not each[1].warning, -each[1].weight, _sort_name(each[0])))
    return Boundaries(
        clusters=shown[:limit],
        co_occurrences=told.co_occurrences(book, clusters)[:limit],
        tools=[
            ToolBoundary(tool=tool.name, cohesion=told.cohesion(cohesion))
            for tool, cohesion in with_any[:limit]
        ],
        clustered_at=clusters.clustered_at,
        unclustered=sum(not clusters.knows(axis) for axis in book.axes),
    )


def _gathered(
    book: AxisBook, clusters: AxisClusters, tools: Sequence[TroubledTool]
) -> Mapping[str, _Gathered]:
    """The clusters that were named, by id, each with its wordings and its tools."""
    gathered: dict[str, _Gathered] = {}
    for axis, seen in book.axes.items():
        cluster = clusters.cluster_of(axis)
        gathered.setdefault(cluster.cluster_id, _Gathered(cluster)).members.append(seen)
    for place, tool in enumerate(tools):
        for referred in tool.known.referrals:
            if referred.kind != "wrong_tool_boundary":
                continue
            for axis in referred.axes:
                found = gathered.get(clusters.cluster_of(axis).cluster_id)
                if found is not None:
                    latest = found.tools.get(place, referred.at)
                    found.tools[place] = max(latest, referred.at)
    return gathered


class _Told:
    """What leaves the room."""

    def __init__(self, redactor: Redactor, now: datetime) -> None:
        self._text = redactor.text
        self._now = now

    def cluster(self, gathered: _Gathered, tools: Sequence[TroubledTool]) -> AxisCluster:
        members = [
            AxisMember(axis=self._text(each.spelled), **each.tally.shown(self._now).model_dump())
            for each in gathered.members
        ]
        members.sort(key=lambda each: (-each.count, -each.weight, each.axis))
        latest = sorted(gathered.tools, key=lambda place: gathered.tools[place], reverse=True)
        return AxisCluster(
            cluster_id=gathered.cluster.cluster_id,
            name=self._text(gathered.cluster.name),
            members=members[:MAX_MEMBERS],
            tools=[tools[place].name for place in latest[:MAX_CLUSTER_TOOLS]],
            count=sum(each.count for each in members),
            weight=round(sum(each.weight for each in members), 4),
            last_seen=max((each.last_seen for each in members if each.last_seen), default=None),
            first_seen=min(
                (each.first_seen for each in gathered.members if each.first_seen), default=None
            ),
        )

    def co_occurrences(self, book: AxisBook, clusters: AxisClusters) -> list[CoOccurrence]:
        """Pairs of axes, summed over pairs of clusters; within one cluster there is none."""
        summed: dict[tuple[str, str], list[Tally]] = {}
        names: dict[str, str] = {}
        for key, tally in book.pairs.items():
            both = [clusters.cluster_of(axis) for axis in axes_of_pair(key)]
            one, other = sorted(each.cluster_id for each in both)
            if one != other:
                names.update((each.cluster_id, each.name) for each in both)
                summed.setdefault((one, other), []).append(tally)
        found = [
            CoOccurrence(
                cluster_ids=ids,
                names=(self._text(names[ids[0]]), self._text(names[ids[1]])),
                count=sum(each.count for each in tallies),
                weight=round(sum(each.weight_at(self._now) for each in tallies), 4),
                last_seen=max((each.at for each in tallies if each.at), default=None),
            )
            for ids, tallies in summed.items()
        ]
        return sorted(found, key=lambda each: (-each.weight, -each.count, each.cluster_ids))

    def cohesion(self, cohesion: Cohesion) -> Cohesion:
        axes = [
            each.model_copy(
                update={
                    "name": self._text(each.name),
                    "axes": [self._text(axis) for axis in each.axes],
                }
            )
            for each in cohesion.axes
        ]
        message = self._text(cohesion.message)
        return cohesion.model_copy(update={"axes": axes, "message": message})


def _sort_name(tool: TroubledTool) -> tuple[str, str]:
    return (tool.name.server_name or "", tool.name.tool_name)
