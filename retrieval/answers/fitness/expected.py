"""How likely a tool succeeds in a scenario: its trials there and in scenarios like it. Pure.

    mean = (likeness-weighted successes + 3 x rate) / (likeness-weighted trials + 3)

- *likeness*: how probably two scenarios of this cosine ask for the same (`relevance.json`).
- *rate*: how the tool does in general, as if `SHARED_TRIALS` more had gone as the namespace's do; a
  little less in scenarios in which it was not tried, a little more for a promoted version.
- A trial weighs less with age, and a tenth where the tool has changed since.
- *Upper bound*: `OPTIMISM` standard deviations more, for tools that may be tried. The same
  knowledge gives the same answer.

docs/fitness.md and ADR 48 say why.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp, log, sqrt
from typing import NamedTuple

from aftercall.models import Posterior, ToolSource
from retrieval import read_data_file
from retrieval.knowledge.rows.statistics import Trial

HALF_LIFE = timedelta(days=14)
"""In which half of what is held against an idle tool wears off."""
_HALF_LIFE_S = HALF_LIFE.total_seconds()
LEAST_NEARNESS = 0.2
"""Cosine below which a scenario states next to nothing about another (likeness 0.1)."""
OWN_TRIALS = 3.0
"""Trials in like scenarios that the tool's general rate is worth. The more, the sooner a tool that
breaks loses its place everywhere: on the texts of development after 3 failures, 3.5 with 2 trials.
The regret is the same by the mean, and an eighth more by the upper bound."""
SHARED_TRIALS = 4.0
"""Trials in general that the namespace's rate is worth."""
FIRST_TRIALS = 6.0
"""Successes that a namespace starts with."""
MEMORY = 300.0
"""Calls of all candidates in which a trial's weight falls to 1/e."""
CHANGE = 3.0
"""Log-likelihood ratio from which on a tool has changed: `exp(3)` to 1 against one rate for all."""
UNTRIED = 0.85
"""Of its general rate, what a tool is taken to do where others are known and it is not."""
LEAST_SIDE = 2.0
"""Weight of trials on either side of a change: one stray failure is no change."""
BEFORE_CHANGE = 0.1
"""What is left of the weight of what was before a change."""
BARE = 0.3
"""Likeness of a trial without a known scenario."""
OPTIMISM = 0.25
"""Standard deviations of the posterior that the upper bound is above its mean. From 0 to 0.5 make
no difference on the worlds of development; 1 costs a tenth."""
FLOOR = 0.2
"""Expected success below which no tool is tried for the sake of knowing more."""


class LikeScenario(NamedTuple):
    """What a version of a tool was used for, and how near that is to the scenario asked about."""

    scenario: str
    similarity: float
    """Cosine, -1 to 1; higher is nearer."""
    trials: tuple[Trial, ...] | list[Trial]
    message: str | None = None
    """The latest error message in it."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What is known of all candidates of a question together."""

    times: Sequence[float]
    """When their trials were, in seconds since 1970, sorted."""
    rate: float = 1.0
    """The share of these that succeeded, with `FIRST_TRIALS` successes more."""
    here: float = 0.0
    """How many trials there are in scenarios like the one asked about, weighted by likeness."""
    members: frozenset[str] = frozenset()
    """Ids of the tools that serve the namespace asked about."""


def experience_of(
    trials: Iterable[Sequence[Trial]],
    members: Iterable[str] = (),
    like: Iterable[Sequence[LikeScenario]] = (),
) -> Experience:
    """Return the experience of candidates with these trials and like scenarios."""
    known = [each for own in trials for each in own if each.kind != "referral"]
    times = sorted(each.at for each in known)
    rate = (sum(each.value for each in known) + FIRST_TRIALS) / (len(known) + FIRST_TRIALS)
    here = sum(scenario_weight(each.similarity) * len(each.trials) for own in like for each in own)
    return Experience(times, rate, here, frozenset(members))


def scenario_weight(similarity: float) -> float:
    """Return how much a trial in a scenario of that cosine counts here, in (0, 1).

    Never falls with it.
    """
    learned = read_data_file("answers/fitness/relevance.json")["likeness"]
    return 1 / (1 + exp((learned["half"] - similarity) / learned["width"]))


