"""The success to expect: near and recent trials count most, changes are seen, nobody is loud."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import Factors, Posterior
from retrieval.answers.fitness.expected import (
    FLOOR,
    HALF_LIFE,
    Experience,
    LikeScenario,
    expected_success,
    experience_of,
    scenario_weight,
)
from retrieval.answers.fitness.score import by_experience, score_of
from retrieval.knowledge.rows.statistics import Trial, TrialKind, heard_trials, trial_of
from tests.retrieval.fitness.fitness_strategies import (
    NOW,
    like_scenarios,
    run_of,
    similarities,
    trials,
)

SECOND = timedelta(seconds=1)


def found(
    like: Sequence[LikeScenario], known: Sequence[Trial] = (), experience: Experience | None = None
) -> Posterior:
    """What is to be expected now, of one tool alone where no experience is given."""
    return expected_success(like, known, experience or experience_of([known]), now=NOW)


def alike(*kinds: TrialKind, similarity: float = 0.9) -> LikeScenario:
    """Trials of these kinds in one scenario, a second apart, the last of them now."""
    return LikeScenario("a", similarity, run_of(*kinds, step=SECOND))


def test_where_nothing_is_known_both_modes_give_the_same() -> None:
    """A namespace starts as one that succeeds, so that the seed's numbers stand: 1.0 x 1 x 1."""
    assert (found([]).mean, found([]).upper_bound) == (1.0, 1.0)
    plain = Factors(base=0.9, quality=1.0, failure_demotion=1.0)
    shown = by_experience(
        plain, [], [], experience_of([]), NOW, source="original", serves=True, may_be_tried=False
    )
    assert score_of(shown) == score_of(plain) == 0.9


@given(st.lists(similarities, min_size=2, max_size=8).map(sorted))
def test_likeness_has_no_step(cosines: list[float]) -> None:
    """It never falls as two scenarios get nearer, and lies between 0 and 1."""
    weights = [scenario_weight(each) for each in cosines]
    assert weights == sorted(weights)
    assert 0 < weights[0] <= weights[-1] < 1


def test_near_and_recent_trials_count_most() -> None:
    """A half-life ago a half; an unlike scenario next to nothing."""
    both = [trial_of(NOW, "a", "success"), trial_of(NOW - HALF_LIFE, "b", "success")]
    now, ago = (found([LikeScenario("s", 1.0, [each])]).successes for each in both)
    assert ago == pytest.approx(now / 2)
    assert found([LikeScenario("s", 0.0, both[:1])]).successes < 0.01


def test_calls_of_the_candidates_make_a_trial_old_too() -> None:
    """Three hundred calls within the same minute leave a third of it."""
    own = trial_of(NOW - timedelta(minutes=1), "a", "success")
    others = [trial_of(NOW, f"call {n}", "success") for n in range(300)]
    fresh, old = (experience_of(each) for each in ([[own]], [[own], others]))
    like = [LikeScenario("s", 1.0, [own])]
    left = found(like, [own], old).successes / found(like, [own], fresh).successes
    assert left == pytest.approx(1 / 2.718, abs=0.01)


def test_a_tool_that_broke_is_seen_after_three_failures_and_again_when_it_is_mended() -> None:
    """After forty successes; and then twelve successes outweigh twenty failures."""
    served: list[TrialKind] = ["success"] * 40
    assert found([alike(*served, "failure")]).mean > 0.9
    broken = found([alike(*served, *["failure"] * 3)], run_of(*served, *["failure"] * 3))
    assert broken.mean < 0.7
    assert broken.changed_at == NOW - 2 * SECOND
    mended = found([alike(*served, *["failure"] * 20, *["success"] * 12)])
    assert mended.mean > 0.85
    assert mended.changed_at == NOW - 11 * SECOND


