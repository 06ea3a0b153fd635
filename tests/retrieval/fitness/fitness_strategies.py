"""Strategies for trials and like scenarios; times lie within 60 days of `NOW`."""

from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import strategies as st

from retrieval.answers.fitness.expected import LikeScenario
from retrieval.knowledge.rows.statistics import MAX_TRIALS, Trial, TrialKind, trial_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EARLIEST = NOW - timedelta(days=60)

kinds = st.sampled_from(get_args(TrialKind))
counted_kinds = kinds.filter(lambda kind: kind != "referral")
"""Those that a full set of trials is full of: referrals are kept beside them."""
bad_kinds = st.sampled_from(["failure", "low", "medium", "high"])
# One draw each: `st.datetimes` takes seven, which makes large examples slow to draw and to shrink.
moments = st.integers(0, (NOW - EARLIEST) // timedelta(seconds=1)).map(
    lambda seconds: EARLIEST + timedelta(seconds=seconds)
)
similarities = st.floats(-1, 1)


def run_of(*kinds_in_order: TrialKind, step: timedelta = timedelta(0)) -> list[Trial]:
    """Trials of these kinds one after the other, the last of them at `NOW`."""
    last = len(kinds_in_order) - 1
    return [
        Trial((NOW - step * (last - place)).timestamp(), f"{place:012d}", kind)
        for place, kind in enumerate(kinds_in_order)
    ]


@st.composite
def trials(draw: st.DrawFn, most: int = 30) -> list[Trial]:
    """Trials of distinct calls, in any order; some share a time."""
    drawn = draw(st.lists(st.tuples(moments, kinds), max_size=min(most, MAX_TRIALS - 1)))
    return [trial_of(at, f"call {place}", kind) for place, (at, kind) in enumerate(drawn)]


@st.composite
def like_scenarios(draw: st.DrawFn) -> list[LikeScenario]:
    """What a tool was used for; calls are distinct over all scenarios."""
    found = []
    for place in range(draw(st.integers(0, 5))):
        known = draw(trials(most=8))
        own = [each._replace(key=f"{place}-{each.key[:10]}") for each in known]
        found.append(LikeScenario(f"scenario {place}", draw(similarities), own))
    return found
