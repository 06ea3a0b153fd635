"""The made-up history has the properties that docs/demo-history.md states, and repeats."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

import pytest

from service.demo.simulated_agents import PlayedSession, SimCall, SimTask
from service.demo.simulated_tools import PASSING, FaultKind
from workbench.alone import executions_alone, sessions_alone

T = TypeVar("T")

NOW = datetime(2026, 11, 20, 16, tzinfo=UTC)
FIRST = datetime(2026, 10, 22, tzinfo=UTC)
DOC = Path(__file__).parents[2] / "docs" / "demo-history.md"
SEEDS = (7, 8, 9)

SENT: set[FaultKind] = {
    "unknown_parameter", "missing_parameter", "wrong_type", "out_of_range", "not_a_choice",
    "wrong_form", "hidden_rule",
}  # fmt: skip


def stated() -> dict[str, tuple[float, float]]:
    """The ranges of the documentation by their properties."""
    rows = re.findall(
        r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|$", DOC.read_text("utf-8"), re.MULTILINE
    )
    return {name: (float(low), float(high)) for name, low, high in rows}


@cache
def properties(seed: int) -> dict[str, float | list[int]]:
    """Of the history of a seed."""
    return History(tuple(sessions_alone(now=NOW, seed=seed))).properties()


class History:
    """A history, and what is computed from it."""

    def __init__(self, played: Sequence[PlayedSession]) -> None:
        self.calls: list[SimCall] = [call for each in played for call in each.calls]
        self.tasks: list[SimTask] = [task for each in played for task in each.tasks]

    def properties(self) -> dict[str, float | list[int]]:
        """By the names of the documentation; a list is held to its range one by one."""
        dates = [call.execution.timestamp.date() for call in self.calls]
        days = Counter(date for date in dates if date != NOW.date())
        durations = quantiles(map(duration, self.calls), n=20)
        agents = self.wrong_at_once()
        missed = [task for task in self.tasks if task.kind is not None]
        return {
            "calls on a working day": [n for day, n in days.items() if day.weekday() < 5],
            "calls on a day of a weekend": [n for day, n in days.items() if day.weekday() >= 5],
            "tasks right at once": share(self.tasks, lambda task: task.ending == "at once"),
            "tasks done in the end, nobody asking": share(
                self.tasks, lambda task: task.ending != "not mended"
            ),
            "failed calls of all": share(self.calls, lambda call: call.fault is not None),
            "failures for what was sent": self.failures(SENT),
            "failures for a rule that no schema tells": self.failures({"hidden_rule"}),
            "failures that pass": self.failures(PASSING),
            "failures for something that is not there, or there already": self.failures(
                {"not_found", "conflict"}
            ),
            "failures for want of rights": self.failures({"permission"}),
            "failures as referrals": self.failures({"wrong_tool", "little_use"}),
            "failures that an agent mends alone": share(
                missed, lambda task: task.ending in ("by itself", "elsewhere")
            ),
            "calls that say which one they mend": share(
                self.calls, lambda call: call.execution.repair_of is not None
            ),
            "wrong at once, the best agent": min(agents.values()),
            "wrong at once, the worst agent": max(agents.values()),
            "median duration, ms": median(duration(call) for call in self.calls),
            "95th percentile of the duration, ms": durations[18],
            "breakdowns of `words.translate_fast`, days 10-15": self.breakdowns(
                "words.translate_fast", range(10, 16)
            ),
            "breakdowns of `words.translate_fast`, other days": self.breakdowns(
                "words.translate_fast", [*range(10), *range(16, 30)]
            ),
            "breakdowns of `metrics.query_series`, days 13-14": self.breakdowns(
                "metrics.query_series", range(13, 15)
            ),
            "slowness of `web.web_search` from day 20": self.slowness(
                "web.web_search", range(20, 30)
            ),
            "slowness of `files.search_files`, days 16-22": self.slowness(
                "files.search_files", range(16, 23)
            ),
            "slowness of `words.translate` from day 21": self.slowness(
                "words.translate", range(21, 30)
            ),
            "unknown parameters of `create_ticket` before day 18": self.renamed(range(18)),
            "unknown parameters of `create_ticket` from day 18": self.renamed(range(18, 30)),
        }

    def failures(self, kinds: AbstractSet[FaultKind]) -> float:
        faults = [call.fault for call in self.calls if call.fault is not None]
        return share(faults, lambda fault: fault in kinds)

    def wrong_at_once(self) -> dict[str, float]:
        endings = defaultdict(list)
        for task in self.tasks:
            endings[task.agent].append(task.ending)
        return {who: share(all_, lambda each: each != "at once") for who, all_ in endings.items()}

    def of(self, place: str, days: Iterable[int]) -> list[SimCall]:
        wanted = set(days)
        return [
            call
            for call in self.calls
            if call.tool.place == place and (call.execution.timestamp - FIRST).days in wanted
        ]

    def breakdowns(self, place: str, days: Iterable[int]) -> float:
        return share(self.of(place, days), lambda call: call.fault in PASSING)

    def slowness(self, place: str, days: range) -> float:
        other = [day for day in range(30) if day not in days]
        then, else_ = (
            median(duration(call) for call in self.of(place, spell) if call.fault is None)
            for spell in (days, other)
        )
        return then / else_

    def renamed(self, days: range) -> float:
        made = self.of("tickets.create_ticket", days)
        return share(made, lambda call: call.fault == "unknown_parameter")


def duration(call: SimCall) -> float:
    return call.execution.duration_ms or 0.0


def share(items: Sequence[T], is_one: Callable[[T], bool]) -> float:
    return sum(map(is_one, items)) / len(items)


@pytest.mark.parametrize("name", sorted(stated()))
def test_each_property_lies_in_its_stated_range(name: str) -> None:
    """What the documentation states is so, whatever the seed."""
    low, high = stated()[name]
    for seed in SEEDS:
        found = properties(seed)[name]
        for value in found if isinstance(found, list) else [found]:
            assert low <= value <= high, f"seed {seed}: {value}"


def test_every_computed_property_is_stated() -> None:
    """The documentation leaves none out, and states none that is not computed."""
    assert stated().keys() == properties(7).keys()


def test_the_same_seed_gives_the_same_history() -> None:
    """Ids, times, values and all; another seed gives another one."""
    first, again = (
        [each.model_dump() for each in executions_alone(now=NOW, calls_per_day=20)] for _ in "ab"
    )
    other = executions_alone(now=NOW, calls_per_day=20, seed=8)
    assert first == again
    assert {each["executionId"] for each in first}.isdisjoint(each.execution_id for each in other)


def test_calls_lie_in_the_last_days_up_to_now() -> None:
    """None lies in the future, none before the first of the days, and each has an id of its own."""
    made = executions_alone(now=NOW, calls_per_day=100)
    assert all(FIRST <= each.timestamp <= NOW for each in made)
    assert made == sorted(made, key=lambda each: each.timestamp)
    assert len({each.execution_id for each in made}) == len(made)
    assert {(each.timestamp - FIRST).days for each in made} == set(range(30))


@pytest.mark.parametrize("days", [1, 7, 90])
def test_another_length_tells_the_same_story(days: int) -> None:
    """A day has the new version of a tool as a month has, and as many calls a day."""
    made = executions_alone(now=NOW.replace(hour=23), seed=7, days=days, calls_per_day=200)
    assert 150 <= len(made) / days <= 330
    assert {each.tool_version for each in made} == {"1.0.0", "1.1.0", "2.0.0"}
