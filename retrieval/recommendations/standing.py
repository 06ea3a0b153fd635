"""What was done about recommendations, and how that stands beside the evidence of today."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from aftercall.models import EvidenceCount, Recommendation
from mongo.records import StoredRecommendation


@dataclass(frozen=True)
class Standing:
    """A recommendation that somebody touched."""

    stored: StoredRecommendation

    @cached_property
    def snapshot(self) -> Recommendation:
        """The recommendation as it was then; read when it is needed."""
        return Recommendation.model_validate_json(self.stored.data)


def standings_of(stored: Iterable[StoredRecommendation]) -> dict[str, Standing]:
    """All that were touched, by id."""
    return {each.recommendation_id: Standing(each) for each in stored}


def merged(
    current: Recommendation | None, standing: Standing | None, returned: Recommendation | None
) -> Recommendation | None:
    """One recommendation as it stands; None when there is nothing to tell.

    An open one lives and ends with its evidence. One that was taken, done or dismissed stays
    listed, as it was when its evidence has faded. One that was done opens again while evidence of
    later speaks for it; one that was dismissed stays so, for whoever dismissed it gave a reason
    that more of the same does not answer; one that was taken is being worked on.

    Args:
        current: what the evidence of today suggests, if anything.
        standing: what was done about it, if anything.
        returned: what evidence later than the change suggests, if anything.
    """
    if standing is None:
        return current
    stored, snapshot = standing.stored, standing.snapshot
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
