"""Charts: ticks that are read at a glance, marks where the values are, and a table beside."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard.charts import bar_chart, counts_axis, line_chart, scatter_chart, shares_axis


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), max_size=20))
def test_an_axis_of_shares_has_few_round_ticks_and_holds_every_share(
    shares: list[float | None],
) -> None:
    low, step, high = shares_axis({"a": shares})
    steps = (high - low) / step
    assert steps.is_integer()
    assert 2 <= steps <= 6
    assert low % step == 0
    assert step in (2, 5, 10, 20)
    assert all(low <= each <= high for each in shares if each is not None)


@pytest.mark.parametrize(
    ("lowest", "least", "step"), [(100, 90, 2), (87, 85, 5), (74, 70, 5), (61, 60, 10), (3, 0, 20)]
)
def test_an_axis_of_shares_begins_near_the_lowest_one(
    lowest: float, least: float, step: float
) -> None:
    assert shares_axis({"a": [100.0, None], "b": [lowest]})[:2] == (least, step)


@given(st.floats(0, 1e9))
def test_an_axis_of_counts_begins_at_0_and_has_few_round_ticks(highest: float) -> None:
    """And never half a call."""
    low, step, high = counts_axis(highest)
    assert low == 0
    assert high >= highest
    assert 1 <= round(high / step) <= 6
    assert step >= 1
    assert str(f"{step:.0e}")[0] in "125"


def test_a_line_has_a_gap_where_nothing_is_known() -> None:
    """A mark for each value, a line between neighbours, and all of it in the table."""
    drawn = line_chart("Rates", ["a", "b", "c", "d"], {"Success": [50.0, None, 75.0, 100.0]}, "%")
    assert drawn.count('class="mark"') == 3
    assert drawn.count('class="line"') == 1
    assert 'role="img" aria-label="Rates"' in drawn
    assert '[["a",["50.00",null,50.0]],["b",["-",null,null]]' in drawn.replace(", ", ",")


def test_bars_stand_on_one_another_from_0() -> None:
    """Heights in per cent of the highest tick; a count of nothing has no bar."""
    drawn = bar_chart("Calls", ["a", "b"], {"Good": [6, 0], "Bad": [2, 0]})
    heights = re.findall(r'height="([\d.]+)%" class="column"', drawn)
    assert [float(each) for each in heights] == [75.0, 25.0]


def test_points_of_a_series_are_drawn_where_they_are() -> None:
    """From the lower left; with a diagonal for those that kept what they promised."""
    drawn = scatter_chart("Trust", "promised", "kept", {"many": [(0.25, 0.75)]})
    assert 'x="25.00%" y="25.00%" class="mark"' in drawn
    assert 'class="diagonal"' in drawn


def test_nothing_is_a_chart_without_marks() -> None:
    """No division by a count of none."""
    assert 'class="mark"' not in line_chart("None", [], {"a": []})
    assert 'class="column"' not in bar_chart("None", [], {"a": []})