def expected_success(
    like: Iterable[LikeScenario],
    trials: Iterable[Trial],
    experience: Experience,
    *,
    now: datetime,
    source: ToolSource = "original",
) -> Posterior:
    """Return how likely a tool succeeds here. `successes` and `failures` are without the prior.

    A weak success counts half. A referral is a failure in like scenarios, and nothing in general:
    that a tool knows what is not its job shows nothing about what is. `trials` are of the version
    in any scenario, also those in `like`.
    """
    general = [each for each in trials if each.kind != "referral"]
    here = []
    for scenario in like:
        weight = scenario_weight(scenario.similarity)
        here += [(each.at, each.value, weight) for each in scenario.trials]
    here += [(each.at, each.value, BARE) for each in general if each.bare]
    rows = [(each.at, each.value, 1.0) for each in general]
    total, good, changed = _weigh_trials(rows, experience, now)
    # A promotion states that the version is better than what there was, not what became of it.
    promoted = source == "evolved" and not changed
    prior = experience.rate
    if promoted:
        prior = (1 + prior) / 2
    rate = (good + SHARED_TRIALS * prior) / (total + SHARED_TRIALS)
    if not promoted:  # the more is known of such scenarios, the less of it is left
        here_and_first = experience.here + FIRST_TRIALS
        rate *= 1 - (1 - UNTRIED) * experience.here / here_and_first
    total, successes, changed = _weigh_trials(sorted(here), experience, now)
    worth = total + OWN_TRIALS
    mean = min(1.0, (successes + OWN_TRIALS * rate) / worth)
    more = 0.0
    if mean >= FLOOR:
        deviation = sqrt(mean * (1 - mean) / (worth + 1))
        more = OPTIMISM * deviation
    changed_at = None
    if changed:
        changed_at = datetime.fromtimestamp(changed, UTC)
    return Posterior(
        successes=successes,
        failures=max(0.0, total - successes),
        mean=mean,
        upper_bound=min(1.0, mean + more),
        changed_at=changed_at,
    )


_Row = tuple[float, float, float]
"""A trial: when it was, in seconds since 1970, how much of a success, and its weight."""


def _weigh_trials(
    rows: Sequence[_Row], experience: Experience, now: datetime
) -> tuple[float, float, float]:
    """Return the weight of trials, in the order of time, and of it that of successes.

    By age: of the clock, and in calls since then; and by what has changed: also the time from which
    on the tool does as it does now, 0 where it has not changed.
    """
    end, calls = now.timestamp(), len(experience.times)
    weights = []
    for at, _, weight in rows:
        later = calls - bisect_right(experience.times, at)
        weights.append(weight * exp(-later / MEMORY) * remaining_weight(end - at))
    values = [value for _, value, _ in rows]
    place = 0
    differ = bool(values) and min(values) < max(values)
    while differ and (step := _one_change(weights[place:], values[place:])):
        place += step  # to the latest change
    weights[:place] = [BEFORE_CHANGE * weight for weight in weights[:place]]
    return sum(weights), _good_of(weights, values), rows[place][0] if place else 0.0


def _good_of(weights: Iterable[float], values: Iterable[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def _one_change(weights: Sequence[float], values: Sequence[float]) -> int:
    """Return the split whose two rates explain the trials best.

    0 where one rate does nearly as well.

    Better by more than `CHANGE`, with `LEAST_SIDE` on both sides: a generalised likelihood ratio
    (Willsky and Jones 1976).
    """
    total, good = sum(weights), _good_of(weights, values)
    least = _log_likelihood(good, total) + CHANGE
    split, before, good_before = 0, 0.0, 0.0
    for place, (weight, value) in enumerate(zip(weights, values, strict=True), start=1):
        before += weight
        good_before += weight * value
        after = total - before
        if before >= LEAST_SIDE and after >= LEAST_SIDE:
            explained = _log_likelihood(good_before, before)
            explained += _log_likelihood(good - good_before, after)
            if explained > least:
                split, least = place, explained
    return split


def _log_likelihood(good: float, total: float) -> float:
    """Return the log-likelihood of so much success under its own rate."""
    rate = (good + 0.5) / (total + 1)
    return good * log(rate) + (total - good) * log(1 - rate)


def remaining_weight(seconds: float) -> float:
    """Return what is left of an old failure after some time, in (0, 1].

    Time before now takes nothing.
    """
    return float(0.5 ** (max(0.0, seconds) / _HALF_LIFE_S))
