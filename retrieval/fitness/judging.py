"""Judging: what is known of a candidate becomes its factors and its score. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from random import Random

from aftercall.models import Factors, RankedTool, RankingMode, ToolSource
from retrieval.fitness.demotion import LikeScenario, demotion_of, similar_failures
from retrieval.fitness.lineage import Candidate
from retrieval.fitness.posterior import posterior_of
from retrieval.fitness.promoted import Counts
from retrieval.fitness.quality import quality_of
from retrieval.fitness.score import base_of, is_below_threshold, score_of
from retrieval.fitness.statistics import ToolStatistics
from retrieval.fitness.tags import exclusion
from retrieval.fitness.trials import Trial, merged


def judge(
    candidate: Candidate,
    source: ToolSource,
    *,
    similarity: float | None,
    statistics: ToolStatistics | None,
    like: Sequence[LikeScenario],
    mode: RankingMode,
    draw: Random,
    now: datetime,
) -> RankedTool:
    """A candidate with its score and all that the score is made of.

    Args:
        candidate: the tool, and which trials are its own.
        source: what its base goes by.
        similarity: of the scenario and the tool, 0 to 1; None when nothing was searched for.
        statistics: how the tool has fared, in all its versions.
        like: past scenarios of this candidate's versions; empty without a search.
        mode: how it is ranked.
        draw: what `thompson` draws with.
        now: from when age counts.
    """
    trials = trials_of(candidate, statistics)
    failures = similar_failures(like, now=now)
    factors = Factors(
        base=base_of(source, similarity),
        similarity=similarity,
        quality=quality_of(trials, now=now, start=candidate.start, since=candidate.since),
        failure_demotion=demotion_of(failures),
        similar_failures=failures,
        posterior=None if mode == "fitness" else posterior_of(like, trials, now=now),
    )
    score = score_of(factors, mode, draw)
    return RankedTool(
        tool=candidate.tool,
        score=score,
        source=candidate.source,
        factors=factors,
        below_threshold=is_below_threshold(score),
    )


def trials_of(candidate: Candidate, statistics: ToolStatistics | None) -> list[Trial]:
    """The latest trials of a candidate's versions, oldest first."""
    known = statistics.versions.items() if statistics else ()
    return merged(*(version.trials for name, version in known if candidate.counts(name)))


def counts_of(candidate: Candidate, statistics: ToolStatistics | None) -> Counts:
    """How often a candidate's versions succeeded and failed, as far as it is remembered."""
    known = statistics.versions.items() if statistics else ()
    own = [version for name, version in known if candidate.counts(name)]
    return Counts(sum(each.successes for each in own), sum(each.failures for each in own))


def why_excluded(
    candidate: Candidate,
    statistics: ToolStatistics | None,
    tags: Iterable[str],
    scenario: str,
) -> str | None:
    """Why a candidate is not offered, by its own negative tags and those of marks."""
    negative = [*candidate.tool.negative_tags, *(statistics.negative_tags if statistics else ())]
    return exclusion(negative, tags, scenario) if negative else None
