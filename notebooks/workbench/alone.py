"""Simulated agents whom no one helps, as `aftercall demo --history` has them; no service."""

from collections.abc import Iterator
from datetime import datetime

from aftercall.models import Execution
from service.demo.simulated_agents import PlayedSession, plan_sessions, play_session


def sessions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> Iterator[PlayedSession]:
    """Yield the sessions of agents whom no one helps, in the order in which they began; no service.

    It is what `play_history` with `ask=False` records, and takes the same.
    """
    for plan in plan_sessions(seed, days, calls_per_day, now):
        session = play_session(plan, seed, now)
        try:
            next(session)
            while True:
                session.send(None)  # no one answers
        except StopIteration as end:
            yield end.value


def executions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> list[Execution]:
    """Return the same as executions, oldest first; arguments and errors as of `sessions_alone`."""
    sessions = sessions_alone(now=now, seed=seed, days=days, calls_per_day=calls_per_day)
    made = (call.execution for each in sessions for call in each.calls)
    return sorted(made, key=lambda each: each.timestamp)
