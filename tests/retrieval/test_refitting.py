"""Refitting: a new scaling replaces the current one only where it holds on newer outcomes."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.knowledge.confidence import ENOUGH_OUTCOMES, Scaling
from retrieval.knowledge.fitting import fit_scaling, refit_scaling

Outcomes = tuple[list[float], list[bool], list[str | None]]

outcomes = st.lists(
    st.tuples(st.floats(0, 1), st.booleans(), st.sampled_from(["ada", "ben", None])),
    min_size=45,
    max_size=90,
)
scalings = st.builds(Scaling, shift=st.floats(-3, 3), slope=st.floats(0.3, 2))


def followed(count: int, times_right: float, *, seed: int = 1) -> Outcomes:
    """Suggestions of all confidences by many agents, right `times_right` as often as shipped."""
    random = Random(seed)  # noqa: S311 - data for a test
    estimates = [random.uniform(0.3, 0.95) for _ in range(count)]
    rights = [random.random() < estimate * times_right for estimate in estimates]
    return estimates, rights, [f"agent-{random.randrange(20)}" for _ in estimates]


def newer_first(newer: Outcomes, older: Outcomes) -> Outcomes:
    """Both, as the store gives them."""
    return newer[0] + older[0], newer[1] + older[1], newer[2] + older[2]


def test_a_scaling_that_holds_on_newer_outcomes_is_taken() -> None:
    """Half as often right as shipped, then and now."""
    seen = followed(400, 0.5)
    fitted = refit_scaling(Scaling(), *seen)
    assert fitted == fit_scaling(*seen)
    assert fitted.outcomes == 400
    assert fitted.scale_score(2.0) < 2.0


def test_a_scaling_that_is_worse_on_newer_outcomes_is_not_taken() -> None:
    """What was broken for long and works again is not held against the suggestions of today."""
    seen = newer_first(followed(80, 1.0), followed(320, 0.2, seed=2))
    assert fit_scaling(*seen).shift < 0
    assert refit_scaling(Scaling(), *seen) == Scaling()


def test_what_has_become_wrong_is_given_up() -> None:
    """A scaling that was right once goes when newer outcomes say otherwise."""
    once = refit_scaling(Scaling(), *followed(200, 0.3))
    seen = newer_first(followed(400, 1.0, seed=3), followed(200, 0.3))
    again = refit_scaling(once, *seen)
    assert again.outcomes == 600
    assert again.scale_score(1.0) > once.scale_score(1.0)


@pytest.mark.parametrize("count", [0, 1, ENOUGH_OUTCOMES - 1])
def test_few_outcomes_leave_the_shipped_calibration(count: int) -> None:
    """However clear they are."""
    assert refit_scaling(Scaling(), *followed(count, 0.0)) == Scaling()


@given(current=scalings, seen=outcomes)
@settings(max_examples=30, deadline=None)
def test_it_is_the_fit_or_the_current_one(
    current: Scaling, seen: list[tuple[float, bool, str | None]]
) -> None:
    """Whatever the outcomes are: nothing third, and nothing raised."""
    columns = [list(column) for column in zip(*seen, strict=True)]
    assert refit_scaling(current, *columns) in (current, fit_scaling(*columns))
