"""What the notebooks share: measures, tables, worlds, trials, referrals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import percent, table
from workbench.calibration import brier, calibration_error, reliability, risk_coverage, wilson
from workbench.trials import make_trials, trial_tools, verdict

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def test_the_measures_are_those_of_their_papers() -> None:
    """Worked by hand: two bins, one promising too much and one too little."""
    sure, hits = [0.25, 0.25, 0.95, 0.95], [True, True, True, False]
    low, high = reliability(sure, hits)
    assert (low.count, low.confidence, low.share) == (2, 0.25, 1.0)
    assert (high.count, high.confidence, high.share) == (2, 0.95, 0.5)
    assert calibration_error(sure, hits) == pytest.approx(0.5 * 0.75 + 0.5 * 0.45)
    assert brier(sure, hits) == pytest.approx((2 * 0.75**2 + 0.05**2 + 0.95**2) / 4)
    assert wilson(0.5, 10) == pytest.approx((0.2693, 0.7307), abs=1e-3)


def test_risk_is_of_what_is_acted_on_and_coverage_of_all_that_was_asked() -> None:
    """The surest come first, equal ones together; abstentions are never acted on."""
    curve = risk_coverage([0.9, 0.5, 0.9, 0.2], [True, False, False, True], asked=8)
    assert curve.threshold.tolist() == [0.9, 0.5, 0.2]
    assert curve.coverage.tolist() == [0.25, 0.375, 0.5]
    assert curve.risk == pytest.approx([1 / 2, 2 / 3, 2 / 4])
    assert len(risk_coverage([], [], asked=8).coverage) == 0


@given(pairs=PAIRS)
def test_measures_stay_in_their_bounds(pairs: list[tuple[float, bool]]) -> None:
    """Whatever was promised and came true."""
    sure, hits = [each[0] for each in pairs], [each[1] for each in pairs]
    bins = reliability(sure, hits)
    assert sum(each.count for each in bins) == len(pairs)
    assert all(0 <= each.low <= each.share <= each.high <= 1 for each in bins)
    assert 0 <= calibration_error(sure, hits) <= 1
    assert 0 <= brier(sure, hits) <= 1
    curve = risk_coverage(sure, hits, asked=len(pairs))
    assert curve.coverage[-1] == 1.0
    assert curve.risk[-1] == pytest.approx(1 - sum(hits) / len(hits))


def test_what_a_tool_said_is_never_markup() -> None:
    """Cells, columns and captions are escaped, and long ones cut."""
    hostile = "<img src=x onerror=alert(1)>"
    shown = table([hostile], [[hostile], ["x" * 500]], caption=hostile)._repr_html_()
    assert "<img" not in shown
    assert shown.count("&lt;img") == 3
    assert "x" * 200 not in shown


def test_numbers_are_told_so_that_they_can_be_compared() -> None:
    """Two decimals, thousands apart, nothing for nothing."""
    shown = table(["name", "count", "share"], [("a", 1234, 0.5), ("b", None, None)])
    assert shown.rows == (("a", "1,234", "0.50"), ("b", "", ""))
    assert shown.numeric == (False, True, True)
    assert repr(shown).splitlines()[1] == "a     1,234   0.50"
    assert [percent(0.8333), percent(1.0), percent(None)] == ["83.3 %", "100 %", ""]
    with pytest.raises(ValueError, match="2 cells"):
        table(["one", "two"], [["alone"]])


def test_a_trial_fails_as_it_was_sent_and_is_right_as_it_was_meant() -> None:
    """So a verdict about a suggestion is about the suggestion."""
    trials = make_trials(200)
    assert len(trials) == 200
    assert make_trials(5) == trials[:5]
    for trial in trials:
        assert verdict(trial, trial.question.parameters) == "fails"
        assert verdict(trial, trial.meant) == "right"
        assert trial.tool.tool_id in trial_tools()


def test_a_success_that_was_not_meant_is_something_else() -> None:
    """The difference that the notebook is about."""
    trials = [each for each in make_trials(200) if each.tool.spec.name == "query_series"]
    one = trials[0]
    other = next(each for each in trials if not one.tool.is_same_call(each.meant, one.meant))
    assert verdict(one, other.meant) == "something else"
