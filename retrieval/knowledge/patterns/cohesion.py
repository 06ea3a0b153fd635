"""Cohesion: how far a tool's boundary failures stay on one axis, and when they do not. Pure.

A boundary failure is a referral of kind `wrong_tool_boundary`, or a user's correction of that kind.
One that names no axis is counted and states nothing about axes, so shares are of those that do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest

from aftercall import models as m
from aftercall.redaction import Redactor
from retrieval.knowledge.beta import Beta
from retrieval.knowledge.patterns.clusters import AxisClusters, KnownCluster
from retrieval.knowledge.rows.health import (
    HALF_LIFE,
    AxisBook,
    AxisSeen,
    KnownHealth,
    Tally,
    axes_of_pair,
)

_JEFFREYS = 0.5
"""Failures that each axis is assumed to have had beforehand (Jeffreys's prior)."""
_MAX_SHARES = 20
"""Clusters shown of one tool, and words shown of one cluster."""
_NAMED = 3
"""Axes that a message names."""
Clean = Callable[[str], str]
"""Masks secrets in a text, and may bound it, such as `Redactor.text`."""
MAX_MEMBERS = 50
"""Wordings shown of one cluster, the most frequent first."""
MAX_CLUSTER_TOOLS = 20
"""Tools shown of one cluster, the latest first."""


@dataclass(frozen=True, slots=True)
class CohesionRules:
    """When boundary failures make a warning (4-rules.md, and `docs/figures/boundaries.md`).

    At least `min_failures` must name an axis, where a correction counts `correction_weight`; the
    second largest cluster must have `min_share` of them, believed with the probability
    `min_confidence` (chosen on the development seeds of `bench/quality/boundaries_cohesion.py`).
    """

    min_failures: int = 5
    min_share: float = 0.2
    half_life: timedelta = HALF_LIFE
    correction_weight: float = 3.0
    min_confidence: float = 0.91


DEFAULT_RULES = CohesionRules()


@dataclass(slots=True)
class _Named:
    name: str
    words: dict[str, None] = field(default_factory=dict)
    count: int = 0
    weight: float = 0.0


@dataclass(slots=True)
class _Gathered:
    cluster: KnownCluster
    members: list[AxisSeen] = field(default_factory=list)
    tools: dict[m.ToolName, datetime] = field(default_factory=dict)
    """When they named it last."""


def cohesion_of(
    known: KnownHealth,
    clusters: AxisClusters,
    *,
    now: datetime,
    rules: CohesionRules = DEFAULT_RULES,
) -> m.Cohesion:
    """Return the cohesion of one tool at this moment.

    The score is Simpson's index (Simpson 1949; Herfindahl's of a market): the sum of squares of
    the clusters' parts of all namings, weighed by age. 1 is one cluster, 1/n is n equal ones.

    The confidence is the probability that the second largest cluster's share is at least
    `min_share`. Each of the k clusters seen is one of k outcomes under Jeffreys's prior for a
    multinomial, so that the share of one is Beta(w + 1/2, W - w + (k - 1)/2), of the weights w of
    the failures that name it and W of all. Scattered strays raise k, and so lower it: without that
    the best of many would be judged as if it were the only one. Anything that is old weighs little,
    so that a warning ends by itself.
    """
    kind, times = "wrong_tool_boundary", rules.correction_weight
    failures = [
        (each.at, each.axes, each.spelled, 1.0) for each in known.referrals if each.kind == kind
    ]
    corrections = (each for each in known.recent_corrections if each.kind == kind)
    # A call counts once, however often its user states so.
    corrected = {each.execution_id: (each.at, each.axes, each.axes, times) for each in corrections}
    failures += corrected.values()
    named: dict[str, _Named] = {}
    weight = counted = total = 0.0
    for at, of_it, spelled, count in failures:
        weighed = count * 0.5 ** max(0.0, (now - at) / rules.half_life)
        total += weighed
        if not of_it:
            continue
        weight += weighed
        counted += count
        ids: set[str] = set()
        for axis, word in zip_longest(of_it, spelled[: len(of_it)]):
            cluster = clusters.cluster_of(axis)
            kept = named.setdefault(cluster.cluster_id, _Named(cluster.name))
            if len(kept.words) < _MAX_SHARES:
                kept.words[word or axis] = None
            if cluster.cluster_id not in ids:
                ids.add(cluster.cluster_id)
                kept.count += 1
                kept.weight += weighed
    largest = sorted(named.items(), key=lambda item: (-item[1].weight, item[0]))
    weights = [each.weight for _, each in largest]
    confidence = _split_confidence(weights, weight, rules.min_share)
    shares = [each / weight if weight else 0.0 for each in weights]
    warning = (
        counted >= rules.min_failures
        and len(shares) > 1
        and shares[1] >= rules.min_share
        and confidence >= rules.min_confidence
    )
    axes = [
        m.AxisShare(
            cluster_id=cluster_id,
            name=each.name,
            axes=list(each.words)[:_MAX_SHARES],
            count=each.count,
            share=min(1.0, round(share, 4)),
        )
        for (cluster_id, each), share in list(zip(largest, shares, strict=True))[:_MAX_SHARES]
    ]
    large = [each for each in axes if each.share >= rules.min_share][:_NAMED]
    wide = [f"{each.name} ({each.share:.0%})" for each in large]
    of_all = sum(weights)
    score = min(1.0, round(sum((each / of_all) ** 2 for each in weights), 4)) if of_all else None
    return m.Cohesion(
        score=score,
        warning=warning,
        confidence=round(confidence, 4),
        failures=len(failures),
        weight=round(total, 4),
        without_evidence=sum(
            each.kind == "wrong_tool_boundary" and not each.evidence for each in known.referrals
        ),
        axes=axes,
        message=(
            f"{len(failures)} boundary failures are about more than one job: "
            f"{', '.join(wide[:-1])} and {wide[-1]}. Consider splitting the tool, or describing "
            "which of these it does not do."
        )
        if warning
        else "",
    )


def _split_confidence(weights: list[float], total: float, min_share: float) -> float:
    if len(weights) < 2 or not 0 < min_share < 1:
        return 0.0
    mine = weights[1] + _JEFFREYS
    others = max(0.0, total - weights[1]) + _JEFFREYS * (len(weights) - 1)
    return 1 - Beta(mine, others).probability_below(min_share)


def boundaries_of(
    book: AxisBook,
    clusters: AxisClusters,
    tools: Sequence[tuple[m.ToolName, KnownHealth]],
    *,
    redactor: Redactor,
    rules: CohesionRules,
    now: datetime,
    limit: int,
) -> m.Boundaries:
    """Return all that is shown of boundaries at this moment."""
    clean = redactor.text
    gathered: dict[str, _Gathered] = {}
    for axis, seen in book.axes.items():
        cluster = clusters.cluster_of(axis)
        gathered.setdefault(cluster.cluster_id, _Gathered(cluster)).members.append(seen)
    for name, known in tools:
        boundaries = (each for each in known.referrals if each.kind == "wrong_tool_boundary")
        for at, axis in ((each.at, axis) for each in boundaries for axis in each.axes):
            if found := gathered.get(clusters.cluster_of(axis).cluster_id):
                found.tools[name] = max(found.tools.get(name, at), at)
    shown = [_make_cluster(each, clean, now) for each in gathered.values()]
    shown.sort(key=lambda each: (-each.weight, -each.count, each.cluster_id))
    cohesions = ((name, cohesion_of(each, clusters, now=now, rules=rules)) for name, each in tools)
    with_any = [each for each in cohesions if each[1].failures]
    with_any.sort(
        key=lambda each: (
            not each[1].warning, -each[1].weight, each[0].server_name or "", each[0].tool_name
        )
    )  # fmt: skip
    return m.Boundaries(
        clusters=shown[:limit],
        co_occurrences=_co_occurrences(book, clusters, clean, now)[:limit],
        tools=[
            m.ToolBoundary(tool=name, cohesion=shown_cohesion(cohesion, clean))
            for name, cohesion in with_any[:limit]
        ],
        clustered_at=clusters.clustered_at,
        unclustered=sum(not clusters.knows_axis(axis) for axis in book.axes),
    )


def _make_cluster(gathered: _Gathered, clean: Clean, now: datetime) -> m.AxisCluster:
    members = [
        m.AxisMember(axis=clean(each.spelled), **each.tally.show_count(now).model_dump())
        for each in gathered.members
    ]
    members.sort(key=lambda each: (-each.count, -each.weight, each.axis))
    latest = sorted(gathered.tools, key=lambda name: gathered.tools[name], reverse=True)
    return m.AxisCluster(
        cluster_id=gathered.cluster.cluster_id,
        name=clean(gathered.cluster.name),
        members=members[:MAX_MEMBERS],
        tools=latest[:MAX_CLUSTER_TOOLS],
        count=sum(each.count for each in members),
        weight=round(sum(each.weight for each in members), 4),
        last_seen=max((each.last_seen for each in members if each.last_seen), default=None),
        first_seen=min(
            (each.first_seen for each in gathered.members if each.first_seen), default=None
        ),
    )


def _co_occurrences(
    book: AxisBook, clusters: AxisClusters, clean: Clean, now: datetime
) -> list[m.CoOccurrence]:
    """Pairs of axes, summed over pairs of clusters; pairs within one cluster are left out."""
    summed: dict[tuple[str, str], list[Tally]] = {}
    names: dict[str, str] = {}
    for key, tally in book.pairs.items():
        both = [clusters.cluster_of(axis) for axis in axes_of_pair(key)]
        one, other = sorted(each.cluster_id for each in both)
        if one != other:
            names.update((each.cluster_id, each.name) for each in both)
            summed.setdefault((one, other), []).append(tally)
    found = []
    for ids, tallies in summed.items():
        one, other = ids
        weight = sum(each.weight_at(now) for each in tallies)
        together = m.CoOccurrence(
            cluster_ids=ids,
            names=(clean(names[one]), clean(names[other])),
            count=sum(each.count for each in tallies),
            weight=round(weight, 4),
            last_seen=max((each.at for each in tallies if each.at), default=None),
        )
        found.append(together)
    return sorted(found, key=lambda each: (-each.weight, -each.count, each.cluster_ids))


def shown_cohesion(cohesion: m.Cohesion, clean: Clean) -> m.Cohesion:
    """Return a cohesion for an answer: what tools and users stated is passed through `clean`."""
    axes = [
        each.model_copy(update={"name": clean(each.name), "axes": [*map(clean, each.axes)]})
        for each in cohesion.axes
    ]
    return cohesion.model_copy(update={"axes": axes, "message": clean(cohesion.message)})
