"""What changed since yesterday: words that say no more than the numbers do."""

from datetime import timedelta

import pytest

from aftercall.models import (
    CallCounts,
    CallUsage,
    PatternStatistics,
    ToolName,
    ToolUsage,
    WindowTotals,
)
from service.dashboard.overview import DayChange, changes, is_sure
from tests.dashboard.made import NOW, met


def day(now: tuple[int, int], before: tuple[int, int] | None) -> WindowTotals:
    return WindowTotals(
        window="24h",
        since=NOW - timedelta(hours=24),
        until=NOW,
        totals=CallUsage(successes=now[0], failures=now[1]),
        before=None if before is None else CallCounts(successes=before[0], failures=before[1]),
    )


def tools(**counts: tuple[int, int]) -> list[ToolUsage]:
    return [
        ToolUsage(tool=ToolName(tool_name=name), successes=good, failures=bad)
        for name, (good, bad) in counts.items()
    ]


def patterns(*found: tuple[str, int, int | None]) -> PatternStatistics:
    return PatternStatistics(
        window="24h",
        since=NOW - timedelta(days=1),
        until=NOW,
        patterns=[met(failures, before, pattern_id=name) for name, failures, before in found],
    )


def told(
    now: tuple[int, int],
    before: tuple[int, int] | None,
    *,
    today: list[ToolUsage] | None = None,
    week: list[ToolUsage] | None = None,
    found: PatternStatistics | None = None,
) -> list[DayChange]:
    return changes(day(now, before), found or patterns(), today or tools(), week or tools())


def words(found: list[DayChange]) -> str:
    return "\n".join(each.words for each in found)


def test_without_a_day_before_nothing_is_compared() -> None:
    """It says so, and nothing else."""
    [only] = told((100, 3), None)
    assert "nothing to compare" in only.words


def test_silence_is_told() -> None:
    [only] = told((0, 0), (0, 0))
    assert "Nothing was called" in only.words


def test_calls_are_told_with_their_change() -> None:
    assert "1,200 calls in the last 24 hours, 1,000 in the 24 hours before (+20%)." in words(
        told((1_190, 10), (990, 10))
    )


def test_a_percentage_of_few_calls_is_not_told() -> None:
    """From 1 to 3 is no +200 %."""
    found = words(told((3, 0), (1, 0)))
    assert "3 calls" in found
    assert "%" not in found
    assert "not compared" in found


@pytest.mark.parametrize(
    ("now", "before", "tone", "phrase"),
    [
        ((900, 100), (990, 10), "bad", "down by 9.0 points"),
        ((990, 10), (900, 100), "good", "up by 9.0 points"),
        ((95, 5), (96, 4), "plain", "no more of a difference than chance gives"),
        ((100, 0), (100, 0), "plain", "no more of a difference than chance gives"),
    ],
    ids=["worse", "better", "chance", "equal"],
)
def test_a_rate_is_worse_or_better_only_beyond_chance(
    now: tuple[int, int], before: tuple[int, int], tone: str, phrase: str
) -> None:
    [change] = [each for each in told(now, before) if "succeeded" in each.words]
    assert change.tone == tone
    assert phrase in change.words


def test_a_difference_is_sure_whichever_way_it_goes() -> None:
    """And never with few calls, however large it is."""
    good, bad = CallCounts(successes=200), CallCounts(successes=100, failures=100)
    assert is_sure(good, bad)
    assert is_sure(bad, good)
    assert not is_sure(CallCounts(successes=19), CallCounts(failures=19))


def test_a_tool_that_begins_to_fail_is_named() -> None:
    """With a link to it."""
    found = told((90, 5), (100, 0), today=tools(search=(20, 5)), week=tools(search=(120, 5)))
    [change] = [each for each in found if each.tool is not None]
    assert change.words == "search began to fail: 5 of 25 calls; in the days before none of 100."
    assert change.tone == "bad"


def test_a_tool_that_nobody_called_before_did_not_begin_to_fail() -> None:
    """There is nothing that it failed after."""
    found = told((90, 5), (9, 0), today=tools(new=(1, 5)), week=tools(new=(1, 5)))
    assert not any(each.tool for each in found)


def test_a_tool_that_recovered_is_named() -> None:
    found = told((90, 5), (100, 0), today=tools(search=(20, 0)), week=tools(search=(60, 40)))
    [change] = [each for each in found if each.tool is not None]
    assert "recovered: no failure in 20 calls; in the days before 40 of 80" in change.words
    assert change.tone == "good"


def test_a_rare_failure_that_did_not_come_back_is_no_news() -> None:
    found = told((90, 5), (100, 0), today=tools(search=(20, 0)), week=tools(search=(997, 3)))
    assert not any(each.tool for each in found)


def test_new_patterns_are_told_once_they_are_more_than_a_few() -> None:
    """Where the day before is not known, nothing is new."""
    found = told(
        (90, 5),
        (100, 0),
        found=patterns(("new", 4, 0), ("two", 2, 0), ("old", 9, 3), ("x", 9, None)),
    )
    assert [each.pattern_id for each in found if each.pattern_id] == ["new"]


def test_many_of_a_kind_are_summed_up() -> None:
    found = told((90, 5), (100, 0), found=patterns(*((f"p{n}", 5, 0) for n in range(7))))
    assert len([each for each in found if each.pattern_id]) == 4
    assert found[-1].words == "3 more patterns of failure were not there the day before."
