"""Cohesion: how far a tool's boundary failures stay on one axis, and when they do not. Pure.

A boundary failure is a referral of kind `wrong_tool_boundary`, or a user's correction of that kind.
One that names no axis is counted and says nothing about axes, so shares are of those that do.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aftercall.models import AxisShare, Cohesion
from retrieval.boundaries.clusters import AxisClusters
from retrieval.credibility import beta_below
from retrieval.health.record import HALF_LIFE, KnownHealth

_JEFFREYS = 0.5
"""Failures that each axis is assumed to have had beforehand (Jeffreys's prior)."""

_MAX_SHARES = 20
"""Clusters told of one tool, and words told of one cluster."""

_NAMED = 3
"""Axes that a message names."""


@dataclass(frozen=True, slots=True)
class CohesionRules:
    """When boundary failures make a warning (4-rules.md, and `docs/figures/boundaries.md`).

    Args:
        min_failures: boundary failures that name an axis, at least; a correction counts
            `correction_weight` of them.
        min_share: share of these, 0 to 1, that the second largest cluster must have.
        half_life: in which a failure's weight halves.
        correction_weight: failures that a user's correction counts as.
        min_confidence: probability, 0 to 1, from which on a share is believed. Chosen on the
            development seeds of `bench/quality/boundaries_cohesion.py`.
    """

    min_failures: int = 5
    min_share: float = 0.2
    half_life: timedelta = HALF_LIFE
    correction_weight: float = 3.0
    min_confidence: float = 0.91


DEFAULT_RULES = CohesionRules()


@dataclass(slots=True)
class _Named:
    """One cluster, as far as failures name it."""

    name: str
    words: dict[str, None] = field(default_factory=dict)
    count: int = 0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class _Failure:
    at: datetime
    axes: list[str]
    spelled: list[str]
    has_evidence: bool
    times: float


def cohesion_of(
    known: KnownHealth,
    clusters: AxisClusters,
    *,
    now: datetime,
    rules: CohesionRules = DEFAULT_RULES,
) -> Cohesion:
    """The cohesion of one tool at this moment.

    The score is Simpson's index (Simpson 1949; Herfindahl's of a market): the sum of squares of
    the clusters' parts of all namings, weighed by age. 1 is one cluster, 1/n is n equal ones.

    The confidence is the probability that the second largest cluster's share is at least
    `min_share`. Each of the k clusters seen is one of k outcomes under Jeffreys's prior for a
    multinomial, so that the share of one is Beta(w + 1/2, W - w + (k - 1)/2), of the weights w of
    the failures that name it and W of all. Scattered strays raise k, and so lower it: without that
    the best of many would be judged as if it were the only one. What is old weighs little, so that
    a warning ends by itself.

    Args:
        known: what is counted of the tool.
        clusters: of its workspace; an axis that is in none stands for itself.
        now: from when age counts.
        rules: what makes a warning.
    """
    failures = list(_boundary_failures(known, rules))
    named: dict[str, _Named] = {}
    weight = counted = total = 0.0
    for each in failures:
        age = max(0.0, (now - each.at) / rules.half_life)
        weighed = each.times * 0.5**age
        total += weighed
        if not each.axes:
            continue
        weight += weighed
        counted += each.times
        for cluster_id in _note_words(each, clusters, named):
            named[cluster_id].count += 1
            named[cluster_id].weight += weighed
    largest = sorted(named.items(), key=lambda item: (-item[1].weight, item[0]))
    confidence = _confidence([each.weight for _, each in largest], weight, rules.min_share)
    shares = [(each.weight / weight if weight else 0.0) for _, each in largest]
    warning = (
        counted >= rules.min_failures
        and len(shares) > 1
        and shares[1] >= rules.min_share
        and confidence >= rules.min_confidence
    )
    axes = [
        AxisShare(
            cluster_id=cluster_id,
            name=each.name,
            axes=list(each.words)[:_MAX_SHARES],
            count=each.count,
            share=min(1.0, round(share, 4)),
        )
        for (cluster_id, each), share in list(zip(largest, shares, strict=True))[:_MAX_SHARES]
    ]
    return Cohesion(
        score=_simpson([each.weight for _, each in largest]),
        warning=warning,
        confidence=round(confidence, 4),
        failures=len(failures),
        weight=round(total, 4),
        without_evidence=sum(not each.has_evidence for each in failures),
        axes=axes,
        message=_message(axes, len(failures), rules) if warning else "",
    )


def _boundary_failures(known: KnownHealth, rules: CohesionRules) -> Iterable[_Failure]:
    for referred in known.referrals:
        if referred.kind == "wrong_tool_boundary":
            yield _Failure(
                at=referred.at,
                axes=referred.axes,
                spelled=referred.spelled,
                has_evidence=bool(referred.evidence),
                times=1.0,
            )
    corrected = {
        said.execution_id: said
        for said in known.recent_corrections
        if said.kind == "wrong_tool_boundary"
    }
    for said in corrected.values():  # a call counts once, however often its user says so
        yield _Failure(
            at=said.at,
            axes=said.axes,
            spelled=said.axes,
            has_evidence=True,  # a user's word is some
            times=rules.correction_weight,
        )


def _note_words(
    failure: _Failure, clusters: AxisClusters, named: dict[str, _Named]
) -> dict[str, None]:
    """Keep the words of a failure; returns the clusters it names, each once."""
    found: dict[str, None] = {}
    for place, axis in enumerate(failure.axes):
        cluster = clusters.cluster_of(axis)
        kept = named.setdefault(cluster.cluster_id, _Named(cluster.name))
        word = failure.spelled[place] if place < len(failure.spelled) else axis
        if len(kept.words) < _MAX_SHARES:
            kept.words[word] = None
        found[cluster.cluster_id] = None
    return found


def _confidence(weights: list[float], total: float, min_share: float) -> float:
    """That the second of the weights, largest first, is of a share of at least `min_share`."""
    if len(weights) < 2 or not 0 < min_share < 1:
        return 0.0
    mine = weights[1] + _JEFFREYS
    others = max(0.0, total - weights[1]) + _JEFFREYS * (len(weights) - 1)
    return 1 - beta_below(min_share, mine, others)


def _simpson(weights: list[float]) -> float | None:
    """The sum of squares of the parts; None without any weight."""
    total = sum(weights)
    if not total:
        return None
    return min(1.0, round(sum((each / total) ** 2 for each in weights), 4))


def _message(axes: list[AxisShare], failures: int, rules: CohesionRules) -> str:
    wide = [each for each in axes if each.share >= rules.min_share][:_NAMED]
    parts = [f"{each.name} ({each.share:.0%})" for each in wide]
    return (
        f"{failures} boundary failures are about more than one job: "
        f"{', '.join(parts[:-1])} and {parts[-1]}. Consider splitting the tool, or describing "
        "which of these it does not do."
    )
