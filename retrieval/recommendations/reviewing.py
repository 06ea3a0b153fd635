"""`review_promotion`: a promoted version fails more than the original did."""

from aftercall.models import (
    EvidenceCount,
    PromotionStatus,
    Recommendation,
    RecommendationEvidence,
    VersionTrials,
)
from retrieval.fitness.promotions import SURE, Counts, compare
from retrieval.recommendations.identity import id_of_namespace_matter

MIN_CALLS_SINCE = 5
"""Calls of the promoted version since a matter was done, before it can be back: half of what
`fitness.promoted` asks of a version that was never spoken of."""


def review_of(workspace: str, status: PromotionStatus) -> Recommendation | None:
    """What to tell the builder of the tool; None while the promotion does well enough.

    The priority is how many calls failed beyond what the original's rate would have made of them,
    times the probability. The record of a version does not fade while the version is in force.
    """
    if not status.fails_more:
        return None
    evolved, original = status.evolved, status.original
    calls = evolved.successes + evolved.failures
    rate = original.failures / max(1, original.successes + original.failures)
    return Recommendation(
        recommendation_id=id_of_namespace_matter("review_promotion", workspace, status.namespace),
        kind="review_promotion",
        namespace=status.namespace,
        message=(
            f"version {status.evolved_version} of {status.namespace!r} fails more often than "
            f"{status.original_version} did: {_rate(evolved)} against {_rate(original)}; look at "
            "its failures, evolve it, or roll the promotion back"
        ),
        confidence=status.probability,
        priority=round(max(0.0, evolved.failures - calls * rate) * status.probability, 4),
        evidence=RecommendationEvidence(
            counts=[
                EvidenceCount(
                    what="failures of the promoted version",
                    count=evolved.failures,
                    weight=float(evolved.failures),
                )
            ],
            calls=calls,
            promotion=status,
        ),
        first_seen=status.promoted_at,
    )


def has_returned(now: Recommendation, then: Recommendation) -> bool:
    """Whether a review that was done is due again.

    It is when another version is promoted, or when the calls since then fail more than the
    original's did. Of a promotion only counts are remembered, no moments.
    """
    status, before = now.evidence.promotion, then.evidence.promotion
    if status is None or before is None:
        return status is not None
    if status.evolved_version != before.evolved_version:
        return True
    since = Counts(
        max(0, status.evolved.successes - before.evolved.successes),
        max(0, status.evolved.failures - before.evolved.failures),
    )
    original = Counts(status.original.successes, status.original.failures)
    return since.total >= MIN_CALLS_SINCE and compare(since, original) >= SURE


def _rate(trials: VersionTrials) -> str:
    return f"{trials.failures} of {trials.successes + trials.failures} calls"
