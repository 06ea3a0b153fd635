"""Posterior: the success rate of a tool in scenarios like the one asked about, as a Beta.

Every trial in a like scenario counts by nearness and age, as in discounted Thompson sampling (Raj
and Kalyani 2017), which forgets so that a tool may change. The prior is worth `PRIOR_TRIALS`
trials; its mean is how the tool fares in general, so that a scenario never seen is judged by the
others, and weakly. A referral counts as a failure in like scenarios, and not in general: that a
tool knows what is not its job says nothing about what is.
"""

from collections.abc import Iterable
from datetime import datetime
from math import sqrt
from random import Random

from aftercall.models import Posterior
from retrieval.fitness.demotion import LikeScenario
from retrieval.fitness.quality import wear
from retrieval.fitness.trials import Trial

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
