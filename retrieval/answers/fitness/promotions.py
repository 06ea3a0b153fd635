"""Promotions: the record of the evolved version next to the original's, and the way back. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from aftercall.models import Promotion, PromotionStatus, VersionTrials
from aftercall.models.tools import same_version
from mongo.contents import PromotionEvent, StoredPromotion
from mongo.records import ToolKey
from retrieval.answers.fitness.score import quality_of, trials_of
from retrieval.knowledge.beta import Beta
from retrieval.knowledge.rows.registry import (
    Registry,
    ToolCandidate,
    candidates_of,
    original_of,
    plain_candidate,
)
from retrieval.knowledge.rows.statistics import ToolTrials

LEAST_TRIALS = 10
"""Trials that either version must have before anything is stated of it."""
SURE = 0.95
"""Probability from which on a promotion is reported. It is looked at again and again, so more than
1 in 20 harmless promotions would be reported at some time; a report changes nothing by itself."""
Statistics = Mapping[ToolKey, ToolTrials]


class Counts(NamedTuple):
    """How often a version's calls succeeded and failed."""

    successes: int
    failures: int


def compare_failures(evolved: Counts, original: Counts) -> float:
    """Return the probability, in [0, 1], that the evolved version's failure rate is the higher one.

    0.5 where nothing is known of either. A further failure of the evolved version never lowers it.
    With a uniform prior each failure rate is a Beta(failures + 1, successes + 1).
    """
    usual = Beta(original.failures + 1, original.successes + 1)
    return Beta(evolved.failures + 1, evolved.successes + 1).probability_above(usual)


def fails_more(evolved: Counts, original: Counts) -> bool:
    """Return whether the evolved version surely fails more: enough trials of both, and `SURE`."""
    return (
        min(sum(evolved), sum(original)) >= LEAST_TRIALS
        and compare_failures(evolved, original) >= SURE
    )


class Pair(NamedTuple):
    """A promoted version, and what it stands in for."""

    evolved: ToolCandidate
    original: ToolCandidate

    @property
    def keys(self) -> tuple[ToolKey, ToolKey]:
        """Tools as executions name them."""
        return (self.evolved.key, self.original.key)


def pair_of(registry: Registry, namespace: str) -> Pair | None:
    """Return the promoted version of a namespace and its original; None without either.

    No one is, too, where the promotion names no file and its tool is not registered (any more).
    """
    stored, original = registry.promotions.get(namespace), original_of(registry, namespace)
    if stored is None or original is None:
        return None
    evolved = candidates_of(registry, namespace)[0]
    if evolved.source != "evolved":
        return None
    replaced = plain_candidate(registry, original, "original")
    return Pair(evolved, _in_version(registry, replaced, stored.promotion.original_version))


def _in_version(registry: Registry, original: ToolCandidate, version: str) -> ToolCandidate:
    """Return the original in the version that was replaced, where that is another one."""
    registered = original.tool.version
    if registered is None or same_version(registered, version):
        return replace(original, versions=tuple(dict.fromkeys((*original.versions, version))))
    for each in registry.list_descendants(original.tool.tool_id):
        if each.tool.version is not None and same_version(each.tool.version, version):
            return plain_candidate(registry, each, "original")
    return replace(original, versions=(version,))


def status_of(
    stored: StoredPromotion, pair: Pair | None, statistics: Statistics, *, now: datetime
) -> PromotionStatus:
    """Return the state of a promotion. Without a registered tool nothing is known of its calls."""
    promotion = stored.promotion
    counts, quality = [Counts(0, 0)] * 2, [stored.inherited_quality] * 2
    for side, each in enumerate(pair or ()):
        known = statistics.get(each.key, ToolTrials())
        own = [version for name, version in known.versions.items() if each.counts_version(name)]
        counts[side] = Counts(sum(v.successes for v in own), sum(v.failures for v in own))
        quality[side] = quality_of(
            trials_of(each, known), now=now, start=each.start, since=each.since
        )
    evolved, original = counts
    return PromotionStatus(
        **{name: getattr(promotion, name) for name in Promotion.model_fields},
        namespace=stored.namespace,
        inherited_quality=stored.inherited_quality,
        evolved=VersionTrials(
            version=promotion.evolved_version, quality=quality[0], **evolved._asdict()
        ),
        original=VersionTrials(
            version=promotion.original_version, quality=quality[1], **original._asdict()
        ),
        fails_more=fails_more(evolved, original),
        probability=compare_failures(evolved, original),
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
    """Return the quality, now, of the version that is replaced (seed 002.

    The original's is inherited).
    """
    if held is not None:
        version = held.promotion.evolved_version
        if same_version(version, stored.promotion.evolved_version):
            return held.inherited_quality  # the same version, reported again
        if same_version(version, stored.promotion.original_version):
            return status_of(held, held_pair, statistics, now=now).evolved.quality
    return status_of(stored, pair, statistics, now=now).original.quality


def read_former(
    history: Sequence[PromotionEvent], *, is_whole: bool
) -> tuple[bool, StoredPromotion | None]:
    """Return whether the state before the latest standing change is known, and that state.

    A rollback takes the latest change away, so each goes back one step further. `history` is newest
    first; before the first change, where it `is_whole`, the original served, which is `None`.
    """
    held: list[StoredPromotion | None] = []
    for event in reversed(history):
        if event.action != "rolled_back":
            held.append(event.promoted)
        elif held:
            held.pop()
    return (True, held[-2]) if len(held) > 1 else (is_whole and bool(held), None)
