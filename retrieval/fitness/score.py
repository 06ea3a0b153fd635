"""Score: base x quality x demotion (seed 002), and the order of candidates by it."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import sqrt
from random import Random
from typing import NamedTuple

from aftercall.models import (
    Factors,
    Posterior,
    RankedTool,
    RankingMode,
    Severity,
    SimilarFailure,
    ToolSource,
)
from retrieval.fitness.registry import Candidate
from retrieval.fitness.statistics import ToolStatistics, Trial, TrialKind, merged, moment_of

HEALING = 0.1
"""h: the share of the debt that a success takes away, and of the quality that a failure takes away.

Of debt 1, 22 successes leave 0.1. An unmarked failure takes as much as a grave mark from a flawless
tool, and never more."""

HALF_LIFE = timedelta(days=14)
"""In which half of what is held against an idle tool wears off. Chosen on the development seeds of
`bench/quality/regret.py`: in 7 days a tool that is still bad is tried again too often."""

PENALTIES: dict[Severity, float] = {"low": 0.01, "medium": 0.05, "high": 0.10}
"""What a mark takes by its severity (seed 002)."""

_MANY, _EXTRA_MANY = 5, 0.05
_MORE, _EXTRA_MORE = 10, 0.10
"""Marks from which on a further one takes more (seed 002)."""

_HALF_LIFE_SECONDS = HALF_LIFE.total_seconds()


def quality_of(
    trials: Iterable[Trial],
    *,
    now: datetime,
    start: float = 1.0,
    since: datetime | None = None,
) -> float:
    """The quality after these trials, in [0, 1]; higher is better. Their order does not matter.

    A further success never lowers it and a further failure never raises it; nor does it raise it
    to mark a failure more gravely. A mark speaks for itself: a failure that nobody marked takes
    h q, which is more than a low or medium mark takes from a good tool.

    `merged` keeps the latest 64 trials beside referrals. Of a set that is full, a further trial
    pushes out the oldest, so there all this holds up to 0.02.

    Args:
        trials: what became of the version's calls, each once (see `merged`).
        now: to when idleness counts; trials of a later time count as of now.
        start: the quality before the first trial, in [0, 1]: 1.0, or what a promoted version
            inherited.
        since: from when that held; it wears off from then, and what trials before it left counts
            too. None stands for the first trial: a start below 1 wears off from that one, so that
            one still earlier may raise the quality, whatever it was.
    """
    end = now.timestamp()
    held = _Held(1.0 - start) if since is None else _Held()
    inherits_at = None if since is None else min(since.timestamp(), end)
    for trial in sorted(trials):
        at = min(trial.at, end)
        if inherits_at is not None and inherits_at <= at:
            held.inherit(start, inherits_at)
            inherits_at = None
        held.count(trial.kind, at)
    if inherits_at is not None:
        held.inherit(start, inherits_at)
    held.rest_until(end)
    return min(1.0, max(0.0, 1.0 - held.debt))


@dataclass(slots=True)
class _Held:
    """What is held against a tool at a moment."""

    debt: float = 0.0
    marks: float = 0.0
    moment: float | None = None
    """Seconds since 1970; None before anything happened."""

    def rest_until(self, moment: float) -> None:
        if self.moment is not None:
            left = wear(moment - self.moment)
            self.debt *= left
            self.marks *= left

    def inherit(self, quality: float, moment: float) -> None:
        self.rest_until(moment)
        self.moment = moment
        self.debt = 1 - (1 - self.debt) * quality

    def count(self, kind: TrialKind, moment: float) -> None:
        self.rest_until(moment)
        self.moment = moment
        if kind == "success":
            self.debt *= 1 - HEALING
            self.marks *= 1 - HEALING
        elif kind == "referral":
            return
        elif kind == "failure":
            self.debt += HEALING * (1 - self.debt)
        else:
            self.debt = min(1.0, self.debt + PENALTIES[kind] + _extra(self.marks))
            self.marks += 1


def wear(seconds: float) -> float:
    """What is left of an old failure after some time, in (0, 1]; time before now takes nothing."""
    return float(0.5 ** (max(0.0, seconds) / _HALF_LIFE_SECONDS))


def _extra(marks: float) -> float:
    """What a further mark takes beside its severity, when so many are held already.

    A worn count is no whole number: between two of them it rises in a straight line, so that no
    rounding makes a jump.
    """
    many = _EXTRA_MANY * _between(marks - (_MANY - 1))
    return many + (_EXTRA_MORE - _EXTRA_MANY) * _between(marks - (_MORE - 1))


def _between(number: float) -> float:
    return min(1.0, max(0.0, number))


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


PRIOR_TRIALS = 2.0
"""Trials that the prior is worth, as many as in Laplace's rule of succession."""

