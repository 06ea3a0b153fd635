"""The queue of a workspace: all recommendations, with what was done about each.

Pure; what it reads was gathered.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby

from aftercall.models import ErrorCategory, EvidenceCount, Recommendation
from mongo.contents import StoredRecommendation
from mongo.records import ToolKey
from retrieval.boundaries.clusters import AxisClusters
from retrieval.boundaries.cohesion import cohesion_of
from retrieval.fitness.registry import Registry
from retrieval.health.record import KnownHealth, Tally
from retrieval.recommendations.evidence import (
    RULES,
    TOOL_MATTERS,
    Quotes,
    RecommendationRules,
    Subject,
    id_of_tool_matter,
    rules_of_return,
)
from retrieval.recommendations.kinds import (
    ToolNames,
    has_returned,
    repair_of,
    split_of,
    tighten_of,
)


@dataclass(frozen=True)
class Reviewed:
    """A recommendation that somebody touched."""

    stored: StoredRecommendation

    @cached_property
    def snapshot(self) -> Recommendation:
        """The recommendation as it was then; read when it is needed."""
        return Recommendation.model_validate_json(self.stored.data)


@dataclass(frozen=True)
class Workspace:
    """What recommendations are made from, besides the health of the tools."""

    registry: Registry
    clusters: AxisClusters
    reviews: Mapping[str, Reviewed]
    words: Quotes
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


def health_since(known: KnownHealth, moment: datetime, *, calls_then: int) -> KnownHealth:
    """A copy with the evidence that is later than a moment, as far as it is remembered.

    Failures of the implementation, referrals, weak successes and corrections are kept one by one
    with their times. Calls are not, so the others since then are taken for successes of the time of
    the latest one.
    """
    own = [each for each in known.own_failures if each.at > moment]
    referrals = [each for each in known.referrals if each.at > moment]
    weak = [each for each in known.recent_weak if each.at > moment]
    corrections = [each for each in known.recent_corrections if each.at > moment]
    failed: list[tuple[ErrorCategory, datetime]] = [(each.category, each.at) for each in own]
    failed += [(each.kind, each.at) for each in referrals]
    calls = known.successes.count + known.failures.count - calls_then
    return KnownHealth(
        successes=_all_at(max(len(weak), calls - len(failed)), known.successes.at),
        failures=Tally.of(at for _, at in failed),
        categories=_by_category(failed),
        referrals=referrals,
        weak=Tally.of(each.at for each in weak),
        recent_weak=weak,
        corrections=Tally.of(each.at for each in corrections),
        recent_corrections=corrections,
        own_failures=own,
        marks=[each for each in known.marks if each.at > moment],
    )


def _by_category(
    failed: Iterable[tuple[ErrorCategory, datetime]],
) -> dict[ErrorCategory, Tally]:
    return {
        category: Tally.of(at for _, at in each)
        for category, each in groupby(sorted(failed), key=lambda one: one[0])
    }


def _all_at(count: int, at: datetime | None) -> Tally:
    return Tally() if at is None else Tally(count=count, weight=float(count), at=at)


def recommendations_about(
    subject: Subject,
    names: ToolNames,
    *,
    rules: RecommendationRules = RULES,
) -> list[Recommendation]:
    """What the evidence suggests about a tool, greatest priority first; one of each matter."""
    found = (
        repair_of(subject, rules),
        tighten_of(subject, rules),
        split_of(subject, names, rules),
    )
    return by_priority(each for each in found if each is not None)


def by_priority(recommendations: Iterable[Recommendation]) -> list[Recommendation]:
    """Greatest priority first, then by id, so that the order is always the same."""
    return sorted(recommendations, key=lambda each: (-each.priority, each.recommendation_id))


def reviews_of(stored: Iterable[StoredRecommendation]) -> dict[str, Reviewed]:
    """All that were touched, by id."""
    return {each.recommendation_id: Reviewed(each) for each in stored}


def merged(
    current: Recommendation | None, review: Reviewed | None, returned: Recommendation | None
) -> Recommendation | None:
    """One recommendation as it stands; None when there is nothing to tell.

    An open one lives and ends with its evidence. One that was taken, done or dismissed stays
    listed, as it was when its evidence has faded. One that was done opens again while evidence of
    later speaks for it; one that was dismissed stays so, for a reason was given that more of the
    same does not answer; one that was taken is being worked on.
    """
    if review is None:
        return current
    stored, snapshot = review.stored, review.snapshot
    is_back = stored.state == "done" and returned is not None
    base = current or (returned if is_back else None)
    if base is None:
        if stored.state == "open":
            return None
        base = snapshot
    evidence = base.evidence
    if is_back and returned is not None:
        counts = [*evidence.counts, *_since(returned)]
        evidence = evidence.model_copy(update={"counts": counts})
    seen = [each for each in (base.first_seen, snapshot.first_seen) if each is not None]
    return base.model_copy(
        update={
            "evidence": evidence,
            "first_seen": min(seen, default=None),
            "state": "open" if is_back else stored.state,
            "state_reason": stored.reason,
            "state_changed_at": stored.changed_at,
            "state_changed_by": stored.changed_by,
            "reopened": is_back,
        }
    )


def _since(returned: Recommendation) -> list[EvidenceCount]:
    return [
        each.model_copy(update={"what": f"{each.what}, since it was done"})
        for each in returned.evidence.counts
    ]


def queue_of(
    workspace: Workspace,
    health: Iterable[tuple[ToolKey, KnownHealth]],
    reviews: Iterable[Recommendation],
) -> list[Recommendation]:
    """All recommendations in every state, greatest priority first; to be shown by `Words.shown`."""
    found = [*about_tools(workspace, health), *_about_promotions(workspace, reviews)]
    told = {each.recommendation_id for each in found}
    faded = (
        merged(None, review, None) for each, review in workspace.reviews.items() if each not in told
    )
    return by_priority(each for each in (*found, *faded) if each is not None)


def about_tools(
    workspace: Workspace, health: Iterable[tuple[ToolKey, KnownHealth]]
) -> list[Recommendation]:
    """Those about tools, in no order."""
    return [
        each
        for tool, known in health
        for each in _reviewed(workspace, workspace.subject(tool, known))
    ]


def _reviewed(workspace: Workspace, subject: Subject) -> Iterator[Recommendation]:
    suggested = recommendations_about(subject, workspace.names, rules=workspace.rules)
    current = {each.recommendation_id: each for each in suggested}
    for matter in TOOL_MATTERS:
        matter_id = id_of_tool_matter(matter, subject.tool)
        review = workspace.reviews.get(matter_id)
        returned = None
        if review is not None and review.stored.state == "done":
            returned = _returned(workspace, subject, review)
        stands = merged(current.get(matter_id), review, returned)
        if stands is not None:
            yield stands


def _returned(workspace: Workspace, subject: Subject, review: Reviewed) -> Recommendation | None:
    """What the evidence later than a change suggests in that matter, by the lower counts.

    What was known then is not later, even of a client whose clock is ahead of ours.
    """
    seen = review.snapshot.last_seen
    changed_at = review.stored.changed_at
    since = health_since(
        subject.known,
        changed_at if seen is None else max(changed_at, seen),
        calls_then=review.snapshot.evidence.calls,
    )
    rules = rules_of_return(workspace.rules)
    later = workspace.subject(subject.tool, since, rules)
    found = recommendations_about(later, workspace.names, rules=rules)
    wanted = review.stored.recommendation_id
    return next((each for each in found if each.recommendation_id == wanted), None)


def _about_promotions(
    workspace: Workspace, reviews: Iterable[Recommendation]
) -> Iterator[Recommendation]:
    for each in reviews:
        review = workspace.reviews.get(each.recommendation_id)
        is_back = review is not None and has_returned(each, review.snapshot)
        stands = merged(each, review, each if is_back else None)
        if stands is not None:
            yield stands
