"""The history of agents that nobody helps: no service, no I/O, for tests and benchmarks.

It is what `play_history` with `ask=False` records, some 20,000 calls a second.
"""

from collections.abc import Iterator
from datetime import datetime

from aftercall.models import Execution
from service.demo.history.catalogue import Catalogue
from service.demo.history.playing import play_session
from service.demo.history.records import PlayedSession
from service.demo.history.rhythm import SessionPlan, plan_sessions


def sessions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> Iterator[PlayedSession]:
    """The sessions in the order in which they began, each with its hidden truth.

    Args:
        now: with a zone; no call is later.
        seed: the same one gives the same sessions.
        days: UTC days, the last of which is that of `now`; at least 1.
        calls_per_day: a mean over a week.

    Raises:
        ValueError: `days` or `calls_per_day` is below 1, or `now` has no zone.
    """
    catalogue = Catalogue()
    for plan in plan_sessions(seed, days, calls_per_day, now):
        yield _alone(plan, catalogue, seed, now)


def executions_alone(
    *, now: datetime, seed: int = 7, days: int = 30, calls_per_day: int = 250
) -> list[Execution]:
    """The same as executions, oldest first; arguments and errors as of `sessions_alone`."""
    sessions = sessions_alone(now=now, seed=seed, days=days, calls_per_day=calls_per_day)
    calls = sorted((call for each in sessions for call in each.calls), key=lambda call: call.at)
    return [call.execution() for call in calls]


def _alone(plan: SessionPlan, catalogue: Catalogue, seed: int, now: datetime) -> PlayedSession:
    session = play_session(plan, catalogue, seed, now)
    try:
        next(session)
        while True:
            session.send(None)  # nobody answers
    except StopIteration as end:
        played: PlayedSession = end.value
        return played