PRIOR_MEAN = 0.8
"""The success rate of a tool of which nothing is known: most registered tools work, so that a tool
that was never tried is worth a try. Chosen on the development seeds of `bench/quality/regret.py`,
where the mode `lower_bound` with 0.5 hardly ever tries a new tool."""

LEAST_NEARNESS = 0.5
"""Cosine up to which a scenario says nothing about another; from there on its weight rises to 1."""


def posterior_of(
    like: Iterable[LikeScenario], all_trials: Iterable[Trial], *, now: datetime
) -> Posterior:
    """How likely the tool succeeds here. `successes` and `failures` are without the prior.

    A further success never lowers the mean or the lower bound, a further failure never raises
    them, and a greater similarity of a scenario in which the tool only failed does not either.

    Args:
        like: scenarios of the version, with their trials; those that are far count little or not.
        all_trials: of the version, in any scenario; those in `like` may be among them.
        now: from when age counts.
    """
    end = now.timestamp()
    successes = failures = 0.0
    for each in like:
        nearness = max(0.0, each.similarity - LEAST_NEARNESS) / (1 - LEAST_NEARNESS)
        good, bad = _counts(each.trials, end)
        successes += nearness * good
        failures += nearness * bad
    good, bad = _counts((each for each in all_trials if not each.is_referral), end)
    prior = (good + PRIOR_MEAN * PRIOR_TRIALS) / (good + bad + PRIOR_TRIALS)
    right = successes + prior * PRIOR_TRIALS
    total = successes + failures + PRIOR_TRIALS
    mean = right / total
    return Posterior(
        successes=successes,
        failures=failures,
        mean=mean,
        lower_bound=max(0.0, mean - sqrt(mean * (1 - mean) / (total + 1))),
    )


def draw_from(posterior: Posterior, random: Random) -> float:
    """A success rate drawn from the posterior, in [0, 1] (Thompson 1933)."""
    total = posterior.successes + posterior.failures + PRIOR_TRIALS
    return random.betavariate(posterior.mean * total, (1 - posterior.mean) * total)


def _counts(trials: Iterable[Trial], end: float) -> tuple[float, float]:
    """Successes and failures, each weighed by its age."""
    good = bad = 0.0
    for trial in trials:
        weight = wear(end - trial.at)
        if trial.is_success:
            good += weight
        else:
            bad += weight
    return good, bad


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


_WORD = re.compile(r"[^\W_]+")
_PREFIX = ("not", "for")
_SHORTEST = 4
"""Letters from which on a final s is taken for a plural: `gas`, `bus` and `as` are none."""


def exclusion(
    negative_tags: Iterable[str], requested_tags: Iterable[str], scenario: str
) -> str | None:
    """Why a tool is not offered, in words; None when no negative tag speaks against it.

    A tag `not-for-x-y` excludes when `x-y` is requested, or when the scenario says the words `x y`
    one after the other. Case, separators and plain English plurals make no difference. A tag that
    does not begin with `not-for-` is taken for what the tool is not for.
    """
    requested = {_words(tag): tag for tag in requested_tags}
    said = _words(scenario)
    for tag in negative_tags:
        topic = _topic(tag)
        if not topic:
            continue
        if topic in requested:
            return f"it has the tag {tag!r} and {requested[topic]!r} was asked for"
        if _says(said, topic):
            return f"it has the tag {tag!r} and the scenario says {' '.join(topic)!r}"
    return None


def _topic(tag: str) -> tuple[str, ...]:
    words = _words(tag)
    return words[len(_PREFIX) :] if words[: len(_PREFIX)] == _PREFIX else words


def _says(said: tuple[str, ...], topic: tuple[str, ...]) -> bool:
    starts = range(len(said) - len(topic) + 1)
    return any(said[start : start + len(topic)] == topic for start in starts)


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_singular(word) for word in _WORD.findall(text.casefold()))


def _singular(word: str) -> str:
    """A word without the plural of English nouns, as far as its spelling tells."""
    if len(word) < _SHORTEST or word.endswith(("ss", "us", "is")) or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1]


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


def why_excluded(
    candidate: Candidate,
    statistics: ToolStatistics | None,
    tags: Iterable[str],
    scenario: str,
) -> str | None:
    """Why a candidate is not offered, by its own negative tags and those of marks."""
    negative = [*candidate.tool.negative_tags, *(statistics.negative_tags if statistics else ())]
    return exclusion(negative, tags, scenario) if negative else None
