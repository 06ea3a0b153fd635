"""Score: base x quality x demotion (seed 002), and the order of candidates by it."""

from collections.abc import Iterable
from random import Random

from aftercall.models import Factors, Posterior, RankedTool, RankingMode, ToolSource
from retrieval.fitness.posterior import draw_from

BASE_EVOLVED = 1.0
"""Of a promoted version (seed 002)."""

BASE_ORIGINAL = 0.9
"""Of the tool that was asked for (seed 002)."""

SEMANTIC_WEIGHT = 0.8
"""Of a semantic match, times its similarity (seed 002)."""

THRESHOLD = 0.2
"""Scores below it are marked. It is what an original keeps with half of its quality and a little
more than two fresh failures in like scenarios, or a flawless semantic match of similarity 0.25."""

_SOURCES: dict[ToolSource, int] = {"evolved": 0, "original": 1, "semantic": 2}


def base_of(source: ToolSource, similarity: float | None = None) -> float:
    """The base of a candidate, in [0, 1]; similarities below 0 or unknown count as 0."""
    if source == "evolved":
        return BASE_EVOLVED
    if source == "original":
        return BASE_ORIGINAL
    return SEMANTIC_WEIGHT * min(1.0, max(0.0, similarity or 0.0))


def score_of(factors: Factors, mode: RankingMode = "fitness", draw: Random | None = None) -> float:
    """The score of a candidate, in [0, 1]; higher is fitter.

    Args:
        factors: what is known of the candidate.
        mode: see `RankingMode`.
        draw: what `thompson` draws with; the other modes use no chance.

    Raises:
        ValueError: the mode needs a posterior or a source of chance that was not given.
    """
    if mode == "fitness":
        return factors.base * factors.quality * factors.failure_demotion
    return factors.base * _rate(factors.posterior, mode, draw)


def _rate(posterior: Posterior | None, mode: RankingMode, draw: Random | None) -> float:
    if posterior is None:
        raise ValueError(f"the mode {mode!r} needs the posterior; call posterior_of first")
    if mode == "lower_bound":
        return posterior.lower_bound
    if draw is None:
        raise ValueError("the mode 'thompson' needs a source of chance; pass a random.Random")
    return draw_from(posterior, draw)


def is_below_threshold(score: float) -> bool:
    """Whether a score is so low that the tool is hardly fit."""
    return score < THRESHOLD


def ranked(candidates: Iterable[RankedTool]) -> list[RankedTool]:
    """The candidates, fittest first.

    Equal scores go by source (evolved, original, semantic), then by similarity, the nearest first:
    of originals that nobody has used yet it is all that tells them apart. Then by tool id and
    version, so that the same knowledge gives the same answer.
    """
    return sorted(
        candidates,
        key=lambda each: (
            -each.score,
            _SOURCES[each.source],
            -(each.factors.similarity or 0.0),
            each.tool.tool_id,
            each.tool.version or "",
        ),
    )
