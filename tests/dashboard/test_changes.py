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
from service.alerts import DayChange, find_changes, is_sure
from tests.dashboard.made import NOW, met

Pair = tuple[int, int]
"""Successes and failures."""


def usage(*found: tuple[str, Pair]) -> list[ToolUsage]:
    return [
        ToolUsage(tool=ToolName(tool_name=name), successes=good, failures=bad)
        for name, (good, bad) in found
    ]


def told(
    now: Pair, before: Pair | None, *found: tuple[str, int, int | None], today: Pair | None = None,
    week: Pair | None = None,
) -> list[DayChange]:  # fmt: skip
    """Of totals, of patterns with their failures now and before, and of the tool `search`."""
    since = NOW - timedelta(days=1)
    day = WindowTotals(
        window="24h", since=since, until=NOW,
        totals=CallUsage(successes=now[0], failures=now[1]),
        before=None if before is None else CallCounts(successes=before[0], failures=before[1]),
    )  # fmt: skip
    patterns = [met(failures, earlier, pattern_id=name) for name, failures, earlier in found]
    return find_changes(
        day, PatternStatistics(window="24h", since=since, until=NOW, patterns=patterns),
        usage(("search", today)) if today else [], usage(("search", week)) if week else [],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("now", "before", "said", "unsaid"),
    [
        ((100, 3), None, "nothing to compare", "succeeded"),
        ((0, 0), (0, 0), "Nothing was called", "succeeded"),
        ((1_190, 10), (990, 10), "1,200 calls in the last 24 hours, 1,000 in the 24 hours before "
         "(+20%).", "-"),
        ((3, 0), (1, 0), "3 calls", "%"),
        ((3, 0), (1, 0), "not compared", "%"),
    ],
    ids=["no day before", "silence", "more", "few", "few are not compared"],
)  # fmt: skip
def test_calls_are_told_with_their_change(
    now: Pair, before: Pair | None, said: str, unsaid: str
) -> None:
    """From 1 to 3 is no +200 %."""
    found = "\n".join(each.words for each in told(now, before))
    assert said in found
    assert unsaid not in found


@pytest.mark.parametrize(
    ("now", "before", "tone", "phrase"),
    [
        ((900, 100), (990, 10), "bad", "down by 9.0 points"),
        ((990, 10), (900, 100), "good", "up by 9.0 points"),
        ((95, 5), (96, 4), "plain", "the difference may be chance"),
        ((100, 0), (100, 0), "plain", "the difference may be chance"),
    ],
    ids=["worse", "better", "chance", "equal"],
)
def test_a_rate_is_worse_or_better_only_beyond_chance(
    now: Pair, before: Pair, tone: str, phrase: str
) -> None:
    """And with few calls never, however large the difference is."""
    [change] = [each for each in told(now, before) if "succeeded" in each.words]
    assert change.tone == tone
    assert phrase in change.words
    assert not is_sure(CallCounts(successes=19), CallCounts(failures=19))


@pytest.mark.parametrize(
    ("today", "week", "tone", "words"),
    [
        ((20, 5), (120, 5), "bad",
         "search began to fail: 5 of 25 calls; in the days before none of 100."),
        ((20, 0), (60, 40), "good",
         "search recovered: no failure in 20 calls; in the days before 40 of 80 failed."),
        ((1, 5), (1, 5), "", ""),
        ((20, 0), (997, 3), "", ""),
    ],
    ids=["begins to fail", "recovered", "nobody called it before", "rare failures"],
)  # fmt: skip
def test_a_tool_that_changed_is_named(today: Pair, week: Pair, tone: str, words: str) -> None:
    """With a link to it; what is no news is not told."""
    found = [each for each in told((90, 5), (100, 0), today=today, week=week) if each.tool]
    assert [(each.tone, each.words) for each in found] == ([(tone, words)] if words else [])


def test_new_patterns_are_told_once_they_are_more_than_a_few() -> None:
    """Where the day before is not known, nothing is new; many are summed up."""
    some = (("new", 4, 0), ("two", 2, 0), ("old", 9, 3), ("x", 9, None))
    found = told((90, 5), (100, 0), *some)
    assert [each.pattern.pattern_id for each in found if each.pattern] == ["new"]
    many = told((90, 5), (100, 0), *((f"p{n}", 5, 0) for n in range(7)))
    assert len([each for each in many if each.pattern]) == 4
    assert many[-1].words == "3 more failures are new since yesterday."
