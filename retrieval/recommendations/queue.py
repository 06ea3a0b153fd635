"""The queue of a workspace: all recommendations, with what was done about each.

Pure; what it reads was gathered. Two rounds over the tools: who has a cohesion warning is known
only when all were looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from aftercall.models import Recommendation
from mongo.records import ToolKey
from retrieval.boundaries.clusters import AxisClusters
from retrieval.boundaries.cohesion import cohesion_of
from retrieval.fitness.registry import Registry
from retrieval.health.record import KnownHealth
from retrieval.recommendations.identity import TOOL_MATTERS, id_of_tool_matter
from retrieval.recommendations.later import health_since
from retrieval.recommendations.one_tool import by_priority, recommendations_about
from retrieval.recommendations.other_tools import ToolNames
from retrieval.recommendations.reviewing import has_returned
from retrieval.recommendations.rules import RULES, RecommendationRules, rules_of_return
from retrieval.recommendations.splitting import Mixed, mixed_of
from retrieval.recommendations.standing import Standing, merged
from retrieval.recommendations.subject import Subject
from retrieval.recommendations.words import Words


@dataclass(frozen=True)
class Workspace:
    """What recommendations are made from, besides the health of the tools.

    Args:
        registry: all registered tools.
        clusters: of boundary axes.
        standings: what was done about recommendations, by id.
        words: makes what tools and users said fit to be told.
        now: from when age counts.
        rules: what makes a recommendation.
    """

    registry: Registry
    clusters: AxisClusters
    standings: Mapping[str, Standing]
    words: Words
    now: datetime
    rules: RecommendationRules = RULES

    @cached_property
    def names(self) -> ToolNames:
        """All registered tools by their names."""
        return ToolNames(self.registry)

    def subject(
        self, tool: ToolKey, known: KnownHealth, rules: RecommendationRules | None = None
    ) -> Subject:
        """A tool as it is now, by these rules or the workspace's."""
        rules = rules or self.rules
        registered = self.names.registered(tool)
        return Subject(
            tool=tool,
            tool_id=registered.tool.tool_id if registered else None,
            known=known,
            cohesion=cohesion_of(known, self.clusters, now=self.now, rules=rules.cohesion),
            now=self.now,
            words=self.words,
        )


def queue_of(
    workspace: Workspace,
    health: Iterable[tuple[ToolKey, KnownHealth]],
    reviews: Iterable[Recommendation],
) -> list[Recommendation]:
    """All recommendations in every state, greatest priority first; to be shown by `Words.shown`.

    Args:
        workspace: what there is besides.
        health: of the tools with trouble; gone through once, and let go of where there is none.
        reviews: promotions that fail more than the originals did.
    """
    found = [*about_tools(workspace, health), *_about_promotions(workspace, reviews)]
    told = {each.recommendation_id for each in found}
    faded = (
        merged(None, standing, None)
        for each, standing in workspace.standings.items()
        if each not in told
    )
    return by_priority(each for each in (*found, *faded) if each is not None)


def about_tools(
    workspace: Workspace, health: Iterable[tuple[ToolKey, KnownHealth]]
) -> list[Recommendation]:
    """Those about tools, in no order."""
    found: list[Recommendation] = []
    waiting: list[tuple[Subject, Mixed]] = []
    mixed: dict[str, list[Mixed]] = {}
    for tool, known in health:
        subject = workspace.subject(tool, known)
        warned = mixed_of(subject, workspace.names, workspace.rules)
        if warned is None:
            found += _standing_of(workspace, subject, ())
        else:
            waiting.append((subject, warned))
            for namespace in warned.namespaces:
                mixed.setdefault(namespace, []).append(warned)
    for subject, warned in waiting:
        rivals = [each for namespace in warned.namespaces for each in mixed[namespace]]
        found += _standing_of(workspace, subject, rivals)
    return found


def _standing_of(
    workspace: Workspace, subject: Subject, mixed: Sequence[Mixed]
) -> Iterator[Recommendation]:
    """The matters of one tool, each as it stands."""
    suggested = recommendations_about(subject, workspace.names, mixed, rules=workspace.rules)
    current = {each.recommendation_id: each for each in suggested}
    for matter in TOOL_MATTERS:
        matter_id = id_of_tool_matter(matter, subject.tool)
        standing = workspace.standings.get(matter_id)
        returned = None
        if standing is not None and standing.stored.state == "done":
            returned = _returned(workspace, subject, standing, mixed)
        stands = merged(current.get(matter_id), standing, returned)
        if stands is not None:
            yield stands


def _returned(
    workspace: Workspace, subject: Subject, standing: Standing, mixed: Sequence[Mixed]
) -> Recommendation | None:
    """What the evidence later than a change suggests in that matter, by the lower counts.

    What was known then is not later, even of a client whose clock is ahead of ours.
    """
    seen = standing.snapshot.last_seen
    changed_at = standing.stored.changed_at
    since = health_since(
        subject.known,
        changed_at if seen is None else max(changed_at, seen),
        calls_then=standing.snapshot.evidence.calls,
    )
    rules = rules_of_return(workspace.rules)
    later = workspace.subject(subject.tool, since, rules)
    found = recommendations_about(later, workspace.names, mixed, rules=rules)
    wanted = standing.stored.recommendation_id
    return next((each for each in found if each.recommendation_id == wanted), None)


def _about_promotions(
    workspace: Workspace, reviews: Iterable[Recommendation]
) -> Iterator[Recommendation]:
    for each in reviews:
        standing = workspace.standings.get(each.recommendation_id)
        is_back = standing is not None and has_returned(each, standing.snapshot)
        stands = merged(each, standing, each if is_back else None)
        if stands is not None:
            yield stands
