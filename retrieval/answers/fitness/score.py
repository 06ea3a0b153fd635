"""The score of a candidate: base x quality x demotion (seed 002), and all that it is made of. Pure.

- base: what the candidate is: promoted, the original, or a semantic match times its similarity.
- quality: how well its version has done lately.
- demotion: what past failures in scenarios like the one asked about leave of the score.

So it is in the mode `seed`. In the mode `fitness` the product is the success to expect here
(`fitness.expected`), less what is left of the base's disadvantage: quality is the better
of the quality above and of what is to be expected, demotion what is to be expected of it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Literal

from aftercall.change_classes import reads_only
from aftercall.models import Factors, RankedTool, RankingMode, Severity, SimilarFailure, ToolSource
from retrieval.answers.fitness.expected import (
    Experience,
    LikeScenario,
    expected_success,
    remaining_weight,
)
from retrieval.knowledge.patterns.clusters import singular_word
from retrieval.knowledge.rows.registry import ToolCandidate
from retrieval.knowledge.rows.statistics import (
    ToolTrials,
    Trial,
    TrialKind,
    merge_trials,
    trial_moment,
)

BASE_EVOLVED = 1.0
"""Of a promoted version (seed 002)."""
BASE_ORIGINAL = 0.9
"""Of the tool that was asked for (seed 002)."""
SEMANTIC_WEIGHT = 0.8
"""Of a semantic match, times its similarity (seed 002)."""
THRESHOLD = 0.2
"""Scores below it are marked. It is what an original keeps with half of its quality and a little
more than two fresh failures in like scenarios, or a flawless semantic match of similarity 0.25."""
HEALING = 0.1
"""h: the share of the debt that a success takes away, and of the quality that a failure takes away.

Of debt 1, 22 successes leave 0.1. An unmarked failure takes as much as a grave mark from a flawless
tool, and never more."""
PENALTIES: dict[Severity, float] = {"low": 0.01, "medium": 0.05, "high": 0.10}
"""What a mark takes by its severity (seed 002)."""
_MANY, _EXTRA_MANY = 5, 0.05
_MORE, _EXTRA_MORE = 10, 0.10
"""Marks from which on a further one takes more (seed 002)."""
LIKE = 0.7
"""Cosine above which two scenarios are alike (seed 002)."""
MAX_FAILURES = 5
"""Failures that count (seed 002)."""
DEMOTION = 0.7
"""What one fresh failure in a like scenario leaves of a score (seed 002)."""
WEAR = 0.2
"""The share of a failure's weight that a later success in a like scenario takes away.

Twice what it heals of the quality, which is of all scenarios, so that in the mode `seed` a tool at
the floor ranks first again within 30 successes."""
BASE_TRIALS = 5.0
"""Trials in like scenarios that halve what a base takes off a score: who was promoted, who was
there first and whose words fit matters while little is known, not against evidence. From 2 to 20
make no difference on the worlds that `bench/quality/regret_world.py` was developed on."""
_DIGITS = 6
"""Of a score: what differs behind them is no reason to choose."""
_SOURCES: dict[ToolSource, int] = {"evolved": 0, "original": 1, "semantic": 2}
_WORD = re.compile(r"[^\W_]+")
_PREFIX = ("not", "for")


def score_candidate(
    candidate: ToolCandidate,
    source: ToolSource,
    *,
    similarity: float | None,
    trials: Sequence[Trial],
    like: Sequence[LikeScenario],
    mode: RankingMode,
    experience: Experience,
    now: datetime,
    may_be_tried: bool = False,
) -> RankedTool:
    """Return a candidate with its score and all that the score is made of.

    `source` is what its base is by; `similarity` that of the scenario and the tool, 0 to 1, None
    when nothing was searched for; `trials` and `like` are of its versions, as the one that asks
    hears them (`heard_trials`). `may_be_tried` states that the caller allows to try this tool out;
    a tool that only reads may be tried without.
    """
    failures = similar_failures(like, now=now)
    factors = Factors(
        base=base_of(source, similarity),
        similarity=similarity,
        quality=quality_of(trials, now=now, start=candidate.start, since=candidate.since),
        failure_demotion=demotion_of(failures),
        similar_failures=failures,
    )
    if mode == "fitness":
        tool = candidate.tool
        factors = by_experience(
            factors, like, trials, experience, now,
            source=source, serves=tool.tool_id in experience.members,
            may_be_tried=may_be_tried or reads_only(tool.name, tool.annotations),
        )  # fmt: skip
    score = score_of(factors)
    return RankedTool(
        tool=candidate.tool,
        score=score,
        source=candidate.source,
        factors=factors,
        below_threshold=score < THRESHOLD,
    )


def by_experience(
    factors: Factors,
    like: Sequence[LikeScenario],
    trials: Sequence[Trial],
    experience: Experience,
    now: datetime,
    *,
    source: ToolSource,
    serves: bool,
    may_be_tried: bool,
) -> Factors:
    """Return the factors of the mode `fitness`, of those of the mode `seed`.

    The base of a tool that `serves` the namespace nears 1 as more is known of its tools in such
    scenarios; one that is only found next to it has to fit. Where nothing is known, both modes give
    the same.
    """
    known = expected_success(like, trials, experience, now=now, source=source)
    here = known.upper_bound if may_be_tried else known.mean
    quality = max(factors.quality, here)
    less = BASE_TRIALS / (BASE_TRIALS + experience.here) if serves else 1.0
    return factors.model_copy(
        update={
            "base": 1 - (1 - factors.base) * less,
            "quality": quality,
            "failure_demotion": here / quality if quality else 1.0,
            "posterior": known,
        }
    )


def trials_of(candidate: ToolCandidate, statistics: ToolTrials | None) -> list[Trial]:
    """Return the latest trials of a candidate's versions, oldest first."""
    known = statistics.versions.items() if statistics else ()
    return merge_trials(
        *(version.trials for name, version in known if candidate.counts_version(name))
    )


