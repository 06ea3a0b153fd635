"""Promotions: the record of the evolved version beside the original's, and the way back. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import erf, exp, lgamma, log, sqrt
from typing import NamedTuple

from aftercall.models import Promotion, PromotionStatus, VersionTrials
from aftercall.versions import same_version
from mongo.records import PromotionEvent, StoredPromotion, ToolKey
from retrieval.fitness.registry import (
    Candidate,
    Registry,
    candidates_of,
    original_of,
    plain_candidate,
)
from retrieval.fitness.score import quality_of, trials_of
from retrieval.fitness.statistics import ToolStatistics

LEAST_TRIALS = 10
"""Trials that either version must have before anything is said of it."""

SURE = 0.95
"""Probability from which on a promotion is reported. It is looked at again and again, so more than
1 in 20 harmless promotions would be reported at some time; a report changes nothing by itself."""

_MAX_TERMS = 1_000
"""Terms of the exact sum; beyond, a normal approximation is off by less than 0.01."""


class Counts(NamedTuple):
    """How often a version's calls succeeded and failed."""

    successes: int
    failures: int

    @property
    def total(self) -> int:
        """All calls."""
        return self.successes + self.failures


def compare(evolved: Counts, original: Counts) -> float:
    """The probability, in [0, 1], that the evolved version's failure rate is the higher one.

    0.5 where nothing is known of either. A further failure of the evolved version never lowers it.
    Exact (to rounding) as long as one of the four counts is below 1,000; beyond that by the normal
    approximation of both Betas, off by less than 0.01.
    """
    # P(X > Y) for X ~ Beta(a, b), Y ~ Beta(c, d); the sum may run over any of the four.
    a, b = evolved.failures + 1, evolved.successes + 1
    c, d = original.failures + 1, original.successes + 1
    smallest = min(a, b, c, d)
    if smallest > _MAX_TERMS:
        return _normal(a, b, c, d)
    if smallest == a:
        found = _sum(a, b, c, d)
    elif smallest == d:
        found = _sum(d, c, b, a)
    elif smallest == c:
        found = 1 - _sum(c, d, a, b)
    else:
        found = 1 - _sum(b, a, d, c)
    return min(1.0, max(0.0, found))


def fails_more(evolved: Counts, original: Counts) -> bool:
    """Whether the evolved version surely fails more: enough trials of both, and `SURE`."""
    if min(evolved.total, original.total) < LEAST_TRIALS:
        return False
    return compare(evolved, original) >= SURE


def _sum(a: int, b: int, c: int, d: int) -> float:
    """P(X > Y) for X ~ Beta(a, b) and Y ~ Beta(c, d), as a sum of `a` terms."""
    least = _log_beta(c, d)
    return sum(
        exp(_log_beta(c + i, b + d) - log(b + i) - _log_beta(1 + i, b) - least) for i in range(a)
    )


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _normal(a: int, b: int, c: int, d: int) -> float:
    spread = sqrt(_variance(a, b) + _variance(c, d))
    return 0.5 * (1 + erf((a / (a + b) - c / (c + d)) / (spread * sqrt(2))))


def _variance(a: int, b: int) -> float:
    return a * b / ((a + b) ** 2 * (a + b + 1))


def counts_of(candidate: Candidate, statistics: ToolStatistics | None) -> Counts:
    """How often a candidate's versions succeeded and failed, as far as it is remembered."""
    known = statistics.versions.items() if statistics else ()
    own = [version for name, version in known if candidate.counts(name)]
    return Counts(sum(each.successes for each in own), sum(each.failures for each in own))


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
