"""Axes: ticks that are read at a glance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard.charts import shares_axis


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), max_size=20))
def test_an_axis_of_shares_has_few_round_ticks_and_holds_every_share(
    shares: list[float | None],
) -> None:
    axis = shares_axis([shares])
    steps = (axis["max"] - axis["min"]) / axis["interval"]
    assert steps.is_integer()
    assert 2 <= steps <= 6
    assert axis["min"] % axis["interval"] == 0
    assert axis["interval"] in (2, 5, 10, 20)
    assert all(axis["min"] <= each <= axis["max"] for each in shares if each is not None)


@pytest.mark.parametrize(
    ("low", "least", "step"), [(100, 90, 2), (87, 85, 5), (74, 70, 5), (61, 60, 10), (3, 0, 20)]
)
def test_an_axis_of_shares_begins_near_the_lowest_one(
    low: float, least: float, step: float
) -> None:
    axis = shares_axis([[100.0, None], [low]])
    assert (axis["min"], axis["interval"]) == (least, step)
