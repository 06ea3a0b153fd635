"""Demotion: past failures of a tool in scenarios like the one asked about lower its score.

Seed 002: 0.7 for each failure whose scenario is more similar than 0.7, of at most 5. Each counts by
a weight that wears off, or a tool that was mended would stay demoted for ever: 1 when fresh, times
(1 - h) for each later success in such like scenarios, and half after every half-life (h and the
half-life are those of `retrieval.fitness.quality`). A referral is a failure here: the tool itself
says that such scenarios are not its job.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from aftercall.models import SimilarFailure
from retrieval.fitness.quality import wear
from retrieval.fitness.trials import Trial, moment_of

LIKE = 0.7
"""Cosine above which two scenarios are alike (seed 002)."""

MAX_FAILURES = 5
"""Failures that count (seed 002)."""

DEMOTION = 0.7
"""What one fresh failure in a like scenario leaves of a score (seed 002)."""


WEAR = 0.2
"""The share of a failure's weight that a later success in a like scenario takes away.

Twice what it heals of the quality, which is of all scenarios: chosen on the development seeds of
`bench/quality/regret.py`, and so that a tool at the floor ranks first again within 30 successes."""


class LikeScenario(NamedTuple):
    """What a version of a tool was used for, and how near that is to the scenario asked about."""

    scenario: str
    similarity: float
    """Cosine, -1 to 1; higher is nearer."""
    trials: tuple[Trial, ...] | list[Trial]
    message: str | None = None
    """The latest error message in it."""


def similar_failures(like: Iterable[LikeScenario], *, now: datetime) -> list[SimilarFailure]:
    """What speaks against a version here: at most 5 failures, the most similar first, then latest.

    Of more than 5, those that weigh most count (of equal weight the most similar, then the latest).
    As long as nothing has worn off, these are the 5 most similar of seed 002; by weight, because
    an old failure that is nearly worn off must not push out a fresh one, which would raise the
    score of a tool for failing.
    """
    alike = [each for each in like if each.similarity > LIKE]
    successes = sorted(trial.at for each in alike for trial in each.trials if trial.is_success)
    end = now.timestamp()
    found = [
        (_weight(trial, successes, end), each.similarity, trial.at, trial.key, each, trial)
        for each in alike
        for trial in each.trials
        if not trial.is_success
    ]
    found.sort(key=lambda item: item[:4], reverse=True)
    heaviest = sorted(found[:MAX_FAILURES], key=lambda item: item[1:4], reverse=True)
    return [
        SimilarFailure(
            scenario=each.scenario,
            similarity=similarity,
            weight=weight,
            at=moment_of(trial),
            severity=trial.severity,
            error_message=each.message,
        )
        for weight, similarity, _, _, each, trial in heaviest
    ]


def demotion_of(failures: Iterable[SimilarFailure]) -> float:
    """What these failures leave of a score: 0.7 to the power of their weights' sum, in (0, 1].

    1.0 without failures, 0.168 for five fresh ones. A further failure never raises it, nor does a
    greater similarity of one; a further success in a like scenario never lowers it.
    """
    return float(DEMOTION ** sum(each.weight for each in failures))


def _weight(trial: Trial, successes: list[float], end: float) -> float:
    """How much a failure still counts, in [0, 1]; `successes` are the times of those like it."""
    later = len(successes) - bisect_right(successes, trial.at)
    return float((1 - WEAR) ** later * wear(end - trial.at))
