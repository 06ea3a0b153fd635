"""When agents work: by weekday and hour, up to now; the same for the same seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from service.demo.history.agents import AGENTS, SimAgent
from service.demo.history.catalogue import PHASES

HOURS = (
    0.10, 0.08, 0.06, 0.06, 0.08, 0.15, 0.35, 0.60, 0.90, 1.00, 1.00, 0.90,
    0.70, 0.90, 1.00, 0.95, 0.80, 0.60, 0.40, 0.30, 0.25, 0.20, 0.15, 0.12,
)  # fmt: skip
"""Load by hour of the day, UTC; 1 is the busiest."""

WEEKEND = 0.45
"""Load of a Saturday or Sunday beside that of a working day."""

CALLS_PER_TASK = 1.16
"""Attempts included; measured, and held to by a test."""

_TASKS = (2, 3, 4, 4, 5, 6, 7)
_SPARE = timedelta(minutes=2)
"""Before now no session begins, or it would hold no call."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session before it is played.

    Args:
        number: from 0, in the order of time.
        agent: whose it is.
        starts: UTC.
        day: of the story, 0 to 29.
        load: how busy the hour is, 0 to 1.
        tasks: how many things the agent wants to get done.
    """

    number: int
    agent: SimAgent
    starts: datetime
    day: int
    load: float
    tasks: int


def plan_sessions(
    seed: int, days: int, calls_per_day: float, now: datetime, agents: Sequence[SimAgent] = AGENTS
) -> list[SessionPlan]:
    """The sessions of `days` days, the last of which is that of `now` (UTC days).

    Args:
        seed: the same one plans the same.
        days: at least 1.
        calls_per_day: about as many, as a mean over a week.
        now: nothing begins later.
        agents: who works.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, or `now` has no zone.
    """
    if days < 1 or calls_per_day < 1:
        raise ValueError("days and calls_per_day must be 1 or more")
    if now.tzinfo is None:
        raise ValueError("now must have a zone, such as datetime.now(UTC)")
    dice = Random(f"plan {seed}")  # noqa: S311  # a repeatable history, no secret
    plans = []
    first = moment_of(0, days, now)
    for starts, load in _starts(dice, days, calls_per_day, now):
        day = int((starts - first) / timedelta(days=days) * PHASES)
        present = [agent for agent in agents if agent.joins <= day]
        agent = dice.choices(present, [each.share for each in present])[0]
        plans.append((starts, agent, day, load, dice.choice(_TASKS)))
    plans.sort(key=lambda each: each[0])
    return [
        SessionPlan(number, agent, starts, day, load, tasks)
        for number, (starts, agent, day, load, tasks) in enumerate(plans)
    ]


def moment_of(day: int, days: int, now: datetime) -> datetime:
    """When a day of the story begins, 0 to 29, in a history of `days` days up to `now`; UTC."""
    return _midnight(now) - timedelta(days=days - 1) + timedelta(days=days) * day / PHASES


def _starts(
    dice: Random, days: int, calls_per_day: float, now: datetime
) -> Iterator[tuple[datetime, float]]:
    per_session = CALLS_PER_TASK * sum(_TASKS) / len(_TASKS)
    per_load = calls_per_day / (sum(HOURS) * (5 + 2 * WEEKEND) / 7) / per_session
    for day in range(days):
        midnight = _midnight(now) - timedelta(days=days - 1 - day)
        is_weekend = midnight.weekday() >= 5
        for hour, load in enumerate(HOURS):
            load_now = load * (WEEKEND if is_weekend else 1.0)
            expected = load_now * per_load
            for _ in range(int(expected + dice.random())):
                starts = midnight + timedelta(hours=hour, seconds=dice.random() * 3600)
                if starts <= now - _SPARE:
                    yield starts, load_now


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
