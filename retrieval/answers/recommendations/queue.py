"""The queue of a workspace: all recommendations, with what was done about each. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from aftercall.models import Recommendation
from mongo.contents import StoredRecommendation
from mongo.records import ToolKey
from retrieval.answers.recommendations.evidence import Matter, Quotes, Subject, id_of_matter
from retrieval.answers.recommendations.kinds import repair_of, split_of, tighten_of
from retrieval.knowledge.patterns.clusters import AxisClusters
from retrieval.knowledge.patterns.cohesion import DEFAULT_RULES, CohesionRules, cohesion_of
from retrieval.knowledge.rows.health import Corrected, KnownHealth, Referred
from retrieval.knowledge.rows.registry import Registry

TOOL_MATTERS: tuple[Matter, ...] = ("repair", "tighten_contract", "boundaries")
"""Those of one tool; the other is one of a namespace."""
MIN_LATER = 2
"""Events after a matter was done, from which on it is back if it stands; one may be a stray."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


Reviews = Mapping[str, StoredRecommendation]
"""What was done about recommendations, by their ids."""


@dataclass(frozen=True)
class Workspace:
    """What recommendations are made from, besides the health of the tools."""

    registry: Registry
    clusters: AxisClusters
    reviews: Reviews
    words: Quotes
    now: datetime
    rules: CohesionRules = DEFAULT_RULES

    def make_subject(self, tool: ToolKey, known: KnownHealth) -> Subject:
        """Return a tool as it is now."""
        registered = self.registry.find_named(tool)
        return Subject(
            tool=tool,
            tool_id=registered.tool.tool_id if registered else None,
            known=known,
            cohesion=cohesion_of(known, self.clusters, now=self.now, rules=self.rules),
            now=self.now,
            words=self.words,
        )


def recommendations_about(
    subject: Subject, registry: Registry, *, rules: CohesionRules = DEFAULT_RULES
) -> list[Recommendation]:
    """Return what the evidence suggests about a tool, greatest priority first.

    One of each matter.
    """
    found = (repair_of(subject), tighten_of(subject, rules), split_of(subject, registry, rules))
    return by_priority(each for each in found if each is not None)


def by_priority(recommendations: Iterable[Recommendation]) -> list[Recommendation]:
    """Greatest priority first, then by id, so that the order is always the same."""
    return sorted(recommendations, key=lambda each: (-each.priority, each.recommendation_id))


def snapshot_of(review: StoredRecommendation) -> Recommendation:
    """Return a recommendation as it was when someone touched it."""
    return Recommendation.model_validate_json(review.data)


def merge_review(
    current: Recommendation | None, review: StoredRecommendation | None, *, is_back: bool = False
) -> Recommendation | None:
    """Return one recommendation as it stands; None when there is nothing to show.

    An open one lives and ends with its evidence. One that was taken, done or dismissed stays
    listed, as it was when its evidence has faded. One that was done opens again where it `is_back`;
    one that was dismissed stays so, for a reason was given that more of the same does not answer;
    one that was taken is being worked on.
    """
    if review is None:
        return current
    if current is None and review.state == "open":
        return None
    snapshot = snapshot_of(review)
    base = current or snapshot
    seen = [each for each in (base.first_seen, snapshot.first_seen) if each is not None]
    return base.model_copy(
        update={
            "first_seen": min(seen, default=None),
            "state": "open" if is_back else review.state,
            "state_reason": review.reason,
            "state_changed_at": review.changed_at,
            "state_changed_by": review.changed_by,
            "reopened": is_back,
        }
    )


def queue_of(
    workspace: Workspace,
    health: Iterable[tuple[ToolKey, KnownHealth]],
    reviews: Iterable[Recommendation],
) -> list[Recommendation]:
    """Return all recommendations in every state, greatest priority first.

    To be shown by `Words.shown`.
    """
    found = [*about_tools(workspace, health), *_about_promotions(workspace, reviews)]
    told = {each.recommendation_id for each in found}
    faded = (
        merge_review(None, review) for each, review in workspace.reviews.items() if each not in told
    )
    return by_priority(each for each in (*found, *faded) if each is not None)


def about_tools(
    workspace: Workspace, health: Iterable[tuple[ToolKey, KnownHealth]]
) -> list[Recommendation]:
    """Return those about tools, in no order."""
    return [
        each
        for tool, known in health
        for each in _review_subject(workspace, workspace.make_subject(tool, known))
    ]


def _review_subject(workspace: Workspace, subject: Subject) -> Iterator[Recommendation]:
    suggested = recommendations_about(subject, workspace.registry, rules=workspace.rules)
    current = {each.recommendation_id: each for each in suggested}
    for matter in TOOL_MATTERS:
        matter_id = id_of_matter(matter, *subject.tool)
        stands, review = current.get(matter_id), workspace.reviews.get(matter_id)
        is_back = False
        if stands is not None and review is not None and review.state == "done":
            # What was known then is not later, even of a client whose clock is ahead of ours.
            since = max(review.changed_at, snapshot_of(review).last_seen or _LONG_AGO)
            is_back = sum(at > since for at in _moments_of(subject.known, matter)) >= MIN_LATER
        found = merge_review(stands, review, is_back=is_back)
        if found is not None:
            yield found


def _moments_of(known: KnownHealth, matter: Matter) -> Iterator[datetime]:
    # When what speaks for a matter of a tool happened, as far as it is remembered one by one.
    if matter == "repair":
        yield from (each.at for each in (*known.own_failures, *known.marks))
        return
    kind = "wrong_tool_boundary" if matter == "boundaries" else "low_utility"
    said: list[Referred | Corrected] = [*known.referrals, *known.recent_corrections]
    yield from (each.at for each in said if each.kind == kind)
    if matter == "tighten_contract":
        yield from (each.at for each in known.recent_weak)


def _about_promotions(
    workspace: Workspace, reviews: Iterable[Recommendation]
) -> Iterator[Recommendation]:
    for each in reviews:
        review, is_back = workspace.reviews.get(each.recommendation_id), False
        if review is not None and review.state == "done":
            # It is due again when another version is promoted, or when calls have failed since.
            status, before = each.evidence.promotion, snapshot_of(review).evidence.promotion
            is_back = status is not None and (
                before is None
                or status.evolved_version != before.evolved_version
                or status.evolved.failures - before.evolved.failures >= MIN_LATER
            )
        stands = merge_review(each, review, is_back=is_back)
        if stands is not None:
            yield stands