def score_of(factors: Factors) -> float:
    """Return the score of a candidate, in [0, 1]; higher is fitter."""
    return factors.base * factors.quality * factors.failure_demotion


def base_of(source: ToolSource, similarity: float | None = None) -> float:
    """Return the base of a candidate, in [0, 1]; similarities below 0 or unknown count as 0."""
    if source == "evolved":
        return BASE_EVOLVED
    if source == "original":
        return BASE_ORIGINAL
    return SEMANTIC_WEIGHT * min(1.0, max(0.0, similarity or 0.0))


def rank_candidates(candidates: Iterable[RankedTool]) -> list[RankedTool]:
    """Return the candidates, fittest first.

    Those equal to six digits go by source (evolved, original, semantic), similarity, id and
    version.
    """
    return sorted(
        candidates,
        key=lambda each: (
            -round(each.score, _DIGITS),
            _SOURCES[each.source],
            -(each.factors.similarity or 0.0),
            each.tool.tool_id,
            each.tool.version or "",
        ),
    )


def quality_of(
    trials: Iterable[Trial], *, now: datetime, start: float = 1.0, since: datetime | None = None
) -> float:
    """Return the quality after these trials, in [0, 1].

    Higher is better. Their order does not matter.

    One fold over the trials in the order of time, with two numbers: the quality q and how many
    marks are still held against the tool, m. Between two trials, and since the last one, what is
    held against the tool (the debt 1 - q, and m) halves every `HALF_LIFE` (14 days). Then, with h =
    `HEALING`:

        a success                   q <- q + h (1 - q)           m <- (1 - h) m
        a referral, a weak success  nothing
        a failure no one marked     q <- q - h q
        a marked failure            q <- q - p - extra(m)        m <- m + 1

    Successes and unmarked failures make an exponentially weighted moving average (Roberts 1959,
    "Control chart tests based on geometric moving averages"). Marks alone, with no time between
    them, give the numbers of seed 002, which only punishes: p is 0.01, 0.05 or 0.10 by severity;
    the 6th mark and later ones take 0.05 more, from the 11th on 0.10 more instead.

    A further success never lowers it and a further failure never raises it; nor does it raise it
    to mark a failure more gravely. In a full set (64 trials next to referrals) a further trial
    pushes out the oldest, so there all this holds up to 0.02.

    `start` is the quality before the first trial: 1.0, or what a promoted version inherited. It
    wears off from `since`, or from the first trial; what trials before it left counts too. Trials
    later than `now` count as of now.
    """
    end = now.timestamp()
    steps: list[tuple[float, TrialKind | Literal["inherits", "ends"]]] = [
        (min(trial.at, end), trial.kind) for trial in sorted(trials)
    ]
    debt, marks = 1.0 - start, 0.0
    if since is not None:
        debt, inherits_at = 0.0, min(since.timestamp(), end)
        place = bisect_left(steps, inherits_at, key=lambda step: step[0])
        steps.insert(place, (inherits_at, "inherits"))
    before = steps[0][0] if steps else end
    for moment, what in [*steps, (end, "ends")]:
        left, before = remaining_weight(moment - before), moment
        debt *= left
        marks *= left
        if what == "success":
            debt *= 1 - HEALING
            marks *= 1 - HEALING
        elif what == "failure":
            debt += HEALING * (1 - debt)
        elif what == "inherits":
            debt = 1 - (1 - debt) * start
        elif what == "low" or what == "medium" or what == "high":  # noqa: PLR1714 - for mypy
            # A further mark takes more; between whole counts it is a straight line.
            many, more = (min(1.0, max(0.0, marks - (bound - 1))) for bound in (_MANY, _MORE))
            extra = _EXTRA_MANY * many + (_EXTRA_MORE - _EXTRA_MANY) * more
            debt = min(1.0, debt + PENALTIES[what] + extra)
            marks += 1
    return min(1.0, max(0.0, 1.0 - debt))


