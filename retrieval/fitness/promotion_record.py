"""How promotions stand: the record of the evolved version beside the original's, and the way back.

Pure; what it reads was gathered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from aftercall.models import Promotion, PromotionStatus, VersionTrials
from aftercall.versions import same_version
from mongo.records import PromotionEvent, StoredPromotion, ToolKey
from retrieval.fitness.judging import counts_of, trials_of
from retrieval.fitness.lineage import Candidate, candidates_of, original_of, plain_candidate
from retrieval.fitness.promoted import compare, fails_more
from retrieval.fitness.quality import quality_of
from retrieval.fitness.registry import Registry
from retrieval.fitness.statistics import ToolStatistics

Statistics = Mapping[ToolKey, ToolStatistics]


@dataclass(frozen=True, slots=True)
class Pair:
    """A promoted version, and what it stands in for."""

    evolved: Candidate
    original: Candidate

    @property
    def keys(self) -> tuple[ToolKey, ToolKey]:
        """The tools as executions name them."""
        return (self.evolved.key, self.original.key)


def pair_of(registry: Registry, namespace: str) -> Pair | None:
    """Who is promoted in a namespace, and in whose place; None where nobody or no tool is.

    Nobody is, too, where the promotion names no file and its tool is not registered (any more).
    """
    stored, original = registry.promotions.get(namespace), original_of(registry, namespace)
    if stored is None or original is None:
        return None
    evolved = candidates_of(registry, namespace)[0]
    if evolved.source != "evolved":
        return None
    replaced = plain_candidate(registry, original, "original")
    return Pair(evolved, _in_version(registry, replaced, stored.promotion.original_version))


def status_of(
    stored: StoredPromotion, pair: Pair | None, statistics: Statistics, *, now: datetime
) -> PromotionStatus:
    """A promotion as it stands. Without a registered tool nothing is known of its calls."""
    promotion = stored.promotion
    fields = {name: getattr(promotion, name) for name in Promotion.model_fields}
    if pair is None:
        evolved = VersionTrials(
            version=promotion.evolved_version, successes=0, failures=0,
            quality=stored.inherited_quality,
        )  # fmt: skip
        original = VersionTrials(
            version=promotion.original_version, successes=0, failures=0,
            quality=stored.inherited_quality,
        )  # fmt: skip
        counts = None
    else:
        evolved = _trials(pair.evolved, promotion.evolved_version, statistics, now)
        original = _trials(pair.original, promotion.original_version, statistics, now)
        counts = [
            counts_of(each, statistics.get(each.key)) for each in (pair.evolved, pair.original)
        ]
    return PromotionStatus(
        **fields,
        namespace=stored.namespace,
        inherited_quality=stored.inherited_quality,
        evolved=evolved,
        original=original,
        fails_more=fails_more(*counts) if counts else False,
        probability=compare(*counts) if counts else 0.5,
    )


def inherited_quality(
    stored: StoredPromotion,
    pair: Pair | None,
    held: StoredPromotion | None,
    held_pair: Pair | None,
    statistics: Statistics,
    *,
    now: datetime,
) -> float:
    """The quality, now, of the version that is replaced (seed 002: the original's is inherited).

    Args:
        stored: the new promotion.
        pair: who is promoted by it.
        held: what is promoted until now, if anything.
        held_pair: who is promoted by that.
        statistics: of the tools of both pairs.
        now: from when age counts.
    """
    if held is not None:
        version = held.promotion.evolved_version
        if same_version(version, stored.promotion.evolved_version):
            return held.inherited_quality  # the same version, told of anew
        if same_version(version, stored.promotion.original_version):
            return status_of(held, held_pair, statistics, now=now).evolved.quality
    return status_of(stored, pair, statistics, now=now).original.quality


def before(
    history: Sequence[PromotionEvent], *, is_whole: bool
) -> tuple[bool, StoredPromotion | None]:
    """What held before the latest change that is not undone yet.

    A rollback takes the latest change away, so each goes back one step further.

    Args:
        history: the latest changes of one namespace, newest first.
        is_whole: whether these are all. Before the first of all changes the original served; what
            held before some later one is not known.

    Returns:
        Whether it is known what to go back to, and what that is: None is the original.
    """
    held: list[StoredPromotion | None] = []
    for event in reversed(history):
        if event.action != "rolled_back":
            held.append(event.promoted)
        elif held:
            held.pop()
    if len(held) > 1:
        return True, held[-2]
    return is_whole and bool(held), None


def _in_version(registry: Registry, original: Candidate, version: str) -> Candidate:
    """The original in the version that was replaced, where that is not the registered one."""
    registered = original.tool.version
    if registered is None or same_version(registered, version):
        return replace(original, versions=tuple(dict.fromkeys((*original.versions, version))))
    for each in registry.descendants(original.tool.tool_id):
        if each.tool.version is not None and same_version(each.tool.version, version):
            return plain_candidate(registry, each, "original")
    return replace(original, versions=(version,))


def _trials(
    candidate: Candidate, version: str, statistics: Statistics, now: datetime
) -> VersionTrials:
    known = statistics.get(candidate.key)
    counts = counts_of(candidate, known)
    return VersionTrials(
        version=version,
        successes=counts.successes,
        failures=counts.failures,
        quality=quality_of(
            trials_of(candidate, known), now=now, start=candidate.start, since=candidate.since
        ),
    )
