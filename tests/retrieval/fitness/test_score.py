"""The score is base x quality x demotion, bounded, and ties have one order."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Factors, RankedTool, Tool
from retrieval.fitness.expected import LikeScenario
from retrieval.fitness.score import (
    BASE_EVOLVED,
    BASE_ORIGINAL,
    base_of,
    demotion_of,
    quality_of,
    ranked,
    score_of,
    similar_failures,
)
from retrieval.fitness.statistics import Trial, TrialKind, trial_of
from tests.retrieval.fitness.fitness_strategies import NOW

shares = st.floats(0, 1)


def a_tool(tool_id: str = "t", version: str | None = None) -> Tool:
    """A registered tool."""
    return Tool(tool_id=tool_id, name=tool_id, version=version, updated_at=NOW)


def factors(base: float, quality: float = 1, demotion: float = 1) -> Factors:
    """Without a posterior."""
    return Factors(base=base, quality=quality, failure_demotion=demotion)


def test_the_bases_are_those_of_seed_002() -> None:
    """1.0 evolved, 0.9 original, 0.8 x similarity for the rest, which is never negative."""
    assert (base_of("evolved"), base_of("original")) == (BASE_EVOLVED, BASE_ORIGINAL) == (1.0, 0.9)
    assert base_of("semantic", 0.5) == pytest.approx(0.4)
    assert base_of("semantic", -0.2) == base_of("semantic") == 0
    assert base_of("semantic", 1.0000001) == 0.8


@given(st.randoms(use_true_random=False))
def test_ties_go_by_source_then_similarity_then_id_then_version(random: Random) -> None:
    """In whatever order the candidates come."""
    order = [
        RankedTool(
            tool=a_tool(*name),
            score=score,
            source=source,
            factors=factors(0.5).model_copy(update={"similarity": similarity}),
        )
        for score, source, similarity, name in (
            (0.7, "semantic", 0.1, ("z", None)),
            (0.5, "evolved", 0.1, ("b", "1.1.0")),
            (0.5, "original", 0.9, ("c", "1.0.0")),
            (0.5, "original", 0.2, ("b", "1.0.0")),
            (0.5, "semantic", 0.6, ("d", None)),
            (0.5, "semantic", 0.5, ("a", "1.0.0")),
            (0.5, "semantic", 0.5, ("a", "1.1.0")),
            (0.5, "semantic", None, ("a", "1.0.0")),
            (0.5, "semantic", None, ("c", None)),
        )
    ]  # type: ignore[arg-type]
    assert ranked(random.sample(order, len(order))) == order


def test_a_tool_that_recovers_ranks_first_again_within_thirty_successes() -> None:
    """It broke until its rival came first; then it succeeds whenever somebody calls it.

    Evolved against original; each success in the scenario asked about, a minute apart; the rival
    is flawless, and nothing is forgiven for mere time.
    """
    own: list[Trial] = []
    at = NOW - timedelta(days=1)

    def score(base: float, trials: list[Trial]) -> float:
        failures = similar_failures([LikeScenario("s", 1.0, trials)], now=at)
        return score_of(factors(base, quality_of(trials, now=at), demotion_of(failures)))

    def call(kind: TrialKind) -> None:
        nonlocal at
        at += timedelta(minutes=1)
        own.append(trial_of(at, f"call {len(own)}", kind))

    for _ in range(20):
        call("high")
    assert score(BASE_EVOLVED, own) < score(BASE_ORIGINAL, [])
    successes = 0
    while score(BASE_EVOLVED, own) <= score(BASE_ORIGINAL, []):
        call("success")
        successes += 1
    assert successes <= 30