def similar_failures(like: Iterable[LikeScenario], *, now: datetime) -> list[SimilarFailure]:
    """Return what speaks against a version here.

    At most 5 failures, the most similar first, then latest.

    Each counts by a weight that wears off (`failure_weight`), or a tool that was repaired would
    stay demoted for ever. A referral is a failure here: the tool itself states that such scenarios
    are not its job. Among more than 5, those that weigh most count: an old failure that is nearly
    worn off must not push out a fresh one, which would raise the score of a tool for failing.
    """
    alike = [each for each in like if each.similarity > LIKE]
    successes = sorted(trial.at for each in alike for trial in each.trials if trial.is_success)
    end = now.timestamp()
    found = [
        (failure_weight(trial, successes, end), each.similarity, trial.at, trial.key, each, trial)
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
            at=trial_moment(trial),
            severity=trial.severity,
            error_message=each.message,
        )
        for weight, similarity, _, _, each, trial in heaviest
    ]


def failure_weight(failure: Trial, successes: Sequence[float], now: float) -> float:
    """Return how much a failure still counts, in [0, 1].

    1 when fresh, and half after every half-life.

    Each later success in like scenarios takes `WEAR` of it; `successes` are their moments, oldest
    first, in seconds since 1970, as `now` is.
    """
    later = len(successes) - bisect_right(successes, failure.at)
    return float((1 - WEAR) ** later * remaining_weight(now - failure.at))


def demotion_of(failures: Iterable[SimilarFailure]) -> float:
    """Return what these failures leave of a score.

    0.7 to the power of their weights' sum, in (0, 1].
    """
    return float(DEMOTION ** sum(each.weight for each in failures))


def exclusion_reason(
    negative_tags: Iterable[str], requested_tags: Iterable[str], scenario: str
) -> str | None:
    """Why a tool is not offered, in words; None when no negative tag speaks against it (seed 002).

    A tag `not-for-x-y` excludes when `x-y` is requested, or when the scenario states the words `x
    y` one after the other. Case, separators and plain English plurals make no difference. A tag
    that does not begin with `not-for-` is taken for what the tool is not for.
    """
    requested = {_singular_words(tag): tag for tag in requested_tags}
    said = _singular_words(scenario)
    for tag in negative_tags:
        topic = _singular_words(tag)
        if topic[: len(_PREFIX)] == _PREFIX:
            topic = topic[len(_PREFIX) :]
        if not topic:
            continue
        if topic in requested:
            return f"it has the tag {tag!r} and {requested[topic]!r} was asked for"
        starts = range(len(said) - len(topic) + 1)
        if any(said[start : start + len(topic)] == topic for start in starts):
            return f"it has the tag {tag!r} and the scenario says {' '.join(topic)!r}"
    return None


@lru_cache(maxsize=4_096)
def _singular_words(text: str) -> tuple[str, ...]:
    return tuple(singular_word(word) for word in _WORD.findall(text.casefold()))