def test_one_mark_of_a_stranger_does_not_turn_200_honest_successes() -> None:
    """Nor do fifty of the same stranger turn what the asker sees for itself."""
    own = [trial_of(NOW - (200 - n) * SECOND, f"c{n}", "success", bare=True) for n in range(200)]
    for marks, least in ((1, 0.94), (50, 0.5)):
        said = [trial_of(NOW, f"m{n}", "high", "stranger") for n in range(marks)]
        heard = heard_trials([*own[-16:], *said], "")
        assert found([LikeScenario("s", 1.0, heard)], own[-64:]).mean > least


def test_a_weak_success_is_half_and_a_referral_speaks_of_like_scenarios_only() -> None:
    """An empty answer is often right; who knows what is not its job is no worse at what is."""
    kinds: tuple[TrialKind, ...] = ("success", "weak", "referral", "failure")
    strong, weak, referral, failure = (found([alike(*[each] * 5)]).mean for each in kinds)
    assert strong > weak > referral == failure
    assert found([], run_of(*["referral"] * 5)) == found([])


def test_nothing_is_tried_below_the_floor() -> None:
    """There the upper bound is the mean; above it, it is more."""
    poor = found([alike(*["failure"] * 40)], run_of(*["failure"] * 40))
    assert poor.mean < FLOOR
    assert poor.upper_bound == poor.mean
    fair = found([alike("success", "failure")])
    assert fair.upper_bound > fair.mean


@given(like_scenarios(), trials())
def test_it_is_a_share_whatever_is_known_and_whatever_the_order(
    like: list[LikeScenario], known: list[Trial]
) -> None:
    """And the same knowledge gives the same answer: there is no chance in it."""
    one = found(like, known)
    assert 0 <= one.mean <= one.upper_bound <= 1
    turned = [each._replace(trials=each.trials[::-1]) for each in like[::-1]]
    other = found(turned, known[::-1])
    assert other.mean == pytest.approx(one.mean)
    assert other.changed_at == one.changed_at


@given(like_scenarios(), trials(), st.sampled_from([0.3, 0.6, 1.0]))
def test_the_score_is_the_product_and_the_base_fades(
    like: list[LikeScenario], known: list[Trial], base: float
) -> None:
    """The more is known of a namespace, the less its bases count; beside it they count whole."""
    plain = Factors(base=base, quality=0.7, failure_demotion=0.1)
    experience = experience_of([known], like=[like])
    serving, beside = (
        by_experience(
            plain, like, known, experience, NOW, source="original", serves=each, may_be_tried=True
        )
        for each in (True, False)
    )
    assert beside.base == pytest.approx(base)
    assert beside.base <= serving.base <= 1
    assert serving.posterior is not None
    here = serving.quality * serving.failure_demotion
    assert here == pytest.approx(serving.posterior.upper_bound)


def test_a_promotion_says_nothing_of_a_version_that_has_changed() -> None:
    """While it does as it did it is taken for better than it showed; a broken one is not."""
    served = run_of(*["success"] * 8, step=SECOND)
    broken = run_of(*["success"] * 8, *["failure"] * 4, step=SECOND)
    experience = experience_of([broken], ["a"], [[alike(*["success"] * 9)]])
    for known, gains in ((served, True), (broken, False)):
        promoted, plain = (
            expected_success([], known, experience, now=NOW, source=each).mean
            for each in ("evolved", "original")
        )
        assert (promoted > plain) is gains


def test_a_promoted_version_goes_first_in_a_namespace_that_is_known() -> None:
    """Before a semantic match that nobody tried, and before the flawless original itself."""
    like, known = [alike(*["success"] * 30)], run_of(*["success"] * 28, "failure", "failure")
    experience = experience_of([known], ["a"], [like])
    scores = {
        source: score_of(
            by_experience(
                Factors(base=base, quality=1.0, failure_demotion=1.0), [], [], experience, NOW,
                source=source, serves=True, may_be_tried=False,
            )
        )
        for source, base in (("evolved", 1.0), ("original", 0.9), ("semantic", 0.7))
    }  # fmt: skip
    assert scores["evolved"] > scores["original"] > scores["semantic"]
