"""Cohesion warnings on simulated tools: how soon for two jobs, how often by mistake for one.

A world says how often a tool refers elsewhere, and which axes it names then. Each tool lives for 30
days; its warning is looked at after every boundary failure, for it cannot come at another moment:
between failures all weights fade alike, and the confidence moves towards that of no evidence.
Axes are taken as clustered rightly; clustering has a table of its own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median

from retrieval.knowledge.patterns.clusters import AxisClusters
from retrieval.knowledge.patterns.cohesion import CohesionRules, cohesion_of
from retrieval.knowledge.rows.health import MAX_REFERRALS, KnownHealth, Referred

DAYS = 30
TOOLS = 1_000
REPORT = 2
"""The seed of the tables; the confidence was chosen on another."""

_START = datetime(2026, 1, 1, tzinfo=UTC)
_AXES = [f"axis {number}" for number in range(28)]
_STRAY = 0.05

Draw = Callable[[Random], list[str]]


@dataclass(frozen=True, slots=True)
class World:
    """One kind of tool.

    Args:
        name: as the table says it.
        jobs: how many jobs the tool is asked to do; a warning is right for two.
        daily: boundary failures of a day, on average (Poisson).
        draw: the axes that one of them names.
    """

    name: str
    jobs: int
    daily: float
    draw: Draw


@dataclass(frozen=True, slots=True)
class Life:
    """What became of one tool: of which of its failures the first warning came, if any."""

    failures: int
    warned_at: int | None


def _both(_: Random) -> list[str]:
    return [_AXES[0], _AXES[1]]


def _either(first: float) -> Draw:
    return lambda random: [_AXES[0] if random.random() < first else _AXES[1]]


def _either_or_stray(random: Random) -> list[str]:
    return [random.choice(_AXES)] if random.random() < _STRAY else _either(0.5)(random)


def _scattered(axes: int) -> Draw:
    return lambda random: [random.choice(_AXES[:axes])]


def _mostly_one(stray: Callable[[Random], str]) -> Draw:
    return lambda random: [stray(random) if random.random() < _STRAY else _AXES[0]]


TWO_JOBS = [
    World("both named each time", 2, 3.0, _both),
    World("one of two, 50 : 50", 2, 3.0, _either(0.5)),
    World("one of two, 50 : 50, and 5 % strays", 2, 3.0, _either_or_stray),
    World("one of two, 70 : 30", 2, 3.0, _either(0.7)),
]

ONE_JOB = [
    World(f"{calls} calls a day, 5 % of them strays over {axes} axes", 1, calls * _STRAY, draw)
    for calls in (10, 50, 200)
    for axes, draw in ((28, _scattered(28)), (10, _scattered(10)))
] + [
    World(f"{daily} referrals a day, 95 % on one axis, 5 % {where}", 1, daily, draw)
    for daily in (1, 5)
    for where, draw in (
        ("scattered", _mostly_one(lambda random: random.choice(_AXES[1:]))),
        ("always on one other", _mostly_one(lambda _: _AXES[1])),
    )
]


def live(world: World, rules: CohesionRules, seed: int, tools: int = TOOLS) -> list[Life]:
    """The lives of so many tools; the same for the same seed."""
    return [_life(world, rules, Random(f"{seed} {world.name} {tool}")) for tool in range(tools)]


def measure() -> dict[str, list[Life]]:
    """The lives of the report's tools, by world."""
    return {each.name: live(each, CohesionRules(), REPORT) for each in (*TWO_JOBS, *ONE_JOB)}


def warned_by(lives: list[Life], failures: int) -> float:
    """The share of tools that were warned of at or before that boundary failure."""
    return sum(each.warned_at is not None and each.warned_at <= failures for each in lives) / len(
        lives
    )


def median_failure(lives: list[Life]) -> float | None:
    """The boundary failure at which the middle one of the warned tools was warned of."""
    warned = [each.warned_at for each in lives if each.warned_at is not None]
    return median(warned) if warned else None


def _life(world: World, rules: CohesionRules, random: Random) -> Life:
    failures, warned_at = 0, None
    for failures, warns in _looks(world, rules, random):
        if warns:
            warned_at = failures
            break
    return Life(failures, warned_at)


def _looks(world: World, rules: CohesionRules, random: Random) -> Iterator[tuple[int, bool]]:
    """After each failure: how many there were, and whether it warns."""
    known, clusters, at, failures = KnownHealth(), AxisClusters(), _START, 0
    while True:
        at += timedelta(days=random.expovariate(world.daily))
        if at > _START + timedelta(days=DAYS):
            return
        failures += 1
        axes = world.draw(random)
        known.referrals = [
            *known.referrals[1 - MAX_REFERRALS :],
            Referred(
                at=at, execution_id=str(failures), kind="wrong_tool_boundary", session="s",
                axes=axes, spelled=axes, evidence="seen",
            ),
        ]  # fmt: skip
        cohesion = cohesion_of(known, clusters, now=at, rules=rules)
        yield failures, cohesion.warning
