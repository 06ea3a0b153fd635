"""The score is base x quality x demotion, bounded, and ties have one order."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Factors, RankedTool, Tool
from retrieval.answers.fitness.score import BASE_EVOLVED, BASE_ORIGINAL, base_of, rank_candidates
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
    assert rank_candidates(random.sample(order, len(order))) == order
